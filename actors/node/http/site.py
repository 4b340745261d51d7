"""What a node serves over HTTP, and who may read it (S11).

Pages are read by GET; desks take more, and see for themselves who may ask.

Health is no secret. Metrics say how much traffic a domain has: without a token they are
for this machine only. What a proxy says of whom it speaks for is never believed; that one
speaks at all shows that the reader may be anywhere.
"""

import hmac
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from ipaddress import ip_address
from types import MappingProxyType
from typing import Final, TypeAlias, final

from actors.node.http.page import METHODS, Feed, Page, Visit, told
from actors.node.http.well_known import ROOT, WellKnown

__all__ = ["Gate", "HttpService", "Site", "Source", "is_loopback"]

Source: TypeAlias = Callable[[], Awaitable[Page]]
"""Makes a page anew for each visit."""

_PROXIED: Final = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
"""Headers that a proxy adds: their sender is not the one who asks."""


class HttpService(ABC):
    """One path where more can be asked than a page.

    Attributes:
        methods: What it is asked by.
        limit: Bytes that a body may have.
    """

    methods: tuple[str, ...]
    limit: int

    @abstractmethod
    def body_limit(self, visit: Visit) -> int:
        """Return how many bytes of the body of a visit are wanted, by its head; 0: none are."""

    @abstractmethod
    async def answer(self, visit: Visit) -> Page | Feed:
        """Do what is asked, and say how it went."""

    @abstractmethod
    def refused(self, status: HTTPStatus, why: str, *headers: tuple[str, str]) -> Page:
        """Say no."""


_NO_DESKS: Final[Mapping[str, HttpService]] = MappingProxyType({})


@final
class Gate:
    """Who may read metrics.

    Args:
        token: What has to be shown; None: nothing, but then only by who is on this
            machine, asks no proxy, and was not sent here by a page of somebody else.
    """

    def __init__(self, token: bytes | None) -> None:
        self._token = token

    def refusal(self, visit: Visit) -> Page | None:
        """Say no to a visit; None: it may go on."""
        if self._token is not None:
            return None if self._is_known(visit) else _UNKNOWN
        if any(visit.header(name) is not None for name in _PROXIED):
            return _REMOTE
        return None if is_loopback(_host(visit.header("host") or "")) else _REMOTE

    def _is_known(self, visit: Visit) -> bool:
        shown = visit.bearer
        if self._token is None or shown is None:
            return False
        return hmac.compare_digest(shown.encode("latin-1"), self._token)


_UNKNOWN: Final = told(
    HTTPStatus.UNAUTHORIZED,
    {"error": "show the token of this node as a bearer token"},
    ("www-authenticate", "Bearer"),
)
_REMOTE: Final = told(
    HTTPStatus.FORBIDDEN,
    {"error": "without a token this is readable on the node's own machine only"},
)
_MISSING: Final = told(HTTPStatus.NOT_FOUND, {"error": "nothing is served here"})
_METHOD: Final = told(
    HTTPStatus.METHOD_NOT_ALLOWED,
    {"error": "only GET and HEAD are served"},
    ("allow", ", ".join(METHODS)),
)


@final
class Site:
    """Answers visits.

    Args:
        public: Pages for everybody, by path.
        guarded: Pages for whom the gate lets in.
        gate: Who that is.
        desks: What else there is, by path.
        catalogue: What stands below /.well-known/; None: nothing.
    """

    def __init__(
        self,
        public: Mapping[str, Source],
        guarded: Mapping[str, Source],
        gate: Gate,
        desks: Mapping[str, HttpService] = _NO_DESKS,
        catalogue: WellKnown | None = None,
    ) -> None:
        self._public = public
        self._guarded = guarded
        self._gate = gate
        self._desks = desks
        self._catalogue = catalogue

    def body_limit(self, visit: Visit) -> int:
        """Return how many bytes of a body are wanted; 0: none are."""
        desk = self._desks.get(visit.path)
        if desk is None or visit.method == METHODS[0] or visit.method not in desk.methods:
            return 0
        return desk.body_limit(visit)

    def too_large(self, visit: Visit) -> Page:
        """Say that a body is over its limit."""
        desk = self._desks[visit.path]
        why = f"a body holds at most {desk.limit} bytes"
        return desk.refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)

    async def answer(self, visit: Visit) -> Page | Feed:
        """Return what is asked for, or what is said instead."""
        if self._catalogue is not None and visit.path.startswith(ROOT):
            return await self._catalogue.answer(visit)
        desk = self._desks.get(visit.path)
        if desk is not None:
            if visit.method in desk.methods:
                return await desk.answer(visit)
            allowed = ", ".join(desk.methods)
            why = f"it is asked by {allowed}"
            return desk.refused(HTTPStatus.METHOD_NOT_ALLOWED, why, ("allow", allowed))
        is_guarded = visit.path in self._guarded
        source = (self._guarded if is_guarded else self._public).get(visit.path)
        if source is None:
            return _MISSING
        if visit.method not in METHODS:
            return _METHOD
        refusal = self._gate.refusal(visit) if is_guarded else None
        return await source() if refusal is None else refusal


def is_loopback(host: str) -> bool:
    """Tell whether a name or number stands for the machine itself."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _host(authority: str) -> str:
    """Return a `Host` header without its port and brackets."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority.partition(":")[0]
