"""Catalogues: `[DOMAIN=]WHERE` as an operator writes it, and the sources that read them.

A source returns the bytes at a path `.well-known/<type>/<name>`. Sources are not trusted; only the
signature of a descriptor is. A directory has the same paths as files. An HTTP server cannot
redirect a reader to another host (S15).

WHERE is a directory or an `http(s)` URL. `{domain}` in it stands for the requested domain. The
sender of a message chooses that server, not the operator, so only its public addresses are
dialled (S15).
"""

import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias, final

import trio
from typing_extensions import override

from actors.catalogue.errors import NotServedError, SourceAwayError
from actors.kit import http_client
from actors.kit.arguments import PathInput, check_texts
from specs.addresses.address import WELL_KNOWN, parse
from specs.errors import BadUrlError, PlaceError
from specs.limits.foreign_code import FETCH_TIMEOUT
from specs.limits.protocol import GOODBYE_TIMEOUT

LISTING: Final = f"{WELL_KNOWN}/actors-catalogue.json"
"""Path of a list of all entries, for people; it is not signed."""


def package_path(sha256: str) -> str:
    """Return the path of a package: its name is its hash, so no other package can replace it."""
    return f"{WELL_KNOWN}/sourcepackage/{sha256}"


class Source(ABC):
    """Interface for reading the files of one catalogue.

    Attributes:
        proves_domain: Whether the content certainly comes from the named place.
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


class MemorySource(Source):
    """A catalogue in memory, for programs with catalogues of their own.

    Args:
        files: Content by path; the creator may change the mapping.
    """

    proves_domain = True

    def __init__(self, name: str, files: Mapping[str, bytes]) -> None:
        self.name = name
        self._files = files

    @override
    async def read(self, path: str, limit: int) -> bytes:
        await trio.lowlevel.checkpoint()
        return read_content(self._files.get(path), self.name, path, limit)

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


def read_content(content: bytes | None, source: str, path: str, limit: int) -> bytes:
    """Return the content of a file, or raise if there is none or too much.

    Args:
        content: Content of the file; None: there is no file.
        source: Name of the source.
        path: Path of the file there.
        limit: Bytes of a file at most.

    Raises:
        NotServedError: There is no file.
        SourceAwayError: The file is larger.
    """
    if content is None:
        raise NotServedError(source, path)
    if len(content) > limit:
        raise SourceAwayError(source, f"{path} is larger than {limit} bytes")
    return content


_PATH: Final = re.compile(rf"{re.escape(WELL_KNOWN)}(?:/[A-Za-z0-9][A-Za-z0-9._-]*){{1,2}}")
_NOTHING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG})


class DirectorySource(Source):
    """Catalogue in a local directory; its files are not trusted either."""

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
        return read_content(content, self.name, path, limit)


_ABSENT: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


class HttpSource(Source):
    """Catalogue on an HTTP server.

    Args:
        server: URL of the catalogue; paths are appended to its path.
        egress: Network addresses that may be dialled; checked for each new connection.
    """

    def __init__(
        self, server: http_client.ServerUrl, egress: http_client.Egress = http_client.dial_anywhere
    ) -> None:
        self.name = server.text
        self.proves_domain = server.scheme == "https"
        self._client = http_client.HttpClient(server, dial=http_client.sockets(egress))

    @override
    async def read(self, path: str, limit: int) -> bytes:
        try:
            with trio.fail_after(FETCH_TIMEOUT):
                answer = await self._client.read(f"/{path}", limit)
        except trio.TooSlowError as exc:
            raise SourceAwayError(self.name, f"no answer within {FETCH_TIMEOUT:g} s") from exc
        except http_client.HttpError as exc:
            raise SourceAwayError(self.name, exc.reason) from exc
        return self._content(answer, path)

    @override
    async def aclose(self) -> None:
        await self._client.aclose()

    def _content(self, answer: http_client.HttpAnswer, path: str) -> bytes:
        if answer.status in _ABSENT:
            raise NotServedError(self.name, path)
        if answer.status != HTTPStatus.OK:
            raise SourceAwayError(self.name, f"it answers with status {answer.status}")
        return answer.body


DOMAIN: Final = "{domain}"
"""Placeholder for the requested domain in the URL or directory of a catalogue."""

_URL: Final = "://"

Maker: TypeAlias = Callable[[str], Source]
"""Opens the catalogue of a domain; raises `BadPlaceError`."""

_NONE: Final[Mapping[str, Maker]] = MappingProxyType({})


@final
class BadPlaceError(PlaceError, public=True):
    """A text names neither a catalogue directory nor a catalogue server."""

    summary = "{!r} is no catalogue"


@final
class Places:
    """Locations of the catalogues that a runtime uses, by domain.

    Args:
        named: Makers by domain.
        general: Maker for every other domain; None: other domains have no catalogue.
    """

    def __init__(self, named: Mapping[str, Maker] = _NONE, general: Maker | None = None) -> None:
        self._named = named
        self._general = general

    @asynccontextmanager
    async def open(self, domain: str) -> AsyncIterator[Source | None]:
        """Open the catalogue of a domain while the context is open; it yields None without one.

        When the context is left, the catalogue is closed, within `GOODBYE_TIMEOUT` seconds; also
        if cancelled.

        Raises:
            BadPlaceError: The domain does not fit into the URL that stands for all domains.
        """
        maker = self._named.get(domain, self._general)
        if maker is None:
            yield None
            return
        source = maker(domain)
        try:
            yield source
        finally:
            with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                await source.aclose()


def _several(places: Iterable[PathInput]) -> Iterable[PathInput]:
    """Refuse one place instead of several."""
    if isinstance(places, str | bytes | os.PathLike) or not isinstance(places, Iterable):
        raise TypeError(f"the places must be several, such as a list, not {type(places).__name__}")
    return places


def read_places(texts: Iterable[PathInput]) -> Places:
    """Read places of catalogues: `DIRECTORY`, `URL`, `DOMAIN=DIRECTORY` or `DOMAIN=URL`.

    Args:
        texts: The places, as an operator writes them; a directory may be an `os.PathLike`.

    Raises:
        TypeError: It is one place instead of several, or a place is of a wrong kind.
        BadPlaceError: A text is not a place, or two are for the same domain.
    """
    named: dict[str, Maker] = {}
    general: Maker | None = None
    places = [
        os.fspath(each) if isinstance(each, os.PathLike) else each for each in _several(texts)
    ]
    check_texts(places, "the places")
    for text in places:
        domain, where = _split(text)
        if domain in named or (domain is None and general is not None):
            raise BadPlaceError(text, f"there is another one for {domain or 'all domains'}")
        if domain is None:
            general = _maker(where)
        else:
            named[domain] = _maker(where)
    return Places(named, general)


def source_at(where: str, egress: http_client.Egress = http_client.dial_anywhere) -> Source:
    """Open the catalogue at a directory or URL.

    Args:
        where: The place.
        egress: Check of the addresses to dial.

    Raises:
        BadPlaceError: `where` is neither a directory nor a URL.
    """
    if _URL not in where:
        return DirectorySource(Path(where))
    try:
        return HttpSource(http_client.ServerUrl.read(where), egress)
    except http_client.HttpUrlError as exc:
        raise BadPlaceError(where, exc.reason) from exc


def _maker(where: str) -> Maker:
    """Return a maker of a catalogue source, after a check of its URL."""
    if _URL in where:
        try:
            http_client.ServerUrl.read(where.replace(DOMAIN, "a.example"))
        except http_client.HttpUrlError as exc:
            raise BadPlaceError(where, exc.reason) from exc
    return partial(_open, where)


def _open(where: str, domain: str) -> Source:
    egress = http_client.dial_public if DOMAIN in where else http_client.dial_anywhere
    return source_at(where.replace(DOMAIN, domain), egress)


def _split(text: str) -> tuple[str | None, str]:
    """Separate domain and place; a directory with `=` in its name needs a slash before it."""
    name, equals, where = text.partition("=")
    if not equals or "/" in name:
        domain, where = None, text
    else:
        try:
            domain = parse(f"domain://{name}").domain
        except BadUrlError as exc:
            raise BadPlaceError(text, f"{name!r} is no domain such as b.example") from exc
    if not where:
        raise BadPlaceError(text, "it names no directory and no URL")
    return domain, where
