"""No files, sockets and signals for this process any more: Linux's Landlock, where it is."""

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

__all__ = ["restrict_files"]

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
