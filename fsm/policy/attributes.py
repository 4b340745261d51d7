"""Request that policies decide on, and the attributes that conditions test (POL-04, POL-11).

Besides the attributes of the protocol's table, this project adds a few: the role, the runtime,
whether the sender has logged in, whether the resource is the sender's own.
"""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from enum import Enum
from functools import lru_cache
from typing import Final, Protocol, TypeAlias

import attrs

from specs.addresses import address as addresses
from specs.addresses.address import address_allocation as allocation_of
from specs.addresses.address import session_manager as sessions_of
from specs.bodies.word import SessionMethod
from specs.errors import BadUrlError
from specs.identity import Identity, SenderIdentity, VouchedBy
from specs.jsonvalue import Json
from specs.limits.protocol import MAX_LIST
from specs.message import Message, MessageType

Value: TypeAlias = str | int | float | bool | frozenset[str]
"""Value of an attribute: a single value, or a set of texts."""

Owns: TypeAlias = Callable[[str, str], bool]
"""Function that returns whether an address belongs to the session of a runtime."""


class Locals(Protocol):
    """Addresses of one runtime, as its Message BUS knows them."""

    def is_local(self, address: str) -> bool:
        """Return whether an address belongs to the runtime."""

    def hyperties(self, address: str) -> frozenset[str]:
        """Return the names of the local hyperties that an address belongs to."""


@attrs.frozen(slots=True, eq=False)
class Passing:
    """Context of a message that passes the Message BUS of a runtime.

    Attributes:
        is_outgoing: Whether a component of the runtime sends it (POL-17).
        user: User of the runtime; None: it has no user.
        here: The addresses of the runtime.
    """

    is_outgoing: bool
    user: str | None
    here: Locals


_moment: Final = lru_cache(maxsize=8)(datetime.fromtimestamp)
"""Function that returns date and time in a time zone; cached, as many messages share a second."""

_REMEMBERED: Final = 4096
"""Number of addresses and users for which computed values are cached."""

domain: Final = lru_cache(_REMEMBERED)(addresses.domain_of)
"""Function that returns the domain that serves an address; cached."""

_host_of: Final = lru_cache(_REMEMBERED)(addresses.host_of)

_LISTS: Final = ("resources", "childrenResources")


@attrs.frozen(eq=False)
class Place:
    """Node or runtime that applies policies, with its settings that are the same for all messages.

    Attributes:
        domain: The domain of the node or runtime.
        zone: The time zone of its clock.
        owns: Returns whether an address belongs to the session of a runtime; None: unknown.
        sessions: The address at which sessions are opened.
        allocation: The address at which addresses are allocated.
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


@attrs.frozen(slots=True, eq=False)
class Request:
    """Message to judge, with all facts that conditions may test; immutable.

    Attributes:
        message: The message that is judged.
        runtime: The runtime over whose session it came; None: no session yet.
        identity: Identity of that session; None: no login.
        now: Seconds since the epoch.
        place: The node or runtime that judges it.
        about: The single resource for which it is judged, if it names several; None: all of them.
        known: Attributes that were read already; filled by the reader.
        sender: The sender's identity for the receiver of the message; None: unknown.
        passing: Its context in a runtime; None: a node judges it.
    """

    message: Message
    runtime: str | None
    identity: Identity | None
    now: float
    place: Place
    about: tuple[str | None] | None = None
    known: dict[str, Value | None] = attrs.field(factory=dict, repr=False)
    sender: SenderIdentity | None = None
    passing: Passing | None = None

    @property
    def vouched(self) -> Identity | None:
        """The sender's identity at its issuer; None if the credentials have expired."""
        identity = self.identity
        return identity if identity is not None and self.now < identity.until else None

    @property
    def user(self) -> str | None:
        """The user of the session; in a runtime, the user in the sender's identity."""
        if self.passing is None:
            vouched = self.vouched
            return None if vouched is None else vouched.user
        return None if self.sender is None else self.sender.user

    @property
    def moment(self) -> datetime:
        """Date and time at the node or runtime."""
        return _moment(int(self.now), self.place.zone)

    @property
    def is_outgoing(self) -> bool:
        """True if the message leaves the runtime or, at a node, the domain (POL-17)."""
        if self.passing is not None:
            return self.passing.is_outgoing
        return domain(self.message.to) != self.place.domain


def subjects(request: Request) -> tuple[str | None, ...]:
    """Return the resources that a message is about: the addresses it names, else its receiver.

    An entry that is no text becomes None. A request to open a session is about the runtime, and a
    request for addresses about a scheme of the node's domain (POL-18).
    """
    message, place = request.message, request.place
    body = message.body
    if message.to == place.sessions:
        params = body.get("params")
        return (_text(params.get("runtimeURL") if isinstance(params, dict) else None),)
    if message.to == place.allocation and message.type is MessageType.CREATE:
        scheme = body.get("scheme")
        return (_text(f"{scheme}://{place.domain}" if isinstance(scheme, str) else None),)
    named = _named_resources(message)
    if not named:
        return (message.to,)
    return tuple(dict.fromkeys(map(_text, named))) if len(named) <= MAX_LIST else (None,)


def _named_resources(message: Message) -> list[Json]:
    """Return all resources that a message body names."""
    body = message.body
    named: list[Json] = [body["resource"]] if body.get("resource") is not None else []
    for key in _LISTS:
        listed = body.get(key)
        if listed is not None:
            named += listed if isinstance(listed, list) else [listed]
    value = body.get("value")
    if isinstance(value, dict) and "url" in value and addresses.is_backend(message.to):
        named.append(value["url"])
    return named


def _text(named: Json) -> str | None:
    """Return an address in canonical form; other text is returned unchanged."""
    if not isinstance(named, str):
        return None
    try:
        return addresses.canonical(named)
    except BadUrlError:
        return named


# --- attributes -------------------------------------------------------------------------


_REGISTERING: Final = "registration"
_SEARCHING: Final = "discovery"
_PLAIN: Final = "message"

Read: TypeAlias = Callable[[Request], Value | None]
"""Function that returns the value of an attribute for a request; None: it is not available."""


class Form(Enum):
    """Type of an attribute's values, which decides its operators."""

    TEXT = "text"
    ADDRESS = "address"
    DOMAIN = "domain"
    SCHEME = "scheme"
    WORD = "word"
    NUMBER = "number"
    TRUTH = "true or false"
    TIME = "time of the day"
    DATE = "date"
    LIST = "list of texts"


@attrs.frozen
class Attribute:
    """Attribute that conditions can test: name, type and meaning.

    Attributes:
        name: Its name in conditions.
        form: The type of its values.
        read: Returns its value.
        meaning: Its meaning, in words.
        missing: When it is not available; empty: it is always available.
        words: Its possible values, if they are known.
    """

    name: str
    form: Form
    read: Read
    meaning: str
    missing: str = ""
    words: tuple[str, ...] = ()


def reader(attribute: Attribute) -> Read:
    """Return a function that reads an attribute, at most once per message."""
    name, read = attribute.name, attribute.read

    def recall(request: Request) -> Value | None:
        known = request.known
        if name in known:
            return known[name]
        value = known[name] = read(request)
        return value

    return recall


# ---- sender


def _username(request: Request) -> Value | None:
    """Return the user in the form `alice@idp.ex` for `user://idp.ex/alice`."""
    user = request.user
    return None if user is None else _short(user)


@lru_cache(_REMEMBERED)
def _short(user: str) -> str:
    name = user.partition("://")[2].partition("/")[2]
    return name if "@" in name else f"{name}@{addresses.host_of(user)}"


def _idp_domain(request: Request) -> Value | None:
    user = request.user
    return None if user is None else _host_of(user)


def _idp(request: Request) -> Value | None:
    identity = request.vouched
    return None if identity is None else identity.issuer


def _roles(request: Request) -> Value | None:
    identity = request.vouched
    return None if identity is None else identity.roles


def _caller(request: Request) -> SenderIdentity | None:
    """Return the sender's identity, without the user if its login has expired."""
    sender = request.sender
    is_believed = request.passing is not None
    if sender is None or is_believed or sender.vouched_by is not VouchedBy.IDENTITY_PROVIDER:
        return sender
    return SenderIdentity(sender.runtime) if request.vouched is None else sender


def _caller_user(request: Request) -> Value | None:
    sender = _caller(request)
    return None if sender is None else sender.user


def _caller_runtime(request: Request) -> Value | None:
    sender = _caller(request)
    return None if sender is None else sender.runtime


def _caller_voucher(request: Request) -> Value | None:
    sender = _caller(request)
    return None if sender is None else sender.vouched_by.value


def _own(request: Request) -> Value | None:
    owns, resource, passing = request.place.owns, _resource(request), request.passing
    if passing is not None and isinstance(resource, str):
        return passing.here.is_local(resource) if passing.is_outgoing else None
    if owns is None or not isinstance(resource, str):
        return None
    return request.runtime is not None and owns(resource, request.runtime)


# ---- in a runtime


def _ends(request: Request) -> tuple[str, str]:
    return request.message.from_, request.message.to


def _hyperties(request: Request) -> Value | None:
    """Return the names of this runtime's hyperties at either end; for objects, their reporters."""
    if request.passing is None:
        return None
    from_, to = map(request.passing.here.hyperties, _ends(request))
    return from_ | to


def _users(request: Request) -> Value | None:
    """Return the users of sender and receiver, as addresses and as names."""
    passing, sender = request.passing, request.sender
    if passing is None:
        return None
    own = passing.user if any(map(passing.here.is_local, _ends(request))) else None
    known = [each for each in (own, None if sender is None else sender.user) if each is not None]
    return frozenset((*known, *map(_short, known)))


# ---- subject of the message


def _kinds(request: Request) -> Value | None:
    """Return the kinds of communication that a message's body lists as `resources`."""
    value = request.message.body.get("value")
    listed = value.get("resources") if isinstance(value, dict) else None
    kinds = listed if isinstance(listed, list) else []
    return frozenset(kind for kind in kinds if isinstance(kind, str))


def _action(request: Request) -> Value | None:
    """Return the message type; for session control, the name of the method."""
    message = request.message
    if message.to == request.place.sessions and message.type is MessageType.EXECUTE:
        method = message.body.get("method")
        if isinstance(method, str) and method in _METHODS:
            return method
    return message.type.value


def _resource(request: Request) -> Value | None:
    if request.about is not None:
        return request.about[0]
    named = subjects(request)
    return named[0] if len(named) == 1 else None


def _resource_scheme(request: Request) -> Value | None:
    resource = _resource(request)
    if not isinstance(resource, str) or "://" not in resource:
        return None
    return addresses.scheme_of(resource)


def _auth(request: Request) -> Value | None:
    value = request.message.body.get("auth", False)
    return value if isinstance(value, bool) else None


def _about(request: Request) -> Value | None:
    """Return the purpose of a message, by its receiver or, if that is unspecific, its sender."""
    message = request.message
    for end in (message.to, message.from_):
        for word, fits in KINDS.items():
            if fits(end):
                is_search = word == _REGISTERING and message.type is MessageType.READ
                return _SEARCHING if is_search else word
    return _PLAIN


def _host(prefix: str) -> Callable[[str], bool]:
    return lambda end: end.startswith(f"domain://{prefix}.")


def _part(name: str) -> Callable[[str], bool]:
    return lambda end: end.startswith("domain://msg-node.") and end.endswith(f"/{name}")


def _is_link(end: str) -> bool:
    return "/p2phandler/" in end or "/p2prequester/" in end or end.startswith("connection://")


KINDS: Final[dict[str, Callable[[str], bool]]] = {
    "session": _part("session"),
    "addressAllocation": lambda end: end.endswith("/address-allocation"),
    "policyManagement": _part("policy"),
    _REGISTERING: _host("registry"),
    "globalRegistry": lambda end: end == addresses.GLOBAL_REGISTRY or end.startswith("global://"),
    "identityManagement": _host("idm"),
    "qualityManagement": _host("qos"),
    "p2pConnection": _is_link,
    "dataSync": lambda end: (
        end.endswith(("/sm", "/subscription", "/changes", "/observers")) or "/children/" in end
    ),
}
"""Purposes of messages with tests of the address; the first matching test decides."""

_METHODS: Final = frozenset(str(each) for each in SessionMethod)
_ACTIONS: Final = (*(str(each) for each in MessageType), *(str(each) for each in SessionMethod))
_MSG_TYPES: Final = (*KINDS, _SEARCHING, _PLAIN)
_VOUCHERS: Final = tuple(each.value for each in VouchedBy)
_WEEK: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_NO_LOGIN: Final = "the sender has no valid login"
_AT_NODE: Final = "the sender has no valid login, or a runtime judges"
_IN_RUNTIME: Final = "a node judges"
_UNKNOWN: Final = "the sender's runtime is unknown"
_ODD_OWN: Final = "the address is no text, or the message names too many, or comes to a runtime"
_ODD: Final = "the address is no text, or the message names too many"

# fmt: off
# ruff: noqa: E501 - a row of the table is one line
_ROWS: Final = (
    Attribute("srcUsername",    Form.TEXT,    _username,        "user of the sender, such as alice@idp.example",           _NO_LOGIN),
    Attribute("srcIDPDomain",   Form.DOMAIN,  _idp_domain,      "domain of that user's address",                            _NO_LOGIN),
    Attribute("srcIDP",         Form.TEXT,    _idp,             "identity provider of that user, as named in the token",         _AT_NODE),
    Attribute("srcRoles",       Form.LIST,    _roles,           "roles of that user",                                       _AT_NODE),
    Attribute("authenticated",  Form.TRUTH,   lambda r: r.user is not None, "whether the sender has logged in"),
    Attribute("identity.user",       Form.ADDRESS, _caller_user,    "user who sent the message, as its receiver reads it, such as user://idp.example/alice", "nobody vouches for a user"),
    Attribute("identity.runtime",    Form.ADDRESS, _caller_runtime, "runtime that sent the message, as its receiver reads it", _UNKNOWN),
    Attribute("identity.vouched_by", Form.WORD,    _caller_voucher, "who vouches for that user", _UNKNOWN, _VOUCHERS),
    Attribute("srcRuntime",     Form.ADDRESS, lambda r: r.runtime, "runtime whose session the message came over; in a runtime, the sender's",           "the link has no session yet, or the runtime is unknown"),
    Attribute("ownUser",        Form.ADDRESS, lambda r: None if r.passing is None else r.passing.user, "user of the judging runtime", "a node judges, or the runtime has no user"),
    Attribute("hyperties",      Form.LIST,    _hyperties,       "names of the hyperties of the judging runtime that the message is from or for, themselves or as reporters of an object", _IN_RUNTIME),
    Attribute("users",          Form.LIST,    _users,           "users of sender and receiver as far as the judging runtime knows them, each as address and as name such as alice@idp.example", _IN_RUNTIME),
    Attribute("srcSPDomain",    Form.DOMAIN,  lambda r: domain(r.message.from_), "domain that serves the sender's address"),
    Attribute("srcScheme",      Form.SCHEME,  lambda r: addresses.scheme_of(r.message.from_), "scheme of the sender's address"),
    Attribute("msgFrom",        Form.ADDRESS, lambda r: r.message.from_, "address of the sender"),
    Attribute("msgTo",          Form.ADDRESS, lambda r: r.message.to, "address of the receiver"),
    Attribute("dstSPDomain",    Form.DOMAIN,  lambda r: domain(r.message.to), "domain that serves the receiver's address"),
    Attribute("dstScheme",      Form.SCHEME,  lambda r: addresses.scheme_of(r.message.to), "scheme of the receiver's address"),
    Attribute("actionType",     Form.WORD,    _action,          "the verb; at session control the method, such as open",    "", _ACTIONS),
    Attribute("resource",       Form.ADDRESS, _resource,        "subject of the message: each address that it names; if none, the receiver", _ODD),
    Attribute("resourceScheme", Form.SCHEME,  _resource_scheme, "scheme of that address; of an allocation, the requested scheme", "resource is no address"),
    Attribute("ownResource",    Form.TRUTH,   _own,             "whether that address belongs to the sender's session or runtime",      _ODD_OWN),
    Attribute("resourceTypes",  Form.LIST,    _kinds,           "kinds of communication in `value.resources` of the message, such as chat"),
    Attribute("auth",           Form.TRUTH,   _auth,            "value of `auth` in the message; false if absent", "`auth` is neither true nor false"),
    Attribute("msgId",          Form.NUMBER,  lambda r: r.message.id, "id of the message"),
    Attribute("msgType",        Form.WORD,    _about,           "purpose of the message, derived from its sender and receiver",    "", _MSG_TYPES),
    Attribute("time",           Form.TIME,    lambda r: r.moment.time().isoformat("seconds"), "time of the day, such as 08:30:00"),
    Attribute("date",           Form.DATE,    lambda r: r.moment.date().isoformat(), "date, such as 2026-11-21"),
    Attribute("weekday",        Form.WORD,    lambda r: _WEEK[r.moment.weekday()], "day of the week, such as sunday", "", _WEEK),
)
# fmt: on

ATTRIBUTES: Final = {row.name: row for row in _ROWS}
"""All attributes that conditions can test, by name."""

ALIASES: Final = {"srcDomain": "srcSPDomain"}
"""Alternative names of attributes; the protocol's own example uses one (POL-11)."""

RESOURCE: Final = frozenset({"resource", "resourceScheme", "ownResource"})
"""Attributes whose value differs between the several addresses that a message names."""
