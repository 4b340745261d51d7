"""The catalogue of each domain: `[DOMAIN=]WHERE`, as an operator writes it.

WHERE is a directory or an `http(s)` URL. `{domain}` in it stands for the domain that is
asked about. The operator has not named a server that is found that way, but the sender of
some message has; so only public addresses of it are dialled (S15).
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias, final

import trio

from actors.catalogue.source import DirectorySource, Source
from actors.kit.egress import ANYWHERE, PUBLIC, Egress
from actors.kit.http_client import HttpUrlError, ServerUrl
from specs.addresses.address import parse
from specs.errors import BadUrlError, PlaceError
from specs.limits.protocol import GOODBYE_TIMEOUT

__all__ = ["DOMAIN", "BadPlaceError", "Maker", "Places", "read_places", "source_at"]

DOMAIN: Final = "{domain}"
"""Stands for the domain in a place."""

_URL: Final = "://"

Maker: TypeAlias = Callable[[str], Source]
"""Opens the catalogue of a domain; raises `BadPlaceError`."""

_NONE: Final[Mapping[str, Maker]] = MappingProxyType({})


@final
class BadPlaceError(PlaceError):
    """A text names neither a catalogue directory nor a catalogue server."""

    told = "{!r} is no catalogue"


@final
class Places:
    """The catalogues of a runtime.

    Args:
        named: Maker of a catalogue, by domain.
        general: Maker for every other domain; None: those have no catalogue.
    """

    def __init__(self, named: Mapping[str, Maker] = _NONE, general: Maker | None = None) -> None:
        self._named = named
        self._general = general

    @asynccontextmanager
    async def open(self, domain: str) -> AsyncIterator[Source | None]:
        """Open the catalogue of a domain while the context is open; it yields None without one.

        When the context is left, the catalogue is closed, within `GOODBYE_TIMEOUT` seconds; also
        if cancelled.

        Args:
            domain: Name of the domain.

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


def read_places(texts: Iterable[str]) -> Places:
    """Read places of catalogues: `DIRECTORY`, `URL`, `DOMAIN=DIRECTORY` or `DOMAIN=URL`.

    Args:
        texts: The places, as an operator writes them.

    Raises:
        BadPlaceError: A text is not a place, or two are for the same domain.
    """
    named: dict[str, Maker] = {}
    general: Maker | None = None
    for text in texts:
        domain, where = _split(text)
        if domain in named or (domain is None and general is not None):
            raise BadPlaceError(text, f"there is another one for {domain or 'all domains'}")
        if domain is None:
            general = _maker(where)
        else:
            named[domain] = _maker(where)
    return Places(named, general)


def source_at(where: str, egress: Egress = ANYWHERE) -> Source:
    """Open the catalogue at a directory or URL.

    Args:
        where: The directory or URL.
        egress: The network addresses that may be dialled.

    Raises:
        BadPlaceError: `where` is neither.
    """
    if _URL not in where:
        return DirectorySource(Path(where))
    # Slow to import, and not needed by who reads directories only.
    from actors.catalogue.source import HttpSource  # noqa: PLC0415

    try:
        return HttpSource(ServerUrl.read(where), egress)
    except HttpUrlError as exc:
        raise BadPlaceError(where, exc.reason) from exc


def _maker(where: str) -> Maker:
    """Return what opens a catalogue, after a check of its URL."""
    if _URL in where:
        try:
            ServerUrl.read(where.replace(DOMAIN, "a.example"))
        except HttpUrlError as exc:
            raise BadPlaceError(where, exc.reason) from exc
    return partial(_open, where)


def _open(where: str, domain: str) -> Source:
    egress = PUBLIC if DOMAIN in where else ANYWHERE
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
