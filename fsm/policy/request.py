"""The knowledge about one message when it is judged (POL-04, POL-11)."""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Final, TypeAlias, final

import attrs

from specs.addresses.address import address_allocation as allocation_of
from specs.addresses.address import canonical, domain_of, is_backend
from specs.addresses.address import session_manager as sessions_of
from specs.errors import BadUrlError
from specs.identity import Identity
from specs.jsonvalue import Json
from specs.limits.protocol import MAX_LIST
from specs.message import Message, MessageType

__all__ = ["Moment", "Place", "Request", "Value", "domain", "subjects"]

Value: TypeAlias = str | int | float | bool | frozenset[str]
"""Values of an attribute."""

Owns: TypeAlias = Callable[[str, str], bool]
"""A test whether an address is of a runtime's session."""


@final
@attrs.frozen(slots=True)
class Moment:
    """A second in one time zone: `2026-11-21`, `08:30:00`, 0 for Monday."""

    date: str
    time: str
    weekday: int


@lru_cache(maxsize=8)
def _moment(second: int, zone: tzinfo) -> Moment:
    """Most messages of one second ask for the same."""
    local = datetime.fromtimestamp(second, zone)
    return Moment(local.date().isoformat(), local.time().isoformat("seconds"), local.weekday())


domain: Final = lru_cache(maxsize=4096)(domain_of)
"""Return the domain that serves an address; the same ones come again and again."""

_LISTS: Final = ("resources", "childrenResources")


@final
@attrs.frozen(eq=False)
class Place:
    """The place where messages are judged; the same for all of them.

    Attributes:
        domain: The domain of the node.
        zone: Where its clock hangs: what time of the day it is there.
        owns: Tests whether an address is of a runtime's session; None: nobody knows.
        sessions: Where sessions are opened.
        allocation: Where addresses are allocated.
    """

    domain: str
    zone: tzinfo = UTC
    owns: Owns | None = None
    sessions: str = attrs.field(init=False)
    allocation: str = attrs.field(init=False)

    @sessions.default
    def _sessions(self) -> str:
        return sessions_of(self.domain)

    @allocation.default
    def _allocation(self) -> str:
        return allocation_of(self.domain)


@final
@attrs.frozen(slots=True, eq=False)
class Request:
    """One message and all that a condition may ask about it. Never changes.

    Attributes:
        message: What is judged.
        runtime: Over whose session it came; None: it has none yet.
        identity: Who vouched for that session; None: nobody did.
        now: Seconds since the epoch.
        place: Where it is judged.
        about: What it is judged for alone, if it names several; None: what it names.
        known: Attributes that were asked for already; kept by who reads them.
    """

    message: Message
    runtime: str | None
    identity: Identity | None
    now: float
    place: Place
    about: tuple[str | None] | None = None
    known: dict[str, Value | None] = attrs.field(factory=dict, repr=False)

    @property
    def vouched(self) -> Identity | None:
        """The issuer of the sender's identity; none once the credentials are over."""
        identity = self.identity
        return identity if identity is not None and self.now < identity.until else None

    @property
    def moment(self) -> Moment:
        """Date and time at the node."""
        return _moment(int(self.now), self.place.zone)

    @property
    def is_outgoing(self) -> bool:
        """True if the message is for another domain (POL-17)."""
        return domain(self.message.to) != self.place.domain


def subjects(request: Request) -> tuple[str | None, ...]:
    """Return what a message is about: each address it names; if none, whom it is for.

    An entry that is no text is None. A session is opened for a runtime, and addresses
    are allocated for a scheme of the node's domain (POL-18).
    """
    message, place = request.message, request.place
    body = message.body
    if message.to == place.sessions:
        params = body.get("params")
        return (_text(params.get("runtimeURL") if isinstance(params, dict) else None),)
    if message.to == place.allocation and message.type is MessageType.CREATE:
        scheme = body.get("scheme")
        return (_text(f"{scheme}://{place.domain}" if isinstance(scheme, str) else None),)
    named = _named(message)
    if not named:
        return (message.to,)
    return tuple(dict.fromkeys(map(_text, named))) if len(named) <= MAX_LIST else (None,)


def _named(message: Message) -> list[Json]:
    """Return all resources that a body names."""
    body = message.body
    named: list[Json] = [body["resource"]] if body.get("resource") is not None else []
    for key in _LISTS:
        listed = body.get(key)
        if listed is not None:
            named += listed if isinstance(listed, list) else [listed]
    value = body.get("value")
    if isinstance(value, dict) and "url" in value and is_backend(message.to):
        named.append(value["url"])
    return named


def _text(named: Json) -> str | None:
    """Return an address in canonical form, and other text as it is."""
    if not isinstance(named, str):
        return None
    try:
        return canonical(named)
    except BadUrlError:
        return named
