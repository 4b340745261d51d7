"""The sources of a catalogue: memory, a directory, or an HTTP server.

A source returns the bytes at a path `.well-known/<type>/<name>`. It is not trusted: only the
signature of a descriptor is. A directory has the same paths as files. An HTTP server cannot
redirect a reader to another host (S15).
"""

import errno
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final, final

import trio
from typing_extensions import override

from actors.catalogue.errors import NotServedError, SourceAwayError
from actors.kit.egress import ANYWHERE, Egress
from actors.kit.http_client import HttpAnswer, HttpClient, HttpError, ServerUrl, sockets
from specs.addresses.descriptor import WELL_KNOWN
from specs.limits.catalogue import FETCH_TIMEOUT

__all__ = [
    "DOMAIN_KEYS",
    "LISTING",
    "REVOKED",
    "DirectorySource",
    "HttpSource",
    "MemorySource",
    "Source",
    "package_path",
]

DOMAIN_KEYS: Final = f"{WELL_KNOWN}/actors.json"
"""Path of the public keys of the domain, a JSON Web Key Set (T12)."""

REVOKED: Final = f"{WELL_KNOWN}/actors-revoked.jws"
"""Path of the signed list of revocations of the domain (T14)."""

LISTING: Final = f"{WELL_KNOWN}/actors-catalogue.json"
"""Path of a list of all entries, for people; it is not signed."""


def package_path(sha256: str) -> str:
    """Return the path of a package: its name is its hash, so no other can replace it."""
    return f"{WELL_KNOWN}/sourcepackage/{sha256}"


class Source(ABC):
    """A catalogue, wherever it is.

    Attributes:
        name: Its name for an operator.
        proves_domain: Whether its content surely comes from the place that it is named after.
    """

    name: str
    proves_domain: bool

    @abstractmethod
    async def read(self, path: str, limit: int) -> bytes:
        """Return the bytes at a path.

        Args:
            path: Path as the functions and constants of this module give it.
            limit: Largest size in bytes; at most one more byte is read.

        If cancelled, nothing is left open.

        Raises:
            NotServedError: Nothing is at the path.
            SourceAwayError: The catalogue cannot be read, or the content is larger.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close all connections.

        If cancelled, they are closed by force.
        """


@final
class MemorySource(Source):
    """A catalogue in memory, for programs that bring their own.

    Args:
        name: Its name for an operator.
        files: Content by path; its creator may change it.
    """

    proves_domain = True

    def __init__(self, name: str, files: Mapping[str, bytes]) -> None:
        self.name = name
        self._files = files

    @override
    async def read(self, path: str, limit: int) -> bytes:
        await trio.lowlevel.checkpoint()
        content = self._files.get(path)
        if content is None:
            raise NotServedError(self.name, path)
        if len(content) > limit:
            raise SourceAwayError(self.name, f"{path} is larger than {limit} bytes")
        return content

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


_PATH: Final = re.compile(rf"{re.escape(WELL_KNOWN)}(?:/[A-Za-z0-9][A-Za-z0-9._-]*){{1,2}}")
_NOTHING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG})


@final
class DirectorySource(Source):
    """Reads a directory; its files are trusted no more than any other source."""

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


_ABSENT: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


@final
class HttpSource(Source):
    """Asks one server, by its URL.

    Args:
        server: URL of the catalogue; paths are appended to its path.
        egress: Network addresses that may be dialled; checked for each new connection.
    """

    def __init__(self, server: ServerUrl, egress: Egress = ANYWHERE) -> None:
        self.name = server.text
        self.proves_domain = server.scheme == "https"
        self._client = HttpClient(server, dial=sockets(egress))

    @override
    async def read(self, path: str, limit: int) -> bytes:
        try:
            with trio.fail_after(FETCH_TIMEOUT):
                answer = await self._client.read(f"/{path}", limit)
        except trio.TooSlowError as exc:
            raise SourceAwayError(self.name, f"no answer within {FETCH_TIMEOUT:g} s") from exc
        except HttpError as exc:
            raise SourceAwayError(self.name, exc.reason) from exc
        return self._content(answer, path)

    @override
    async def aclose(self) -> None:
        await self._client.aclose()

    def _content(self, answer: HttpAnswer, path: str) -> bytes:
        if answer.status in _ABSENT:
            raise NotServedError(self.name, path)
        if answer.status != HTTPStatus.OK:
            raise SourceAwayError(self.name, f"it answers with status {answer.status}")
        return answer.body
