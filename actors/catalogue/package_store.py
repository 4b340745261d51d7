"""Packages by their hash, so that no other can replace one (T15, CAT-11).

`fetched_package` fetches a package and compares it with its descriptor; `write_whole` writes a
file that survives a power failure, whole or not at all.
"""

import os
from abc import ABC, abstractmethod
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, final

import trio
from typing_extensions import override

from actors.catalogue.errors import NotServedError, SourceAwayError
from actors.catalogue.package.opening import flaw_of
from actors.catalogue.refusals import RefusalError, from_error
from actors.catalogue.source import Source, package_path
from specs.descriptor import SourcePackage
from specs.limits.catalogue import PACKAGE_BYTES

__all__ = ["FolderStore", "NoStore", "PackageStore", "fetched_package", "write_whole"]

_MODE: Final = 0o644


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that each reader finds the old content or the new one; blocks.

    On return, the new content is on the disk.

    Args:
        path: Path of the file; its folder is made if it does not exist.
        content: The new content.

    Raises:
        OSError: It cannot be written; the old content is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, _MODE)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class PackageStore(ABC):
    """Keeps packages that were verified; one that cannot be kept is no error."""

    @abstractmethod
    async def get(self, digest: str) -> bytes | None:
        """Return the package with a hash, which is computed again; None: there is none.

        If cancelled, nothing has changed.
        """

    @abstractmethod
    async def put(self, digest: str, content: bytes) -> None:
        """Keep a package.

        Args:
            digest: Its SHA-256, in hexadecimal digits.
            content: The package.

        If cancelled, the package may be kept.
        """


@final
class NoStore(PackageStore):
    """Keeps nothing."""

    @override
    async def get(self, digest: str) -> bytes | None:
        await trio.lowlevel.checkpoint()
        return None

    @override
    async def put(self, digest: str, content: bytes) -> None:
        await trio.lowlevel.checkpoint()


@final
class FolderStore(PackageStore):
    """Keeps packages as files in a folder.

    The returned bytes are the ones whose hash was computed; the file is read once.
    """

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder

    @override
    async def get(self, digest: str) -> bytes | None:
        return await trio.to_thread.run_sync(self._read, digest)

    @override
    async def put(self, digest: str, content: bytes) -> None:
        await trio.to_thread.run_sync(self._write, digest, content)

    def _read(self, digest: str) -> bytes | None:
        try:
            with (self._folder / digest).open("rb") as file:
                content = file.read(PACKAGE_BYTES + 1)
        except OSError:
            return None
        return content if sha256(content).hexdigest() == digest else None

    def _write(self, digest: str, content: bytes) -> None:
        with suppress(OSError):
            write_whole(self._folder / digest, content)


async def fetched_package(store: PackageStore, source: Source, promised: SourcePackage) -> bytes:
    """Return the package that a verified descriptor promises, and keep it.

    A kept package is verified like a fetched one, as its store may have changed it.

    Args:
        store: Keeps packages.
        source: The catalogue.
        promised: What the descriptor says of the package.

    If cancelled, the package may be kept.

    Raises:
        RefusalError: The package is not served, or is not the promised one.
    """
    kept = await store.get(promised.sha256)
    if kept is not None and flaw_of(promised, kept) is None:
        return kept
    try:
        content = await source.read(package_path(promised.sha256), PACKAGE_BYTES)
    except (NotServedError, SourceAwayError) as exc:
        raise RefusalError(from_error(exc)) from exc
    refused = flaw_of(promised, content)
    if refused is not None:
        raise RefusalError(refused)
    await store.put(promised.sha256, content)
    return content
