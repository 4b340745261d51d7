"""Gives up the rights of a sandbox process; each step that the kernel allows (T16).

In this order: its share of a busy processor; the user `nobody`, if it was root and `nobody`
can read Python's files; namespaces of its own without a network; limits; no new privileges;
death with its parent; by Landlock no file but Python's own; by seccomp no socket, no signal to
other processes, no other process. A step that the kernel refuses is left out and reported. The
other end of the pipe checks everything in any case, and foreign code runs only if the most
important steps succeeded.

Compiled modules may be imported later, but their shared libraries are outside of Python's own
files. So these are loaded first.
"""

import ctypes
import errno
import os
import platform
import resource
import signal
import stat
import struct
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, final

import attrs

from specs.limits.foreign_code import SANDBOX_NICE
from specs.limits.protocol import SANDBOX_CPU, SANDBOX_FILES, SANDBOX_MEMORY

__all__ = ["confine", "preload"]

_SET_FILTER, _BY_PROGRAM = 22, 2
"""`prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ...)`."""

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
"""Offsets of number, architecture and arguments in a filtered call."""

_ALLOW: Final = 0x7FFF_0000
_REFUSE: Final = 0x0005_0000 | errno.EPERM
_OTHER_CONVENTION: Final = 0x4000_0000
"""From here up numbers are of calls by a convention of their own."""


_STREAM, _SOCKET_TYPE = 1, 0xF
"""A pair of sockets that cannot be passed on, and where flags are not."""

_FORBIDDEN: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        # Other processes: to start, to become, to look into, to signal, to slow down.
        "clone": (56, 220), "clone3": (435, 435), "fork": (57, -1), "vfork": (58, -1),
        "execve": (59, 221), "execveat": (322, 281), "ptrace": (101, 117),
        "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
        "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
        "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
        "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
        "setpriority": (141, 140), "sched_setparam": (142, 118),
        "sched_setscheduler": (144, 119), "sched_setaffinity": (203, 122),
        "sched_setattr": (314, 274), "ioprio_set": (251, 30),
        "migrate_pages": (256, 238), "move_pages": (279, 239),
        # Sockets: those of the file system belong to no network, and to no file right either.
        "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
        "sendmsg": (46, 211), "sendmmsg": (307, 269),
        # Files of others: Landlock still lets a process change their owners and metadata.
        "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
        "chown": (92, -1), "lchown": (94, -1), "fchown": (93, 55), "fchownat": (260, 54),
        "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1), "utimensat": (280, 88),
        "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
        "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
        "setxattrat": (463, 463), "removexattrat": (466, 466),
        "open_by_handle_at": (304, 265), "mount": (165, 40),
        "inotify_init": (253, -1), "inotify_init1": (294, 26), "fanotify_init": (300, 262),
        # What is shared by all that one user runs.
        "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
        "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
        # System calls that are not needed here.
        "unshare": (272, 97), "setns": (308, 268), "bpf": (321, 280),
        "io_uring_setup": (425, 425), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    }
)  # fmt: skip
"""Refused calls, with their numbers on x86_64 and aarch64; negative: there is no such call."""


@final
@attrs.frozen
class _Machine:
    """Calls of one kind of processor.

    Attributes:
        column: Of the numbers in the table of what is forbidden.
        pair: The call `socketpair`: of streams only, which reach no other process.
        limit: The call `prlimit64`: for this process only.
    """

    architecture: int
    column: int
    pair: int
    limit: int

    @property
    def forbidden(self) -> tuple[int, ...]:
        """The numbers of what is forbidden."""
        numbers = (one[self.column] for one in _FORBIDDEN.values())
        return tuple(number for number in numbers if number >= 0)


_MACHINES: Final[Mapping[str, _Machine]] = MappingProxyType(
    {
        "x86_64": _Machine(0xC000_003E, 0, pair=53, limit=302),
        "aarch64": _Machine(0xC000_00B7, 1, pair=199, limit=261),
    }
)


def forbid_processes(libc: ctypes.CDLL) -> bool:
    """Let this process start no other, reach no other and change no file; return whether it can.

    What is below is refused by the kernel itself, also for a process whose user is that of
    its host. For good. Threads are processes to Linux: none is started either. Needs that no new
    privileges can be had.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return False
    code = _filter(machine)
    held = ctypes.create_string_buffer(code)
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(held))
    return bool(libc.prctl(_SET_FILTER, _BY_PROGRAM, program, 0, 0) == 0)


def _filter(machine: _Machine) -> bytes:
    """Put the filter together: what is forbidden, or made by another convention, is refused."""
    forbidden = machine.forbidden
    left = len(forbidden)
    by_words = _by_words(machine)
    refuse = left + len(by_words)
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 0, refuse + 3, machine.architecture),
        (_LOAD, 0, 0, _NUMBER),
        (_IF_AT_LEAST, refuse + 1, 0, _OTHER_CONVENTION),
    ]
    steps += [(_IF_EQUAL, refuse - place, 0, number) for place, number in enumerate(forbidden)]
    steps += [*by_words, (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _by_words(machine: _Machine) -> list[tuple[int, int, int, int]]:
    """Look at what two calls are made with; right behind it stands to allow, then to refuse."""
    return [
        (_IF_EQUAL, 0, 3, machine.pair),
        (_LOAD, 0, 0, _SECOND),
        (_AND, 0, 0, _SOCKET_TYPE),
        (_IF_EQUAL, 3, 4, _STREAM),
        (_IF_EQUAL, 0, 2, machine.limit),
        (_LOAD, 0, 0, _FIRST),
        (_IF_EQUAL, 0, 1, 0),
    ]


_CREATE, _ADD, _RESTRICT = 444, 445, 446
_ASK_VERSION: Final = 1
_BENEATH: Final = 1
_READ: Final = 0b1100
"""To read a file, to list a directory."""

_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 5: 16}
"""Number of rights to files that the kernel knows, by its version of Landlock."""

_SOCKETS: Final = 0b11
_SOCKETS_SINCE: Final = 4
_OTHERS: Final = 0b11
_OTHERS_SINCE: Final = 6
"""No abstract Unix sockets of others, no signals to others."""


def restrict_files(libc: ctypes.CDLL, readable: Iterable[str]) -> bool:
    """Let this process read nothing but what is below `readable`; return whether it can.

    For good, and for all it may start. What is open stays open.

    Args:
        libc: The C library of this process.
        readable: Readable paths.
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
    """

    given_up: tuple[str, ...]
    lacking: tuple[str, ...]

    @property
    def summary(self) -> str:
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
