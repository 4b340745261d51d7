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
import errno
import os
import platform
import resource
import signal
import stat
import struct
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

import attrs

from specs.limits.foreign_code import SANDBOX_NICE
from specs.limits.protocol import SANDBOX_CPU, SANDBOX_FILES, SANDBOX_MEMORY

# The system calls that a sandbox process may make; the kernel refuses all others (T16).

_SET_FILTER, _BY_PROGRAM = 22, 2
"""`prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ...)`."""

_LOAD, _JUMP, _IF_EQUAL, _AND, _RETURN = 0x20, 0x05, 0x15, 0x54, 0x06
_NUMBER, _ARCHITECTURE = 0, 4
_ALLOW: Final = 0x7FFF_0000
_REFUSE: Final = 0x0005_0000 | errno.EPERM

_ALLOWED: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        # The most frequent first.
        "read": (0, 63), "write": (1, 64), "recvfrom": (45, 207), "futex": (202, 98),
        "epoll_wait": (232, -1), "epoll_pwait": (281, 22), "epoll_ctl": (233, 21),
        "clock_gettime": (228, 113), "getpid": (39, 172), "close": (3, 57), "fstat": (5, 80),
        "stat": (4, -1), "newfstatat": (262, 79), "mmap": (9, 222), "munmap": (11, 215),
        # Descriptors that are open, and names of files.
        "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67), "pwrite64": (18, 68),
        "lseek": (8, 62), "dup": (32, 23), "dup2": (33, -1), "dup3": (292, 24),
        "close_range": (436, 436), "getdents": (78, -1), "getdents64": (217, 61),
        "lstat": (6, -1), "statx": (332, 291), "access": (21, -1), "faccessat": (269, 48),
        "faccessat2": (439, 439), "getcwd": (79, 17), "fadvise64": (221, 223),
        "pipe": (22, -1), "pipe2": (293, 59), "eventfd2": (290, 19), "shutdown": (48, 210),
        "getsockname": (51, 204), "getpeername": (52, 205), "getsockopt": (55, 209),
        # Waiting, and time.
        "poll": (7, -1), "ppoll": (271, 73), "select": (23, -1), "pselect6": (270, 72),
        "epoll_create": (213, -1), "epoll_create1": (291, 20), "epoll_pwait2": (441, 441),
        "timerfd_create": (283, 85), "timerfd_settime": (286, 86), "timerfd_gettime": (287, 87),
        "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "clock_getres": (229, 114),
        "gettimeofday": (96, 169), "time": (201, -1), "times": (100, 153),
        "getitimer": (36, 102), "setitimer": (38, 103), "alarm": (37, -1),
        "sched_yield": (24, 124), "restart_syscall": (219, 128),
        # Memory, the end, signals to itself from the kernel.
        "brk": (12, 214), "mprotect": (10, 226), "mremap": (25, 216), "madvise": (28, 233),
        "exit": (60, 93), "exit_group": (231, 94), "rt_sigaction": (13, 134),
        "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
        "rt_sigtimedwait": (128, 137), "rt_sigsuspend": (130, 133), "sigaltstack": (131, 132),
        "set_robust_list": (273, 99), "rseq": (334, 293), "membarrier": (324, 283),
        # What it is itself.
        "gettid": (186, 178), "getppid": (110, 173), "getuid": (102, 174), "geteuid": (107, 175),
        "getgid": (104, 176), "getegid": (108, 177), "getresuid": (118, 148),
        "getresgid": (120, 150), "getgroups": (115, 158), "getpgrp": (111, -1),
        "getpgid": (121, 155), "getsid": (124, 156), "getpriority": (140, 141),
        "sched_getaffinity": (204, 123), "getrlimit": (97, 163), "getrusage": (98, 165),
        "getcpu": (309, 168), "uname": (63, 160), "sysinfo": (99, 179), "getrandom": (318, 278),
    }
)  # fmt: skip
"""Calls that are allowed with any arguments, with their numbers on x86_64 and aarch64; negative:
there is no such call."""

_Step: TypeAlias = tuple[int, int, int, int]


@attrs.frozen
class _Argument:
    """Rule that permits only certain values for an argument of a system call.

    Attributes:
        place: Position of the argument, from 0.
        values: Permitted values of the lower half of the argument, after `mask` is applied.
        is_whole: Whether its upper half must be 0, as for a pointer.
    """

    place: int
    values: tuple[int, ...] = (0,)
    mask: int = 0xFFFF_FFFF
    is_whole: bool = False

    def steps(self) -> list[_Step]:
        """Return filter instructions that refuse any other value of the argument."""
        low = 16 + 8 * self.place
        count = len(self.values)
        steps = [(_LOAD, 0, 0, low), (_AND, 0, 0, self.mask)]
        steps += [(_IF_EQUAL, count - i, 0, value) for i, value in enumerate(self.values)]
        steps += [(_RETURN, 0, 0, _REFUSE)]
        if self.is_whole:
            steps += [(_LOAD, 0, 0, low + 4), (_IF_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _REFUSE)]
        return steps


_NULL: Final = (0,)
_WRITES: Final = 0x20_2243
"""`O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_ASYNC | O_PATH`."""

_STREAM, _SOCKET_FLAGS = 1, 0xF
"""A pair of sockets that can be sent on to nobody else, and where flags are not."""

_LIMITED: Final[Mapping[str, tuple[tuple[int, int], tuple[_Argument, ...]]]] = MappingProxyType(
    {
        "open": ((2, -1), (_Argument(1, mask=_WRITES),)),
        "openat": ((257, 56), (_Argument(2, mask=_WRITES),)),
        # To nobody by name: only to the other end.
        "sendto": ((44, 206), (_Argument(4, _NULL, is_whole=True),)),
        "socketpair": ((53, 199), (_Argument(1, (_STREAM,), _SOCKET_FLAGS),)),
        # Sizes of buffers.
        "setsockopt": ((54, 208), (_Argument(1, (1,)), _Argument(2, (7, 8)))),
        # To duplicate, and own flags: no signals, no leases, no locks, no sizes.
        "fcntl": ((72, 25), (_Argument(1, (0, 1, 2, 3, 4, 1030)),)),
        # Is it a terminal, to wait or not, to close or not at a start, how much there is.
        "ioctl": ((16, 29), (_Argument(1, (0x5401, 0x5421, 0x5450, 0x5451, 0x541B)),)),
        # Names of threads, and of anonymous memory.
        "prctl": ((157, 167), (_Argument(0, (15, 16, 0x5356_4D41)),)),
        "prlimit64": ((302, 261), (_Argument(0), _Argument(2, _NULL, is_whole=True))),
    }
)
"""System calls that are allowed with certain arguments only."""


_MACHINES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {"x86_64": (0xC000_003E, 0), "aarch64": (0xC000_00B7, 1)}
)
"""Kinds of processors: their numbers, and the columns of their calls in the tables."""


def filter_system_calls(libc: ctypes.CDLL) -> bool:
    """Let the kernel refuse all system calls except the listed ones; return whether it does.

    For good. Threads are processes to Linux: none is started either. Needs that no new
    privileges can be had.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return False
    code = _program(*machine)
    held = ctypes.create_string_buffer(code)
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(held))
    return bool(libc.prctl(_SET_FILTER, _BY_PROGRAM, program, 0, 0) == 0)


def _program(architecture: int, column: int) -> bytes:
    plain = [each[column] for each in _ALLOWED.values()]
    numbers = [number for number in plain if number >= 0]
    steps: list[_Step] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, _NUMBER),
    ]
    left = len(numbers)
    steps += [(_IF_EQUAL, left - place, 0, each) for place, each in enumerate(numbers)]
    steps += [(_JUMP, 0, 0, 1), (_RETURN, 0, 0, _ALLOW)]
    for named, arguments in _LIMITED.values():
        if named[column] < 0:
            continue
        block = [step for argument in arguments for step in argument.steps()]
        steps += [(_IF_EQUAL, 0, len(block) + 1, named[column])]
        steps += [*block, (_RETURN, 0, 0, _ALLOW)]
    steps += [(_RETURN, 0, 0, _REFUSE)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


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
    """Let the kernel refuse access to all files except Python's standard library and `readable`.

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
    """Yield the files and folders of Python's standard library, without installed distributions."""
    for folder in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}:
        with os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in entries if entry.name not in _INSTALLED)


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
    """Load the system libraries that compiled modules may need later; ignore missing libraries."""
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


@attrs.frozen
class Confined:
    """Result of `confine`: the rights that a sandbox process has given up.

    Attributes:
        given_up: Names of the rights that were given up, in order.
        lacking: Names of the rights that the kernel did not let the process give up.
    """

    given_up: tuple[str, ...]
    lacking: tuple[str, ...]

    @property
    def summary(self) -> str:
        """Line for the log with all rights that were given up or not."""
        kept = f"; not allowed: {', '.join(self.lacking)}" if self.lacking else ""
        return f"confined: {', '.join(self.given_up)}{kept}"


def confine(parent: int, readable: Iterable[str] = ()) -> Confined:
    """Give up all rights of this process that the kernel allows to give up; return which.

    Args:
        parent: The process that must not die before this one.
        readable: Files and folders that can still be read, as well as the standard library.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    done = {
        "priority": _be_nice(),
        "user": _become_nobody(),
        "namespaces": bool(libc.unshare(_NEW_USER | _NEW_NETWORK | _NEW_IPC) == 0),
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
    """Reduce the priority of this process, so that its host is not interrupted."""
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
    if not all(_is_open_to_all(Path(each)) for each in (*sys.path, sys.executable)):
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
    return all(part.stat().st_mode & stat.S_IXOTH for part in parts if part.exists())


def _limit() -> bool:
    for limit, value in _LIMITS:
        _, most = resource.getrlimit(limit)
        bounded = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(limit, (bounded, bounded))
    return True


def _set(libc: ctypes.CDLL, option: int, value: int) -> bool:
    return bool(libc.prctl(option, value, 0, 0, 0) == 0)
