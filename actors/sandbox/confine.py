"""How a process gives up what a sandbox must not have; each step that the kernel allows (T16).

In this order: its share of a busy processor, the user `nobody` if it was root and Python is
for everybody to read, namespaces of its own without a network, limits, no new privileges,
death with its parent, no file but Python's own, no socket, no signal to others, no other
process. What is not allowed is left out and told: the pipe's other end checks everything
anyway, and code of others is run only where the most important steps were done.

Libraries of the system, loaded while they can still be read (T16).

A sandbox may read Python's own files, and so may import compiled modules; what these are
linked with is elsewhere. Loaded once, it is found again by its name.

No files, sockets and signals for this process any more: Linux's Landlock, where it is.
"""

import ctypes
import os
import resource
import signal
import stat
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, final

import attrs

from actors.sandbox.seccomp import forbid_processes
from specs.limits.isolation import ROOM_NICE
from specs.limits.protocol import ROOM_CPU, ROOM_FILES, ROOM_MEMORY

__all__ = ["Confined", "confine", "preload", "restrict_files"]

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_ASK_VERSION: Final = 1
_BENEATH: Final = 1
_READ: Final = 0b1100
"""To read a file, to list a directory."""

_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 5: 16}
"""How many rights to files the kernel knows, by its version of Landlock."""

_SOCKETS: Final = 0b11
_SOCKETS_SINCE: Final = 4
_OTHERS: Final = 0b11
_OTHERS_SINCE: Final = 6
"""No abstract Unix sockets of others, no signals to others."""


def restrict_files(libc: ctypes.CDLL, readable: Iterable[str]) -> bool:
    """Let this process read nothing but what is below `readable`; tell whether it can.

    For good, and for all it may start. What is open stays open.
    """
    version = libc.syscall(_CREATE, None, ctypes.c_size_t(0), _ASK_VERSION)
    if version < 1:
        return False
    known = max(count for since, count in _RIGHTS.items() if since <= version)
    rights = [(1 << known) - 1]
    if version >= _SOCKETS_SINCE:
        rights.append(_SOCKETS)
    if version >= _OTHERS_SINCE:
        rights.append(_OTHERS)
    asked = struct.pack(f"={len(rights)}Q", *rights)
    ruleset = libc.syscall(_CREATE, asked, ctypes.c_size_t(len(asked)), 0)
    if ruleset < 0:
        return False
    try:
        for path in readable:
            _allow(libc, ruleset, path)
        return bool(libc.syscall(_RESTRICT, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str) -> None:
    if not Path(path).is_dir():
        return
    beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        libc.syscall(_ADD, ruleset, _BENEATH, struct.pack("=Qi", _READ, beneath), 0)
    finally:
        os.close(beneath)


_LIBRARIES: Final = ("libgcc_s.so.1", "librt.so.1", "libpthread.so.0", "libdl.so.2", "libm.so.6")
"""With these compiled modules are linked that a hyperty may import, such as what checks schemas."""


def preload() -> None:
    """Load them; one that this system does not have, no module here needs."""
    for name in _LIBRARIES:
        with suppress(OSError):
            ctypes.CDLL(name)


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
