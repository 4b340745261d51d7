"""The pages of a node: /healthz, /readyz and /metrics, and who may read them (S11).

Health is no secret. Metrics say how much traffic a domain has: without a token they are
for this machine only. What a proxy says of whom it speaks for is never believed; that one
speaks at all shows that the reader may be anywhere.
"""

import hmac
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final, TypeAlias, final

from actors.node.http.page import METHODS, Page, Visit, told

__all__ = ["Gate", "Site", "Source", "is_loopback"]

Source: TypeAlias = Callable[[], Awaitable[Page]]
"""Makes a page anew for each visit."""

_BEARER: Final = "bearer "

_PROXIED: Final = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
"""Headers that a proxy adds: their sender is not the one who asks."""


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
        shown = visit.header("authorization") or ""
        if self._token is None or not shown.lower().startswith(_BEARER):
            return False
        token = shown[len(_BEARER) :].strip().encode("latin-1")
        return hmac.compare_digest(token, self._token)


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
    """

    def __init__(
        self, public: Mapping[str, Source], guarded: Mapping[str, Source], gate: Gate
    ) -> None:
        self._public = public
        self._guarded = guarded
        self._gate = gate

    async def answer(self, visit: Visit) -> Page:
        """Return the page that is asked for, or what is said instead."""
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
