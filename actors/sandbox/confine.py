"""How a process gives up what a sandbox must not have; each step that the kernel allows (T16).

In this order: its share of a busy processor, the user `nobody` if it was root and Python is
for everybody to read, namespaces of its own without a network, limits, no new privileges,
death with its parent, no file but Python's own, no socket, no signal to others, no other
process. What is not allowed is left out and told: the pipe's other end checks everything
anyway, and code of others is run only where the most important steps were done.
"""

import ctypes
import os
import resource
import signal
import stat
import sys
from pathlib import Path
from typing import Final, final

import attrs

from actors.sandbox.landlock import restrict_files
from actors.sandbox.seccomp import forbid_processes
from specs.limits.isolation import ROOM_NICE
from specs.limits.protocol import ROOM_CPU, ROOM_FILES, ROOM_MEMORY

__all__ = ["Confined", "confine"]

_NOBODY: Final = 65_534
_NEW_USER, _NEW_NETWORK, _NEW_IPC = 0x1000_0000, 0x4000_0000, 0x0800_0000
_DIE_WITH_PARENT, _DUMPABLE, _NO_NEW_PRIVILEGES = 1, 4, 38

_GROUP: Final = Path("/proc/self/autogroup")
"""Where Linux is told how nice a session is, if it groups processes by session."""

_LIMITS: Final = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_CPU, ROOM_CPU),
    (resource.RLIMIT_AS, ROOM_MEMORY),
    (resource.RLIMIT_NOFILE, ROOM_FILES),
    (resource.RLIMIT_FSIZE, 0),
    (resource.RLIMIT_NPROC, 0),
)


@final
@attrs.frozen
class Confined:
    """What a process has given up.

    Attributes:
        given_up: What, in order.
        lacking: What it could not.
    """

    given_up: tuple[str, ...]
    lacking: tuple[str, ...]

    @property
    def told(self) -> str:
        """All of it in a line for the log."""
        kept = f"; not allowed: {', '.join(self.lacking)}" if self.lacking else ""
        return f"confined: {', '.join(self.given_up)}{kept}"


def confine(parent: int) -> Confined:
    """Give up everything; return what was given up.

    Args:
        parent: The process that must not die before this one.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    done = {
        "priority": _be_nice(),
        "user": _become_nobody(),
        "namespaces": _unshare(libc),
        "limits": _limit(),
        "privileges": _set(libc, _NO_NEW_PRIVILEGES, 1),
        "dumps": _set(libc, _DUMPABLE, 0),
        "orphans": _set(libc, _DIE_WITH_PARENT, signal.SIGKILL),
        "files": restrict_files(libc, sys.path),
        "processes": forbid_processes(libc),
    }
    if os.getppid() != parent:
        # It died before it could be asked to take us along.
        sys.exit("the process that started the sandbox is gone")
    return Confined(
        tuple(name for name, is_done in done.items() if is_done),
        tuple(name for name, is_done in done.items() if not is_done),
    )


def _be_nice() -> bool:
    """Let whoever keeps this process go first, and not be interrupted when this one wakes."""
    try:
        os.nice(ROOM_NICE)
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        # A session of its own has a share of its own, in which niceness counts for nothing.
        _GROUP.write_text(str(ROOM_NICE))
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _become_nobody() -> bool:
    if os.getuid() != 0:
        return True
    if not all(_is_open_to_all(Path(one)) for one in (*sys.path, sys.executable)):
        # Python could not load a module any more, when it comes to that.
        return False
    try:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    except OSError:
        return False
    return True


def _is_open_to_all(path: Path) -> bool:
    parts = [path, *path.resolve().parents]
    return all(one.stat().st_mode & stat.S_IXOTH for one in parts if one.exists())


def _unshare(libc: ctypes.CDLL) -> bool:
    return bool(libc.unshare(_NEW_USER | _NEW_NETWORK | _NEW_IPC) == 0)


def _limit() -> bool:
    for limit, value in _LIMITS:
        _, most = resource.getrlimit(limit)
        bounded = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(limit, (bounded, bounded))
    return True


def _set(libc: ctypes.CDLL, option: int, value: int) -> bool:
    return bool(libc.prctl(option, value, 0, 0, 0) == 0)
