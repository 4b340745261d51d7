"""Starting sandbox processes, killing them at the end, and limiting their resources (T16)."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias

import trio

from actors.kit.log import get_logger
from actors.pipe.code import stub_code
from actors.pipe.plan import SandboxCode, SandboxError, Word, parts_of, write_code, write_message
from fsm.limits.rates import TokenBucket
from fsm.limits.shares import MIB, TOTALS, SandboxAdmission, SandboxTotals
from fsm.limits.timers import IDLE, ProcessorTime
from specs.limits import foreign_code, protocol
from specs.limits.foreign_code import SANDBOXES_PERIOD, SANDBOXES_WEIGHT
from transports.link import Kind, Link, Upgrade
from transports.socket_link import StreamLink
from transports.sockets import open_background

_log = get_logger("actors.sandbox")

_ROOT: Final = Path(__file__).resolve().parents[2]
"""Folder that contains this project's packages; an isolated interpreter needs the explicit path."""

_MAIN: Final = (
    "import gc, sys; gc.disable(); sys.path += [*sys.argv[2:], sys.argv[1]]; "
    "from actors.sandbox.__main__ import main; gc.enable(); del sys.argv[1:]; main()"
)
"""The program of a sandbox process; it does not import `site`, whose files may run any code."""

_READ: Final = 4096

_CONFINED: Final = "confined: "
"""Start of the line that lists the rights that a process has given up."""


FindCode: TypeAlias = Callable[[], SandboxCode]
"""Finds the files that a sandbox process can read and import; blocks.

Raises:
    ImportError: The sources exceed the limits of a package, or cannot be read.
"""


class ProcessLink(StreamLink):
    """The host's side of the connection to a sandbox process.

    Args:
        pid: Number of the process.
        stream: The socket.
    """

    __slots__ = ("_pid",)

    def __init__(self, pid: int, stream: trio.SocketStream) -> None:
        super().__init__((Kind.UNIX, f"sandbox-{pid}", Upgrade()), stream)
        self._pid: Final = pid

    def processor_time(self) -> ProcessorTime:
        """Return the processor time that the process has used; `IDLE` if it is not known."""
        try:
            ran, waited, _ = Path(f"/proc/{self._pid}/schedstat").read_text().split()
        except (OSError, ValueError):
            return IDLE
        return ProcessorTime(int(ran) / 1e9, int(waited) / 1e9)


class ProcessSandboxes:
    """The sandbox processes of one host, with common limits.

    A cgroup enforces the limits if this process can make one, otherwise the sum of those of the
    processes does.

    Args:
        totals: The common limits.
        home: The cgroup of this process; None: it makes no cgroup.
    """

    def __init__(self, totals: SandboxTotals = TOTALS, home: Path | None = None) -> None:
        self._totals = totals
        self._home = home
        self._group: Cgroup | None = None
        self._admission: SandboxAdmission | None = None

    @asynccontextmanager
    async def open(self, label: str, find: FindCode = stub_code) -> AsyncIterator[Link]:
        """Run a sandbox process while the context is open (see `Spawn`).

        Its standard input is one end of a socket pair, its standard error a pipe that is
        logged; it inherits nothing else, not even the environment. At the end of the context the
        process and its children are killed and awaited.

        Args:
            label: Name of the sandbox in logs.
            find: Finds the files that its code can read and import (`actors.pipe.code`).

        Raises:
            SandboxError: The system starts no process, all sandboxes together could use too
                much, or the module imports too much.
            LinkError: The process ended before it got its code.
        """
        admission = self._begin()
        refusal = admission.enter()
        if refusal is not None:
            raise SandboxError(refusal)
        try:
            async with _open(label, find, self._group) as link:
                yield link
        finally:
            admission.leave()

    def _begin(self) -> SandboxAdmission:
        if self._admission is None:
            self._group = open_cgroup(self._totals, self._home)
            is_grouped = self._group is not None
            self._admission = SandboxAdmission(self._totals, is_grouped=is_grouped)
            _log.info(
                "sandboxes are bounded together",
                by="sum of limits" if self._group is None else str(self._group.folder),
                mib=self._totals.memory // MIB,
                processors=self._totals.cpu,
            )
        return self._admission

    def close(self) -> None:
        """Remove the cgroup, if there is one. Idempotent."""
        if self._group is not None:
            self._group.remove()


@contextmanager
def process_sandboxes(totals: SandboxTotals) -> Iterator[ProcessSandboxes]:
    """Yield the sandbox processes of one host; remove their cgroup at the end."""
    sandboxes = ProcessSandboxes(totals, home_cgroup())
    try:
        yield sandboxes
    finally:
        sandboxes.close()


_AMPLE: Final = SandboxTotals(
    memory=foreign_code.SANDBOXES * protocol.SANDBOX_MEMORY,
    cpu=foreign_code.SANDBOXES * protocol.SANDBOX_CPU / foreign_code.SANDBOXES_SPAN,
)

open_process_sandbox: Final = ProcessSandboxes(_AMPLE).open
"""Opens sandbox processes of which only the number is limited, for the whole process."""


@asynccontextmanager
async def _open(label: str, find: FindCode, group: "Cgroup | None") -> AsyncIterator[Link]:
    try:
        code = await trio.to_thread.run_sync(find)
    except ImportError as exc:
        raise SandboxError(str(exc)) from exc
    try:
        process, ours, errors = _open_process(code)
    except OSError as exc:
        raise SandboxError(f"no process could be started: {exc.strerror}") from exc
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
    link = ProcessLink(process.pid, stream)
    async with stream, open_background() as background:
        background.start_soon(_log_errors, trio.lowlevel.FdStream(errors), label, process.pid)
        try:
            _move_to_cgroup(process.pid, group)
            for part in parts_of(0, write_code(code, os.getpid()), Word.CODE):
                await link.send(write_message(part))
            yield link
        finally:
            with trio.CancelScope(shield=True):
                await _end(process)


def _move_to_cgroup(pid: int, group: "Cgroup | None") -> None:
    """Move a waiting process into its cgroup, before it gets its code.

    Raises:
        SandboxError: The process cannot be moved.
    """
    if group is None:
        return
    try:
        group.add(pid)
    except OSError as exc:
        raise SandboxError(f"its cgroup does not take its process: {exc.strerror}") from exc


def _open_process(
    code: SandboxCode,
) -> "tuple[subprocess.Popen[bytes], socket.socket, int]":
    """Start a process; return the process, the host's end of the pipe, and its standard error.

    Raises:
        OSError: No process or descriptor is available; nothing is left open.
    """
    with ExitStack() as ours_if_it_fails, ExitStack() as theirs:
        ours, pipe = socket.socketpair()
        ours_if_it_fails.callback(ours.close)
        theirs.callback(pipe.close)
        errors, say = os.pipe()
        ours_if_it_fails.callback(os.close, errors)
        theirs.callback(os.close, say)
        process = _start(pipe, say, code)
        ours_if_it_fails.pop_all()
    return process, ours, errors


def _start(pipe: socket.socket, errors: int, code: SandboxCode) -> "subprocess.Popen[bytes]":
    """Start the process from this thread, as the child dies with the thread that started it."""
    command = [sys.executable, "-I", "-S", "-B", "-c", _MAIN, str(_ROOT), *code.places]
    return subprocess.Popen(  # noqa: S603 - our own interpreter with our own code
        command,
        stdin=pipe.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=errors,
        env={},
        cwd="/",
        start_new_session=True,
    )


async def _end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    # A killed process ends at once; `wait` suffices if there are no descriptors.
    with suppress(OSError):
        watch = os.pidfd_open(process.pid)
        try:
            await trio.lowlevel.wait_readable(watch)
        finally:
            os.close(watch)
    process.wait()


async def _log_errors(stream: trio.lowlevel.FdStream, domain: str, pid: int) -> None:
    """Log part of the process's stderr, and throttle a process that writes much."""
    rest, lines, pace = (
        b"",
        0,
        TokenBucket(foreign_code.SANDBOX_LOG_RATE, foreign_code.SANDBOX_LOG_BURST),
    )
    async with stream:
        while piece := await stream.receive_some(_READ):
            await trio.sleep(pace.spend(trio.current_time()))
            *whole, rest = (rest + bytes(piece)).split(b"\n")
            rest = rest[:_READ]
            for line in whole[: max(protocol.SANDBOX_LOG_LINES - lines, 0)]:
                text = line[: protocol.SANDBOX_LOG_CHARACTERS].decode(errors="replace")
                log = _log.info if text.startswith(_CONFINED) else _log.warning
                log("sandbox says", domain=domain, pid=pid, text=text)
            if lines <= protocol.SANDBOX_LOG_LINES < lines + len(whole):
                _log.warning(
                    "sandbox says too much, the rest is not logged", domain=domain, pid=pid
                )
            lines += len(whole)


# One cgroup for all sandbox processes of a host: the kernel bounds them together (T16).
#
# Of version 2. Without rights of its own a process can make one where its own cgroup was delegated
# to it, as by Delegate=yes of a systemd unit. Controllers pass down only from a cgroup without
# processes, so a process that is alone in its cgroup moves into a leaf below it.
#
# The processes of a dead host die with it; its cgroup is removed by the next host below the same
# parent.


_NEEDED: Final = frozenset({"cpu", "memory"})
"""Names of the cgroup controllers that must be available."""

_NAME, _LEAF = "protofly-sandboxes", "protofly-host"

_numbers: Final = count(1)


class Cgroup:
    """Control group (cgroup) of the Linux kernel that this process has made, with common limits.

    Args:
        folder: Its folder in the file system of cgroups.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def limit(self, totals: SandboxTotals) -> None:
        """Set memory and processor limits for all processes in the cgroup together.

        Raises:
            OSError: The kernel forbids it.
        """
        quota = int(totals.cpu * SANDBOXES_PERIOD)
        _write(self.folder / "memory.max", str(totals.memory))
        _write(self.folder / "cpu.max", f"{quota} {SANDBOXES_PERIOD}")
        _write(self.folder / "cpu.weight", str(SANDBOXES_WEIGHT))
        with suppress(FileNotFoundError):
            # A kernel without swap has no such file.
            _write(self.folder / "memory.swap.max", "0")

    def add(self, pid: int) -> None:
        """Move a process into the cgroup.

        Raises:
            OSError: The kernel forbids it.
        """
        _write(self.folder / "cgroup.procs", str(pid))

    def remove(self) -> None:
        """Kill its processes and remove the cgroup; if this fails, leave it to the next host."""
        with suppress(OSError):
            _write(self.folder / "cgroup.kill", "1")
        with suppress(OSError):
            self.folder.rmdir()


def open_cgroup(totals: SandboxTotals, home: Path | None) -> Cgroup | None:
    """Make a cgroup with limits, and remove the cgroups of dead hosts.

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
        folder = parent / f"{_NAME}-{pid}-{_start_time(pid)}-{next(_numbers)}"
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
    """Return the folder of the cgroup of this process; None: no cgroup of version 2 exists."""
    try:
        own = (proc / "cgroup").read_text().splitlines()
        mounts = (proc / "mountinfo").read_text().splitlines()
    except OSError:
        return None
    path = next((each[3:] for each in own if each.startswith("0::")), None)
    for mount in mounts:
        fields, _, kind = mount.partition(" - ")
        if path is not None and kind.startswith("cgroup2 "):
            root, at = fields.split()[3:5]
            return Path(at, path.removeprefix(root).lstrip("/"))
    return None


def _parent(home: Path) -> Path:
    """Return the cgroup below which others can be made, and delegate controllers to its children.

    Raises:
        OSError: No such cgroup exists.
    """
    if home.name == _LEAF and _delegated_controllers(home.parent) >= _NEEDED:
        return home.parent
    if not _delegated_controllers(home) >= _NEEDED:
        _pass_down(home)
    return home


def _delegated_controllers(folder: Path) -> frozenset[str]:
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
    _write(home / "cgroup.subtree_control", " ".join(f"+{each}" for each in sorted(_NEEDED)))


def _write(file: Path, text: str) -> None:
    """Write a text to an existing file, such as a control file of a cgroup."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


# ---- cgroups of dead hosts


def _remove_stale(parent: Path) -> None:
    for folder, pid, started in _groups(parent):
        with suppress(OSError):
            if _start_time(pid) == started:
                continue
        Cgroup(folder).remove()


def _groups(parent: Path) -> Iterator[tuple[Path, int, int]]:
    for folder in parent.glob(f"{_NAME}-*"):
        parts = folder.name.removeprefix(f"{_NAME}-").split("-")
        if len(parts) == 3 and all(map(str.isdecimal, parts)):  # noqa: PLR2004
            yield folder, int(parts[0]), int(parts[1])


def _start_time(pid: int) -> int:
    """Return the start time of a process, which identifies it even if its number is reused later.

    Raises:
        OSError: There is no process of this number.
    """
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(after_name[19])
