"""One cgroup for all sandbox processes of a host: the kernel bounds them together (T16).

Of version 2. Without rights of its own a process can make one where its own cgroup was
delegated to it, as by `Delegate=yes` of a systemd unit. Controllers pass down only from a cgroup
without processes, so a process that is alone in its cgroup moves into a leaf below it.

The processes of a dead host die with it; its cgroup is removed by the next host below the same
parent.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from actors.kit.log import get_logger
from fsm.limits.shares import SandboxTotals
from specs.limits.foreign_code import SANDBOXES_PERIOD, SANDBOXES_WEIGHT

_log = get_logger("actors.sandbox")

_NEEDED: Final = frozenset({"cpu", "memory"})
"""Controllers."""

_NAME, _LEAF = "protofly-sandboxes", "protofly-host"

_numbers: Final = count(1)


class Cgroup:
    """A cgroup of this process's own making.

    Args:
        folder: Its folder in the file system of cgroups.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def limit(self, totals: SandboxTotals) -> None:
        """Bound what its processes use together.

        Raises:
            OSError: The kernel does not let this process.
        """
        quota = int(totals.cpu * SANDBOXES_PERIOD)
        _write(self.folder / "memory.max", str(totals.memory))
        _write(self.folder / "cpu.max", f"{quota} {SANDBOXES_PERIOD}")
        _write(self.folder / "cpu.weight", str(SANDBOXES_WEIGHT))
        with suppress(FileNotFoundError):
            # There is none in a kernel without swap.
            _write(self.folder / "memory.swap.max", "0")

    def add(self, pid: int) -> None:
        """Move a process into it.

        Raises:
            OSError: The kernel does not let this process.
        """
        _write(self.folder / "cgroup.procs", str(pid))

    def remove(self) -> None:
        """Kill what is in it, and remove it; what cannot be removed is left to the next host."""
        with suppress(OSError):
            _write(self.folder / "cgroup.kill", "1")
        with suppress(OSError):
            self.folder.rmdir()


def open_cgroup(totals: SandboxTotals, home: Path | None) -> Cgroup | None:
    """Make a cgroup with these limits; also remove those of dead hosts.

    Args:
        totals: The limits.
        home: The cgroup of this process, from `home_cgroup`.

    Returns:
        The cgroup; None: this process can make none.
    """
    if home is None:
        return None
    made = None
    try:
        parent = _parent(home)
        _remove_stale(parent)
        pid = os.getpid()
        folder = parent / f"{_NAME}-{pid}-{_started(pid)}-{next(_numbers)}"
        folder.mkdir()
        made = Cgroup(folder)
        made.limit(totals)
    except OSError as exc:
        _log.info("no cgroup for sandboxes", home=str(home), why=exc.strerror)
        if made is not None:
            made.remove()
        return None
    return made


def home_cgroup(proc: Path = Path("/proc/self")) -> Path | None:
    """Return the folder of the cgroup of this process; None: it is in none of version 2."""
    try:
        own = (proc / "cgroup").read_text().splitlines()
        mounts = (proc / "mountinfo").read_text().splitlines()
    except OSError:
        return None
    path = next((one[3:] for one in own if one.startswith("0::")), None)
    for mount in mounts:
        fields, _, kind = mount.partition(" - ")
        if path is not None and kind.startswith("cgroup2 "):
            root, at = fields.split()[3:5]
            return Path(at, path.removeprefix(root).lstrip("/"))
    return None


def _parent(home: Path) -> Path:
    """Return the cgroup below which groups can be made, and have it pass controllers down.

    Raises:
        OSError: There is none.
    """
    if home.name == _LEAF and _passed(home.parent) >= _NEEDED:
        return home.parent
    if not _passed(home) >= _NEEDED:
        _pass_down(home)
    return home


def _passed(folder: Path) -> frozenset[str]:
    return frozenset((folder / "cgroup.subtree_control").read_text().split())


def _pass_down(home: Path) -> None:
    lacking = _NEEDED.difference((home / "cgroup.controllers").read_text().split())
    if lacking:
        raise OSError(0, f"without the controllers {', '.join(sorted(lacking))}")
    pid = str(os.getpid())
    if (home / "cgroup.procs").read_text().split() == [pid]:
        leaf = home / _LEAF
        leaf.mkdir(exist_ok=True)
        _write(leaf / "cgroup.procs", pid)
    _write(home / "cgroup.subtree_control", " ".join(f"+{one}" for one in sorted(_NEEDED)))


def _write(file: Path, text: str) -> None:
    """Write a file that is there."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


# ---- what dead hosts left


def _remove_stale(parent: Path) -> None:
    for folder, pid, started in _groups(parent):
        with suppress(OSError):
            if _started(pid) == started:
                continue
        Cgroup(folder).remove()


def _groups(parent: Path) -> Iterator[tuple[Path, int, int]]:
    for folder in parent.glob(f"{_NAME}-*"):
        parts = folder.name.removeprefix(f"{_NAME}-").split("-")
        if len(parts) == 3 and all(map(str.isdecimal, parts)):  # noqa: PLR2004
            yield folder, int(parts[0]), int(parts[1])


def _started(pid: int) -> int:
    """Return when a process started: its number may be another's after its end.

    Raises:
        OSError: There is none of this number.
    """
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(after_name[19])
