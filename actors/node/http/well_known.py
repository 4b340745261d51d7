"""The catalogue of a domain, served from a directory (CAT-09, ADR-09): GET and HEAD only.

What is served is what `stub publish` wrote, byte for byte; nobody who fetches it believes
the node for it. An attribute of a descriptor is cut out of it: handy, and signed by nobody.
"""

from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Final, final

import orjson

from actors.catalogue.errors import BadSealError, NotServedError, SourceAwayError
from actors.catalogue.package.seal import SealType, read_seal
from actors.catalogue.source import DOMAIN_KEYS, LISTING, REVOKED, DirectorySource, package_path
from actors.node.http.page import METHODS, Page, Visit, told
from specs.addresses.descriptor import WELL_KNOWN, Entry, entry_at
from specs.limits.catalogue import DESCRIPTOR_BYTES, LISTING_BYTES, PACKAGE_BYTES, REVOCATIONS_BYTES
from specs.limits.login import JWKS_BYTES

__all__ = ["ROOT", "WellKnown"]

ROOT: Final = f"/{WELL_KNOWN}/"
"""What the paths of a catalogue begin with."""

_SIGNED: Final = "application/jose"
_FILES: Final = {
    DOMAIN_KEYS: (JWKS_BYTES, "application/jwk-set+json"),
    REVOKED: (REVOCATIONS_BYTES, _SIGNED),
    LISTING: (LISTING_BYTES, "application/json"),
}
"""How large each file may be, and what it is."""

_PACKAGES: Final = package_path("")
_MISSING: Final = told(HTTPStatus.NOT_FOUND, {"error": "the catalogue has nothing there"})
_AWAY: Final = told(
    HTTPStatus.SERVICE_UNAVAILABLE, {"error": "the catalogue cannot be read; try again later"}
)
_METHOD: Final = told(
    HTTPStatus.METHOD_NOT_ALLOWED,
    {"error": "only GET and HEAD are served"},
    ("allow", ", ".join(METHODS)),
)


@final
class WellKnown:
    """Answers visits to a catalogue.

    Args:
        domain: The domain whose catalogue it is.
        directory: What holds it; read anew for each visit.
    """

    def __init__(self, domain: str, directory: Path) -> None:
        self._domain = domain
        self._source = DirectorySource(directory)

    async def answer(self, visit: Visit) -> Page:
        """Return what stands at a path below `ROOT`, or what is said instead."""
        if visit.method not in METHODS:
            return _METHOD
        try:
            content, kind = await self._content(visit.path.removeprefix("/"))
        except NotServedError:
            return _MISSING
        except SourceAwayError:
            return _AWAY
        return _unless_known(content, kind, visit)

    async def _content(self, path: str) -> tuple[bytes, str]:
        if path in _FILES:
            limit, kind = _FILES[path]
            return await self._source.read(path, limit), kind
        if path.startswith(_PACKAGES):
            return await self._source.read(path, PACKAGE_BYTES), "application/zip"
        _, *rest = path.split("/")
        entry = entry_at(self._domain, rest[0], rest[1]) if len(rest) in {2, 3} else None
        if entry is None:
            raise NotServedError(self._source.name, path)
        text = await self._source.read(entry.path, DESCRIPTOR_BYTES)
        _, _, *attributes = rest
        return (text, _SIGNED) if not attributes else self._attribute(entry, text, attributes[0])

    def _attribute(self, entry: Entry, text: bytes, name: str) -> tuple[bytes, str]:
        try:
            content = read_seal(text, SealType.DESCRIPTOR).content
        except BadSealError as exc:
            raise SourceAwayError(self._source.name, exc.why) from exc
        if name not in content:
            raise NotServedError(self._source.name, f"{entry.path}/{name}")
        return orjson.dumps(content[name]), "application/json"


def _unless_known(content: bytes, kind: str, visit: Visit) -> Page:
    """Return a page, or only that it is the one that is known already (RFC 9110, 13.1.2)."""
    tag = f'"{sha256(content).hexdigest()}"'
    headers = (("etag", tag), ("cache-control", "no-cache"))
    known = [
        one.strip().removeprefix("W/") for one in (visit.header("if-none-match") or "").split(",")
    ]
    if tag in known or known == ["*"]:
        return Page(HTTPStatus.NOT_MODIFIED, b"", kind, headers)
    return Page(HTTPStatus.OK, content, kind, headers)
