"""Packages by their hash, so that no other can take the place of one (T15, CAT-11)."""

from abc import ABC, abstractmethod
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, final

import trio
from typing_extensions import override

from actors.catalogue.atomic_file import write_whole
from specs.limits.catalogue import PACKAGE_BYTES

__all__ = ["FolderStore", "NoStore", "PackageStore"]


class PackageStore(ABC):
    """Keeps packages that were found to be in order; one that cannot be kept is no loss."""

    @abstractmethod
    async def get(self, digest: str) -> bytes | None:
        """Return the package with a hash, which is taken anew; None: there is none."""

    @abstractmethod
    async def put(self, digest: str, content: bytes) -> None:
        """Keep a package."""


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

    What is returned are the bytes that were hashed; the file is not looked at again.
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
