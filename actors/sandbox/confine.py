"""Gives up the rights of a sandbox process; each step that the kernel allows (T16).

In this order: its share of a busy processor; the user `nobody`, if it was root and `nobody`
can read Python's files; namespaces of its own without a network; limits; no new privileges;
death with its parent; by Landlock no file but those of Python's standard library and of the
distributions that it is given; by seccomp no call but those of `system_calls`. A step that the
kernel refuses is left out and reported. The other end of the pipe checks everything in any case,
and foreign code runs only if the most important steps succeeded.

The kernel ends the process with the thread that started it, also if that is killed: the filter
refuses the calls that would disarm this.

Compiled modules may be imported later, but their shared libraries are outside of Python's own
files. So these are loaded first.
"""

import ctypes
import os
import resource
import signal
import stat
import struct
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, final

import attrs

from actors.sandbox.system_calls import filter_system_calls
from specs.limits.foreign_code import SANDBOX_NICE
from specs.limits.protocol import SANDBOX_CPU, SANDBOX_FILES, SANDBOX_MEMORY

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_ASK_VERSION: Final = 1
_BENEATH: Final = 1
_READ_FILE, _LIST = 0b0100, 0b1000

_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 5: 16}
"""Number of rights to files that the kernel knows, by its version of Landlock."""

_SOCKETS: Final = 0b11
_SOCKETS_SINCE: Final = 4
_OTHERS: Final = 0b11
_OTHERS_SINCE: Final = 6
"""No abstract Unix sockets of others, no signals to others."""


def restrict_files(libc: ctypes.CDLL, readable: Iterable[str]) -> bool:
    """Let this process read only Python's standard library and `readable`.

    For good, and for all it may start. What is open stays open.

    Args:
        libc: The C library.
        readable: Files, and folders with all that is below them. The folders that these are in
            can be listed.

    Returns:
        Whether the kernel can do that.
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
    paths = [*_standard_library(), *map(Path, readable)]
    try:
        for path in paths:
            _allow(libc, ruleset, path, _READ_FILE | _LIST if path.is_dir() else _READ_FILE)
        for folder in {path.parent for path in paths}:
            _allow(libc, ruleset, folder, _LIST)
        return bool(libc.syscall(_RESTRICT, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


def _standard_library() -> Iterator[Path]:
    """Yield what is in its folders, without the distributions that are installed there."""
    for folder in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}:
        with os.scandir(folder) as entries:
            yield from (Path(one.path) for one in entries if one.name not in _INSTALLED)


def _allow(libc: ctypes.CDLL, ruleset: int, path: Path, rights: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        libc.syscall(_ADD, ruleset, _BENEATH, struct.pack("=Qi", rights, beneath), 0)
    finally:
        os.close(beneath)


_LIBRARIES: Final = ("libgcc_s.so.1", "librt.so.1", "libpthread.so.0", "libdl.so.2", "libm.so.6")
"""Libraries of compiled modules that a hyperty may import, such as the check of schemas."""


def preload() -> None:
    """Load them; one that this system does not have, no module here needs."""
    for name in _LIBRARIES:
        with suppress(OSError):
            ctypes.CDLL(name)


_NOBODY: Final = 65_534
_NEW_USER, _NEW_NETWORK, _NEW_IPC = 0x1000_0000, 0x4000_0000, 0x0800_0000
_DIE_WITH_PARENT, _DUMPABLE, _NO_NEW_PRIVILEGES = 1, 4, 38

_GROUP: Final = Path("/proc/self/autogroup")
"""File for the niceness of a session, if Linux groups processes by session."""

_LIMITS: Final = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_CPU, SANDBOX_CPU),
    (resource.RLIMIT_AS, SANDBOX_MEMORY),
    (resource.RLIMIT_NOFILE, SANDBOX_FILES),
    (resource.RLIMIT_FSIZE, 0),
    (resource.RLIMIT_NPROC, 0),
)


@final
@attrs.frozen
class Confined:
    """Rights that a process has given up.

    Attributes:
        given_up: What, in order.
        lacking: What the kernel did not let it give up.
    """

    given_up: tuple[str, ...]
    lacking: tuple[str, ...]

    @property
    def summary(self) -> str:
        """All of it in a line for the log."""
        kept = f"; not allowed: {', '.join(self.lacking)}" if self.lacking else ""
        return f"confined: {', '.join(self.given_up)}{kept}"


def confine(parent: int, readable: Iterable[str] = ()) -> Confined:
    """Give up everything; return what was given up.

    Args:
        parent: The process that must not die before this one.
        readable: Files and folders that can still be read, as well as the standard library.
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
        "files": restrict_files(libc, readable),
        "processes": filter_system_calls(libc),
    }
    if os.getppid() != parent:
        # It died before it could be asked to take us along.
        sys.exit("the process that started the sandbox is gone")
    return Confined(
        tuple(name for name, is_done in done.items() if is_done),
        tuple(name for name, is_done in done.items() if not is_done),
    )


def _be_nice() -> bool:
    """Let the host of this process run first, and not be interrupted when this one wakes."""
    try:
        os.nice(SANDBOX_NICE)
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        # A session of its own has a share of its own, in which niceness counts for nothing.
        _GROUP.write_text(str(SANDBOX_NICE))
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
