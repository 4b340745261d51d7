"""How a process gives up what a sandbox must not have; each step that the kernel allows (T16).

In this order: the user `nobody` if it was root and Python is for everybody to read,
namespaces of its own without a network, limits, no new privileges, death with its parent,
no file but Python's own, no socket, no signal to others. What is not allowed is left out
and told: the pipe's other end checks everything anyway.
"""

import ctypes
import os
import resource
import signal
import stat
import sys
from pathlib import Path
from typing import Final

from actors.sandbox.landlock import restrict_files
from specs.limits import ROOM_CPU, ROOM_FILES, ROOM_MEMORY

__all__ = ["confine"]

_NOBODY: Final = 65_534
_NEW_USER, _NEW_NETWORK, _NEW_IPC = 0x1000_0000, 0x4000_0000, 0x0800_0000
_DIE_WITH_PARENT, _DUMPABLE, _NO_NEW_PRIVILEGES = 1, 4, 38

_LIMITS: Final = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_CPU, ROOM_CPU),
    (resource.RLIMIT_AS, ROOM_MEMORY),
    (resource.RLIMIT_NOFILE, ROOM_FILES),
    (resource.RLIMIT_FSIZE, 0),
    (resource.RLIMIT_NPROC, 0),
)


def confine(parent: int) -> str:
    """Give up everything; return what was given up, for the log.

    Args:
        parent: The process that must not die before this one.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    done = {
        "user": _become_nobody(),
        "namespaces": _unshare(libc),
        "limits": _limit(),
        "privileges": _set(libc, _NO_NEW_PRIVILEGES, 1),
        "dumps": _set(libc, _DUMPABLE, 0),
        "orphans": _set(libc, _DIE_WITH_PARENT, signal.SIGKILL),
        "files": restrict_files(libc, sys.path),
    }
    if os.getppid() != parent:
        # It died before it could be asked to take us along.
        sys.exit("the process that started the sandbox is gone")
    lacking = [name for name, is_done in done.items() if not is_done]
    given_up = ", ".join(name for name, is_done in done.items() if is_done)
    return f"confined: {given_up}" + (f"; not allowed: {', '.join(lacking)}" if lacking else "")


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
