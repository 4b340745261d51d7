"""A catalogue in a directory: files lie as their URLs say, `DIR/.well-known/<type>/<name>`."""

import errno
import re
from pathlib import Path
from typing import Final, final

import trio
from typing_extensions import override

from actors.catalogue.errors import NotServedError, SourceAwayError
from actors.catalogue.source import Source
from specs.addresses.descriptor import WELL_KNOWN

__all__ = ["DirectorySource"]

_PATH: Final = re.compile(rf"{re.escape(WELL_KNOWN)}(?:/[A-Za-z0-9][A-Za-z0-9._-]*){{1,2}}")
_NOTHING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG})


@final
class DirectorySource(Source):
    """Reads a directory; whoever may write there is believed no more than any other source."""

    proves_domain = True

    def __init__(self, directory: Path) -> None:
        self.name = str(directory)
        self._directory = directory

    @override
    async def read(self, path: str, limit: int) -> bytes:
        return await trio.to_thread.run_sync(self._read, path, limit)

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    def _read(self, path: str, limit: int) -> bytes:
        if not _PATH.fullmatch(path):
            raise NotServedError(self.name, path)
        try:
            root = (self._directory / WELL_KNOWN).resolve()
            file = (self._directory / path).resolve(strict=True)
            if not file.is_relative_to(root) or not file.is_file():
                raise NotServedError(self.name, path)
            with file.open("rb") as opened:
                content = opened.read(limit + 1)
        except OSError as exc:
            if exc.errno in _NOTHING:
                raise NotServedError(self.name, path) from exc
            raise SourceAwayError(self.name, exc.strerror or "it cannot be read") from exc
        if len(content) > limit:
            raise SourceAwayError(self.name, f"{path} is larger than {limit} bytes")
        return content
