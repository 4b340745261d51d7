"""The paths that a process serves over HTTP, and the permissions of readers (S11).

Pages are read by GET; services accept other methods, and check their clients themselves. Health is
no secret. Metrics reveal the traffic of a domain: without a token only this machine may read them.
The claims of a proxy about its clients are never trusted; a proxy only shows that the reader may be
anywhere. The catalogue of the domain is served byte for byte as `stub publish` wrote it (CAT-09,
ADR-09); an attribute of a descriptor is extracted, unsigned.
"""

import hmac
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

import attrs
import orjson
import trio

from actors.catalogue.errors import BadSealError, NotServedError, SourceAwayError
from actors.catalogue.seal import SealType, read_seal
from actors.catalogue.source import LISTING, package_path
from actors.catalogue.source import Source as CatalogueSource
from specs.addresses import address
from specs.jsonvalue import Json, JsonObject
from specs.limits import foreign_code
from specs.limits.node import JWKS_BYTES
from specs.limits.protocol import RETRY_AFTER
from transports.urls import is_this_machine

METHODS: Final = ("GET", "HEAD")
"""Methods of pages, which only read."""

_BEARER: Final = "bearer "

_NO_QUERY: Final[Mapping[str, str]] = MappingProxyType({})

Headers = tuple[tuple[str, str], ...]
"""Names of headers in lower case, and their values."""


@attrs.frozen
class Visit:
    """HTTP request of a client.

    Attributes:
        query: Decoded fields; of a repeated name the last value.
        body: The body; empty for pages.
        host: Host of the client, from the operating system.
        own_origin: The web origin of pages of the listener itself.
        version: Version of HTTP.
    """

    method: str
    path: str
    headers: Headers = ()
    query: Mapping[str, str] = _NO_QUERY
    body: bytes = b""
    host: str = ""
    own_origin: str = ""
    version: str = "1.1"

    def header(self, name: str) -> str | None:
        """Return the value of a header; of several the first; None: it is missing."""
        return next((value for each, value in self.headers if each == name), None)

    @property
    def bearer(self) -> str | None:
        """The bearer token of the request (RFC 6750, 2.1); None: there is none."""
        header = self.header("authorization") or ""
        return header[len(_BEARER) :].strip() if header.lower().startswith(_BEARER) else None


@attrs.frozen
class Page:
    """Complete HTTP answer.

    Attributes:
        body: The whole body; for `HEAD` only its length is sent.
    """

    status: HTTPStatus
    body: bytes
    content_type: str = "application/json"
    headers: Headers = ()


class Parts(ABC):
    """Source of a streamed answer: returns the answer part by part."""

    @abstractmethod
    async def next(self) -> bytes | None:
        """Return the next part; None: there are no more.

        If cancelled, no part is lost that can be requested again.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the resources of the source when the response is over. Idempotent."""


@attrs.frozen
class Feed:
    """HTTP answer whose body is streamed from a source."""

    status: HTTPStatus
    source: Parts
    content_type: str
    headers: Headers = ()


LATER: Final = ("retry-after", f"{RETRY_AFTER:.0f}")
"""Header `retry-after`, for an answer with status 503."""


def json_page(status: HTTPStatus, value: Json, *headers: tuple[str, str]) -> Page:
    """Make an answer of JSON.

    Args:
        status: HTTP status.
        value: Content of the page.
        *headers: Further headers.
    """
    return Page(status, orjson.dumps(value) + b"\n", headers=headers)


ROOT: Final = f"/{address.WELL_KNOWN}/"
"""Prefix of the paths of a catalogue."""

_SIGNED: Final = "application/jose"
_KEY_SET: Final = "application/jwk-set+json"
_FILES: Final = {
    address.DOMAIN_KEYS: (JWKS_BYTES, _KEY_SET),
    address.REVOKED: (foreign_code.REVOCATIONS_BYTES, _SIGNED),
    LISTING: (foreign_code.LISTING_BYTES, "application/json"),
}
"""Largest size and media type of each file."""

_PACKAGES: Final = package_path("")
_NOT_PUBLISHED: Final = json_page(
    HTTPStatus.NOT_FOUND, {"error": "the catalogue has nothing there"}
)
_AWAY: Final = json_page(
    HTTPStatus.SERVICE_UNAVAILABLE,
    {"error": "the catalogue cannot be read; try again later"},
    LATER,
)


class WellKnown:
    """Handler of requests for the files of a catalogue.

    Args:
        source: Source of the catalogue; read again for each visit.
    """

    def __init__(self, domain: str, source: CatalogueSource) -> None:
        self._domain = domain
        self._source = source

    async def answer(self, visit: Visit) -> Page:
        """Return the file at a path below `ROOT`, or an error page."""
        if visit.method not in METHODS:
            return READ_ONLY
        try:
            content, kind = await self._content(visit.path.removeprefix("/"))
        except NotServedError:
            return _NOT_PUBLISHED
        except SourceAwayError:
            return _AWAY
        return unless_known(visit, content, kind)

    async def _content(self, path: str) -> tuple[bytes, str]:
        if path in _FILES:
            limit, kind = _FILES[path]
            return await self._source.read(path, limit), kind
        if path.startswith(_PACKAGES):
            return await self._source.read(path, foreign_code.PACKAGE_BYTES), "application/zip"
        _, *rest = path.split("/")
        entry = address.entry_at(self._domain, rest[0], rest[1]) if len(rest) in {2, 3} else None
        if entry is None:
            raise NotServedError(self._source.name, path)
        text = await self._source.read(entry.path, foreign_code.DESCRIPTOR_BYTES)
        _, _, *attributes = rest
        return (text, _SIGNED) if not attributes else self._attribute(entry, text, attributes[0])

    def _attribute(self, entry: address.Entry, text: bytes, name: str) -> tuple[bytes, str]:
        try:
            content = read_seal(text, SealType.DESCRIPTOR).content
        except BadSealError as exc:
            raise SourceAwayError(self._source.name, exc.refused.why) from exc
        if name not in content:
            raise NotServedError(self._source.name, f"{entry.path}/{name}")
        return orjson.dumps(content[name]), "application/json"


def unless_known(visit: Visit, content: bytes, kind: str, *headers: tuple[str, str]) -> Page:
    """Return a page, or status 304 if the client has the same page (RFC 9110, 13.1.2).

    Args:
        visit: The request.
        content: Content of the page.
        kind: Media type of the page.
        *headers: Further headers.
    """
    tag = f'"{sha256(content).hexdigest()}"'
    all_headers = (("etag", tag), ("cache-control", "no-cache"), *headers)
    known_tags = [
        each.strip().removeprefix("W/") for each in (visit.header("if-none-match") or "").split(",")
    ]
    if tag in known_tags or known_tags == ["*"]:
        return Page(HTTPStatus.NOT_MODIFIED, b"", kind, all_headers)
    return Page(HTTPStatus.OK, content, kind, all_headers)


STATEMENT_KEYS: Final = f"{ROOT}jwks.json"
"""Path of the keys that verify the statements of a domain about its runtimes.

They sign no descriptors: those keys are in the catalogue, and their private parts need not be at
the node.
"""


def keys_page(keys: JsonObject) -> "Source":
    """Return the handler of the page with public keys."""
    page = Page(HTTPStatus.OK, orjson.dumps(keys) + b"\n", _KEY_SET)

    async def show() -> Page:
        await trio.lowlevel.checkpoint()
        return page

    return show


Source: TypeAlias = Callable[[], Awaitable[Page]]
"""Handler that makes the page for each request."""

_PROXIED: Final = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
"""Headers that a proxy adds."""


_OLD: Final = "1.0"
"""The version of HTTP that nginx uses as a proxy by default.

Then nginx adds no header, and names this machine as the host.
"""

_OTHER_SITES: Final = ("cross-site", "same-site")
"""Values of the header by which a browser reports a request of a page of another origin."""


class HttpService(ABC):
    """Handler of requests at a path that accepts methods other than GET.

    Attributes:
        limit: Maximal bytes of a body.
    """

    methods: tuple[str, ...]
    limit: int

    @abstractmethod
    def body_limit(self, visit: Visit) -> int:
        """Return how many bytes of the body are read, from the head of a visit; 0: none."""

    @abstractmethod
    async def answer(self, visit: Visit) -> Page | Feed:
        """Execute a request, and return its answer."""

    @abstractmethod
    def refusal_page(self, status: HTTPStatus, why: str, *headers: tuple[str, str]) -> Page:
        """Return the page of a refusal.

        Args:
            status: HTTP status.
            why: The reason.
            *headers: Further headers.
        """


_NO_SERVICES: Final[Mapping[str, HttpService]] = MappingProxyType({})

Folder: TypeAlias = Callable[[Visit], Awaitable[Page]]
"""Handler of all requests below a path."""

_NO_FOLDERS: Final[Mapping[str, Folder]] = MappingProxyType({})


class Gate:
    """Access check for the metrics page.

    Args:
        token: Required bearer token; None: no token, but then only readers on this machine,
            without a proxy, and not from a page of another origin.
    """

    def __init__(self, token: bytes | None) -> None:
        self._token = token

    def refusal(self, visit: Visit) -> Page | None:
        """Return the refusal of a visit; None: the visit is admitted."""
        if self._token is not None:
            return None if self._is_known(visit) else _UNKNOWN
        if visit.version == _OLD or any(visit.header(name) is not None for name in _PROXIED):
            return _REMOTE
        if visit.header("sec-fetch-site") in _OTHER_SITES:
            return _REMOTE
        return (
            None
            if is_this_machine(address.host_in_authority(visit.header("host") or ""))
            else _REMOTE
        )

    def _is_known(self, visit: Visit) -> bool:
        bearer = visit.bearer
        if self._token is None or bearer is None:
            return False
        return hmac.compare_digest(bearer.encode("latin-1"), self._token)


_UNKNOWN: Final = json_page(
    HTTPStatus.UNAUTHORIZED,
    {"error": "show the token of this process as a bearer token"},
    ("www-authenticate", "Bearer"),
)
_REMOTE: Final = json_page(
    HTTPStatus.FORBIDDEN,
    {"error": "without a token this is readable on its own machine only"},
)
_MISSING: Final = json_page(HTTPStatus.NOT_FOUND, {"error": "nothing is served here"})
READ_ONLY: Final = json_page(
    HTTPStatus.METHOD_NOT_ALLOWED,
    {"error": "only GET and HEAD are served"},
    ("allow", ", ".join(METHODS)),
)


class Site:
    """All pages and services of a process; answers each request by its path.

    Args:
        public: Pages for everybody, by path.
        guarded: Pages for readers that the gate admits.
        gate: Admits readers.
        services: Services, by path.
        folders: Handlers of all other paths below a prefix that ends with a slash.
    """

    def __init__(
        self,
        public: Mapping[str, Source],
        guarded: Mapping[str, Source],
        gate: Gate,
        services: Mapping[str, HttpService] = _NO_SERVICES,
        folders: Mapping[str, Folder] = _NO_FOLDERS,
    ) -> None:
        self._public = public
        self._guarded = guarded
        self._gate = gate
        self._services = services
        self._folders = folders

    def body_limit(self, visit: Visit) -> int:
        """Return how many bytes of a body are read; 0: none."""
        service = self._services.get(visit.path)
        if service is None or visit.method == METHODS[0] or visit.method not in service.methods:
            return 0
        return service.body_limit(visit)

    def too_large(self, visit: Visit) -> Page:
        """Return the page for a body over its limit."""
        service = self._services[visit.path]
        why = f"a body holds at most {service.limit} bytes"
        return service.refusal_page(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)

    async def answer(self, visit: Visit) -> Page | Feed:
        """Return the requested page, or an error page."""
        service = self._services.get(visit.path)
        if service is not None:
            if visit.method in service.methods:
                return await service.answer(visit)
            allowed = ", ".join(service.methods)
            why = f"the methods here are {allowed}"
            return service.refusal_page(HTTPStatus.METHOD_NOT_ALLOWED, why, ("allow", allowed))
        is_guarded = visit.path in self._guarded
        source = (self._guarded if is_guarded else self._public).get(visit.path)
        if source is None:
            for root, folder in self._folders.items():
                if visit.path.startswith(root):
                    return await folder(visit)
            return _MISSING
        if visit.method not in METHODS:
            return READ_ONLY
        refusal = self._gate.refusal(visit) if is_guarded else None
        return await source() if refusal is None else refusal


# The files of the package `web` for browsers: pages, styles and modules.

WEB: Final = "/web/"
"""Prefix of the paths of the files."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of pages: no inline code, no other origins, no frames."""

MODULE_POLICY: Final = "default-src 'none'; script-src blob:"
"""The policy of modules, which applies if a browser runs one as a Worker, or shows it as a page.

The Worker may run code that it is given, and may load nothing.
"""

_DIALLING: Final = POLICY.replace("connect-src 'self'", "connect-src 'self' ws: wss:")
"""The policy of pages with a runtime, which dials a node that the user names."""

_FOLDERS: Final = ("dashboard", "demo", "example", "src")
"""Served folders, besides the files next to them; a checkout may have other folders."""

_ROOT: Final = Path(__file__).parents[2] / "web"
"""The package `web` beside this one; an application may have another package of that name."""

_RUNNING: Final = ("demo/", "example/")
"""Folders of pages with a runtime."""

_PAGE: Final = "text/html; charset=utf-8"
_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".html": _PAGE,
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".json": "application/json",
        ".svg": "image/svg+xml",
        ".ts": "text/plain; charset=utf-8",
    }
)
"""Media types by suffix; no other file is served."""

_MODULE: Final = _KINDS[".js"]
_PAGE_HEADERS: Final = (
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
)
_NO_FILE: Final = json_page(HTTPStatus.NOT_FOUND, {"error": "no file is served here"})


class WebFiles:
    """Handler of requests for files of the web pages, below `WEB`."""

    def __init__(self) -> None:
        self._files: Final = dict(_files())

    async def answer(self, visit: Visit) -> Page:
        """Return the file at a path, or an error page."""
        if visit.method not in METHODS:
            return READ_ONLY
        name = visit.path.removeprefix(WEB)
        file = self._files.get(name)
        if file is None:
            return _NO_FILE
        try:
            content = await trio.Path(file).read_bytes()
        except OSError:
            return _NO_FILE
        kind = _KINDS[file.suffix]
        return unless_known(visit, content, kind, *_headers(name, kind))


def _headers(name: str, kind: str) -> tuple[tuple[str, str], ...]:
    if kind == _PAGE:
        policy = _DIALLING if name.startswith(_RUNNING) else POLICY
        return ("content-security-policy", policy), *_PAGE_HEADERS
    return (("content-security-policy", MODULE_POLICY),) if kind == _MODULE else ()


def _files() -> Iterator[tuple[str, Path]]:
    """Yield all served web files with their paths in the package; none without the package."""
    inside = (path for folder in _FOLDERS for path in (_ROOT / folder).rglob("*"))
    for path in sorted((*_ROOT.glob("protofly*.*"), *inside)):
        if path.suffix in _KINDS and path.is_file():
            yield path.relative_to(_ROOT).as_posix(), path
