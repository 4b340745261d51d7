"""Code packages of stubs and hyperties: making zip archives, and checking them before use.

Nothing is unpacked to a disk and nothing is executed here. The checked bytes are the very bytes
that were hashed, and are passed on unchanged (T15, S16).
"""

import io
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from actors.catalogue.errors import BadArchiveError
from specs.limits.foreign_code import (
    PACKAGE_BYTES,
    PACKAGE_FILES,
    PACKAGE_RATIO,
    PACKAGE_UNPACKED_BYTES,
)

_NAME: Final = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/)*[A-Za-z0-9_][A-Za-z0-9_.-]*")
_ENTRY: Final = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)", re.ASCII)
_SUFFIXES: Final = (".py", ".json")
_PACKINGS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_FILE_MODE: Final = (stat.S_IFREG | 0o644) << 16
_SMALL: Final = 4096
"""Size in bytes below which the compression ratio is not checked."""
_PIECE: Final = 65_536
_ENCRYPTED: Final = 0x1


def pack(folder: Path) -> bytes:
    """Pack the source files in a folder to a zip archive; the same files give the same bytes.

    Blocks.

    Raises:
        BadArchiveError: There are no sources, or they cannot be packed.
        OSError: The sources cannot be read.
    """
    sources = sorted(
        (path.relative_to(folder).as_posix(), path)
        for path in folder.rglob("*")
        if path.suffix in _SUFFIXES and path.is_file()
    )
    if not sources:
        raise BadArchiveError(f"would be empty: {folder} has no files such as *.py")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, path in sources:
            info = zipfile.ZipInfo(name, _EPOCH)
            info.external_attr = _FILE_MODE
            info.create_system = 3
            archive.writestr(info, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()


def check_archive(content: bytes, entry_point: str) -> None:
    """Refuse an archive that contains anything but sources to import.

    Args:
        content: Bytes of the archive.
        entry_point: `module:function`; the archive must have the module, and the sandbox checks
            that the module has the function.

    Raises:
        BadArchiveError: The archive must not be opened.
    """
    if len(content) > PACKAGE_BYTES:
        raise BadArchiveError(f"is larger than {PACKAGE_BYTES} bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            _check_members(members)
            _check_entry_point({member.filename for member in members}, entry_point)
            _check_contents(archive, members)
    except _BROKEN as exc:
        raise BadArchiveError("is no zip archive that can be read") from exc


_BROKEN: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)
"""Errors of the library for archives that are damaged or of unknown kinds."""


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    if len(members) > PACKAGE_FILES:
        raise BadArchiveError(f"has more than {PACKAGE_FILES} files")
    names: set[str] = set()
    for member in members:
        _check_name(member)
        _check_kind(member)
        if member.filename.lower() in names:
            raise BadArchiveError(f"has the file {_member_name(member)} twice")
        names.add(member.filename.lower())
    if sum(member.file_size for member in members) > PACKAGE_UNPACKED_BYTES:
        raise BadArchiveError(f"would have more than {PACKAGE_UNPACKED_BYTES} bytes unpacked")


def _check_name(member: zipfile.ZipInfo) -> None:
    """Refuse a file name that leads out of the archive; the library cleans only `filename`."""
    name = member.orig_filename
    if name != member.filename or not _NAME.fullmatch(name):
        raise BadArchiveError(f"has a file {_member_name(member)} that leads out of it")
    if not name.endswith(_SUFFIXES):
        raise BadArchiveError(f"has a file {_member_name(member)} that is neither .py nor .json")


def _check_kind(member: zipfile.ZipInfo) -> None:
    mode = member.external_attr >> 16
    if stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
        raise BadArchiveError(f"has an entry {_member_name(member)} that is no plain file")
    if member.flag_bits & _ENCRYPTED or member.compress_type not in _PACKINGS:
        raise BadArchiveError(
            f"has a file {_member_name(member)} packed by a method that is not accepted"
        )
    if member.file_size > _SMALL and member.file_size > PACKAGE_RATIO * member.compress_size:
        raise BadArchiveError(
            f"has a file {_member_name(member)} that is packed too well to be a source"
        )


def _check_entry_point(names: set[str], entry_point: str) -> None:
    parts = _ENTRY.fullmatch(entry_point)
    if parts is None:
        raise BadArchiveError(f"has an entry point {entry_point[:40]!r} that is no module:function")
    path = parts[1].replace(".", "/")
    if not names & {f"{path}.py", f"{path}/__init__.py"}:
        raise BadArchiveError(f"has no module {parts[1]!r} for its entry point")


def _check_contents(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> None:
    """Check the sizes of all files by unpacking them in memory: the stated sizes may be false."""
    for member in members:
        if sum(map(len, _pieces(archive, member))) != member.file_size:
            raise BadArchiveError(f"has a file {_member_name(member)} of another size than it says")


def _pieces(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(member) as file:
        while piece := file.read(_PIECE):
            yield piece


def _member_name(member: zipfile.ZipInfo) -> str:
    return ascii(member.orig_filename[:60])
