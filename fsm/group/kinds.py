"""The kinds of rows that the nodes of a domain share, and their form in the engine.

A key is `<kind>/<what it is about>`, a value is a JSON object. A reader refuses what is none of
these: another program, or a newer one, may write to the same engine. Of an address that is too
long for a key the key has a digest, and the value the address.
"""

import math
import re
from collections.abc import Callable, Mapping
from enum import StrEnum, unique
from hashlib import blake2b
from typing import Final, TypeAlias, assert_never, final

import attrs
import orjson

from fsm.group.policies import POLICY_KEY, PolicyRow, read_policies, write_policies
from fsm.registry.addresses import NEVER_OFFERED, Offer, Offers
from fsm.session.node_session_io import KeptSession, PeerForm
from fsm.session.runtime_names import NameKept, Owner
from specs.errors import ProtoflyError
from specs.identity import Identity
from specs.jsonvalue import Json, JsonObject
from specs.limits.group import GROUP_ADDRESS, GROUP_FIGURES, GROUP_ROW_BYTES

__all__ = [
    "GroupRow",
    "GroupTable",
    "Holder",
    "Kind",
    "NameRow",
    "NodeReport",
    "NodeRow",
    "OwnerRow",
    "PathRow",
    "RowRefusal",
    "RowRefusedError",
    "SessionRow",
    "brief",
    "is_node_id",
    "name_key",
    "node_key",
    "owner_key",
    "path_key",
    "read_row",
    "session_key",
    "write_row",
]


@final
@unique
class Kind(StrEnum):
    """The kinds of rows; the first segments of their keys."""

    NODE = "node"
    SESSION = "session"
    OWNER = "owner"
    PATH = "path"
    NAME = "name"
    POLICY = "policy"


@final
@unique
class GroupTable(StrEnum):
    """The tables of the trace that say what the nodes of a group know of each other.

    Attributes:
        MEMBERS: By node id: name of the group and boot epoch; with the revision of the node's own
            lease, each time that it is written.
        HOMES: By runtime: node id, boot epoch and epoch of a session that the engine says the
            node has, with the revision of the row.
        ENGINE: By the node's own id: outages of the engine, messages that found no room here, and
            messages that may be lost with the engine.
    """

    MEMBERS = "members"
    HOMES = "homes"
    ENGINE = "engine"


@final
@unique
class RowRefusal(StrEnum):
    """The reasons for which a row is not taken."""

    UNKNOWN_KIND = "unknown kind"
    MALFORMED = "malformed"
    TOO_LARGE = "too large"
    TOO_MANY = "too many rows"


@final
class RowRefusedError(ProtoflyError):
    """A row of the engine is none of ours, or a later version's; the node goes on without it.

    Attributes:
        key: Key of the row.
        reason: What is wrong with it.
    """

    def __init__(self, key: str, reason: RowRefusal) -> None:
        super().__init__(f"row {key!r} is refused: {reason}")
        self.key = key
        self.reason = reason


@final
@attrs.frozen(slots=True)
class Holder:
    """One process of a node: what it holds ends with it.

    Attributes:
        node: Id of the node.
        boot: Its boot epoch, which is another one each time the node joins.
    """

    node: str
    boot: int


@final
@attrs.frozen(slots=True)
class NodeReport:
    """What a node says of itself, for people: nothing is decided by it.

    Attributes:
        up: Seconds since the node started.
        figures: Counts by name, `GROUP_FIGURES` at most; one that is missing is 0.
    """

    up: float
    figures: Mapping[str, int]


@final
@attrs.frozen(slots=True)
class NodeRow:
    """A node is a member of the group, as long as the row lasts.

    Attributes:
        address: Base URL at which other nodes and the dashboard reach it over HTTP; empty: none.
        is_leaving: Whether it is going down.
        report: What it said of itself when it wrote the row; None: nothing that can be read. A row
            with another report says the same.
    """

    holder: Holder
    address: str = ""
    is_leaving: bool = False
    report: NodeReport | None = attrs.field(default=None, eq=False)

    @property
    def key(self) -> str:
        """The key of the row."""
        return node_key(self.holder.node)


@final
@attrs.frozen(slots=True)
class SessionRow:
    """A runtime has a session.

    Attributes:
        holder: The node that has it; the session is free once that is no member any more.
        epoch: Raised by each node that takes it up.
        form: The form in which the runtime speaks.
        stub: Address of the stub that had its last link.
        kept: What another node needs to take it up; its credentials follow from `identity`.
            None: it ends with its node.
        identity: The identity of the login that opened it; None: nobody logged in.
    """

    runtime: str
    holder: Holder
    epoch: int
    form: PeerForm
    stub: str
    kept: KeptSession | None = None
    identity: Identity | None = None

    @property
    def key(self) -> str:
        """The key of the row."""
        return session_key(self.runtime)


@final
@attrs.frozen(slots=True)
class OwnerRow:
    """An address belongs to a runtime, with its session.

    Attributes:
        block: The key under which it was allocated together with others; None: under none.
        is_bound: Whether the node does not allocate such addresses, and only binds them.
        offers: Its offers to other runtimes.
    """

    address: str
    runtime: str
    block: str | None = None
    is_bound: bool = False
    offers: Offers = NEVER_OFFERED

    @property
    def key(self) -> str:
        """The key of the row."""
        return owner_key(self.address)


@final
@attrs.frozen(slots=True)
class PathRow:
    """A node has a subscriber of a resource, to which it delivers."""

    resource: str
    holder: Holder

    @property
    def key(self) -> str:
        """The key of the row."""
        return path_key(self.resource, self.holder.node)


@final
@attrs.frozen(slots=True)
class NameRow:
    """A name of a runtime belongs to a user."""

    name: NameKept

    @property
    def key(self) -> str:
        """The key of the row."""
        return name_key(self.name.runtime)


GroupRow: TypeAlias = NodeRow | SessionRow | OwnerRow | PathRow | NameRow | PolicyRow


_DIGEST: Final = 32
"""Bytes of a digest."""

_DIGEST_MARK: Final = "~"
"""First of what stands for a long address; no address begins with it."""


def brief(address: str) -> str:
    """Return what stands for an address in a key: itself, or a digest of one that is too long."""
    if len(address.encode()) <= GROUP_ADDRESS:
        return address
    return _DIGEST_MARK + blake2b(address.encode(), digest_size=_DIGEST).hexdigest()


def _full(about: str, said: Json) -> str | None:
    if not about.startswith(_DIGEST_MARK):
        return about
    return said if isinstance(said, str) and said != about and brief(said) == about else None


def node_key(node: str) -> str:
    """Return the key of the row of a node."""
    return f"{Kind.NODE}/{node}"


def session_key(runtime: str) -> str:
    """Return the key of the row of a runtime's session."""
    return f"{Kind.SESSION}/{runtime}"


def owner_key(address: str) -> str:
    """Return the key of the row of an address."""
    return f"{Kind.OWNER}/{brief(address)}"


def path_key(resource: str, node: str) -> str:
    """Return the key of the row that a node has subscribers of a resource.

    Args:
        resource: Address of the resource.
        node: Id of the node.
    """
    return f"{Kind.PATH}/{brief(resource)}/{node}"


def name_key(runtime: str) -> str:
    """Return the key of the row of a name."""
    return f"{Kind.NAME}/{runtime}"


_NODE_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def is_node_id(text: str) -> bool:
    """Return whether a text can be the id of a node: up to 64 letters, digits, `.`, `_`, `-`."""
    return _NODE_ID.fullmatch(text) is not None


# ---- written


def write_row(row: GroupRow) -> bytes:
    """Return the value of a row in the engine."""
    match row:
        case NodeRow(holder, address, is_leaving, report):
            value: JsonObject = {"boot": holder.boot, "address": address, "leaving": is_leaving}
            if report is not None:
                value["report"] = {"up": report.up, "figures": dict[str, Json](report.figures)}
        case SessionRow():
            value = _session(row)
        case OwnerRow(address, runtime, block, is_bound, offers):
            value = {
                "runtime": runtime,
                "block": block,
                "bound": is_bound,
                "offers": None if offers == NEVER_OFFERED else _offers(offers),
                **_said(address),
            }
        case PathRow(resource, holder):
            value = {"boot": holder.boot, **_said(resource)}
        case NameRow(name):
            value = _name(name)
        case PolicyRow():
            value = write_policies(row)
        case _:
            assert_never(row)
    return orjson.dumps(value)


def _said(address: str) -> JsonObject:
    return {} if brief(address) == address else {"about": address}


def _offers(offers: Offers) -> JsonObject:
    opened = offers.open
    return {
        "open": None if opened is None else [opened.to, opened.number, opened.delegate],
        "over": offers.over,
        "movedFrom": offers.moved_from,
        "observers": [*offers.observers],
    }


def _session(row: SessionRow) -> JsonObject:
    kept, identity = row.kept, row.identity
    return {
        "node": row.holder.node,
        "boot": row.holder.boot,
        "epoch": row.epoch,
        "form": row.form.value,
        "stub": row.stub,
        "kept": None if kept is None else _kept(kept),
        "identity": None if identity is None else _identity(identity),
    }


def _kept(kept: KeptSession) -> JsonObject:
    return {
        "digest": kept.digest.hex(),
        "previous": kept.previous.hex(),
        "takenUp": kept.is_taken_up,
        "key": kept.key,
    }


def _identity(identity: Identity) -> JsonObject:
    return {
        "user": identity.user,
        "issuer": identity.issuer,
        "until": _finite(identity.until),
        "roles": [*sorted(identity.roles)],
        "runtime": identity.runtime,
        "login": identity.login,
    }


def _name(name: NameKept) -> JsonObject:
    return {
        "issuer": name.owner.issuer,
        "user": name.owner.user,
        "left": _finite(name.left),
        "released": name.is_released,
    }


def _finite(time: float) -> float | None:
    return time if math.isfinite(time) else None


# ---- read


def read_row(key: str, value: bytes) -> GroupRow:
    """Read a row of the engine.

    Args:
        key: Its key.
        value: Its value.

    Raises:
        RowRefusedError: It is none of ours.
    """
    kind, _, about = key.partition("/")
    if key == POLICY_KEY:
        return read_policies(value)
    if kind not in _READERS:
        raise RowRefusedError(key, RowRefusal.UNKNOWN_KIND)
    if len(value) > GROUP_ROW_BYTES:
        raise RowRefusedError(key, RowRefusal.TOO_LARGE)
    try:
        fields = orjson.loads(value)
        row = _READERS[kind](about, fields) if isinstance(fields, dict) and about else None
    except ValueError:
        row = None
    if row is None:
        raise RowRefusedError(key, RowRefusal.MALFORMED)
    return row


_Fields: TypeAlias = Mapping[str, Json]


def _read_node(about: str, fields: _Fields) -> NodeRow | None:
    holder = _holder(about, fields.get("boot"))
    match fields:
        case {"address": str(address), "leaving": bool(is_leaving)} if holder is not None:
            return NodeRow(holder, address, is_leaving, _read_report(fields.get("report")))
        case _:
            return None


_FIGURE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def _read_report(value: Json) -> NodeReport | None:
    """Read a report; a node whose report cannot be read is a member all the same."""
    match value:
        case {"up": float() | int() as up, "figures": dict(figures)} if not isinstance(up, bool):
            read = {name: _count(name, count) for name, count in figures.items()}
            counts = {name: count for name, count in read.items() if count is not None}
            is_good = len(counts) == len(read) <= GROUP_FIGURES and 0 <= up < math.inf
            return NodeReport(float(up), counts) if is_good else None
        case _:
            return None


def _count(name: str, value: Json) -> int | None:
    is_named = _FIGURE.fullmatch(name) is not None
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_named and is_count and isinstance(value, int) else None


def _read_session(about: str, fields: _Fields) -> SessionRow | None:
    holder = _holder(fields.get("node"), fields.get("boot"))
    epoch = _number(fields.get("epoch"))
    match fields:
        case {"form": str(form), "stub": str(stub), "kept": kept, "identity": identity}:
            if holder is None or epoch is None:
                return None
            session = None if kept is None else _read_kept(about, kept)
            login = None if identity is None else _read_identity(identity)
            return SessionRow(about, holder, epoch, PeerForm(form), stub, session, login)
        case _:
            return None


def _read_kept(runtime: str, value: Json) -> KeptSession:
    match value:
        case {
            "digest": str(digest),
            "previous": str(previous),
            "takenUp": bool(is_taken_up),
            "key": str() | None as key,
        }:
            return KeptSession(
                runtime,
                _digest(digest),
                _digest(previous) if previous else b"",
                is_taken_up,
                key=key,
            )
        case _:
            raise ValueError(value)


def _read_identity(value: Json) -> Identity:
    match value:
        case {
            "user": str(user),
            "issuer": str(issuer),
            "until": float() | int() | None as until,
            "roles": list(roles),
            "runtime": str() | None as runtime,
            "login": str() | None as login,
        } if all(isinstance(role, str) for role in roles) and not isinstance(until, bool):
            return Identity(
                user=user,
                issuer=issuer,
                until=_time(until),
                roles=frozenset(role for role in roles if isinstance(role, str)),
                runtime=runtime,
                login=login,
            )
        case _:
            raise ValueError(value)


def _read_owner(about: str, fields: _Fields) -> OwnerRow | None:
    address = _full(about, fields.get("about"))
    match fields:
        case {
            "runtime": str(runtime),
            "block": str() | None as block,
            "bound": bool(is_bound),
            "offers": offers,
        } if address is not None:
            known = NEVER_OFFERED if offers is None else _read_offers(offers, address, runtime)
            return OwnerRow(address, runtime, block, is_bound, known)
        case _:
            return None


def _read_offers(value: Json, address: str, runtime: str) -> Offers:
    match value:
        case {
            "open": opened,
            "over": int(over),
            "movedFrom": str() | None as moved_from,
            "observers": list(observers),
        } if not isinstance(over, bool) and over >= 0:
            offer = None if opened is None else _read_offer(opened, address, runtime)
            named = tuple(one for one in observers if isinstance(one, str))
            if len(named) != len(observers):
                raise ValueError(value)
            return Offers(offer, over, moved_from, named)
        case _:
            raise ValueError(value)


def _read_offer(value: Json, address: str, runtime: str) -> Offer:
    match value:
        case [str(to), int(number), str(delegate)] if not isinstance(number, bool):
            return Offer(address, runtime, to, number, delegate)
        case _:
            raise ValueError(value)


def _read_path(about: str, fields: _Fields) -> PathRow | None:
    stands, _, node = about.rpartition("/")
    resource = _full(stands, fields.get("about"))
    holder = _holder(node, fields.get("boot"))
    return PathRow(resource, holder) if resource and holder is not None else None


def _read_name(about: str, fields: _Fields) -> NameRow | None:
    match fields:
        case {
            "issuer": str(issuer),
            "user": str(user),
            "left": float() | int() | None as left,
            "released": bool(is_released),
        } if not isinstance(left, bool):
            return NameRow(NameKept(about, Owner(issuer, user), _time(left), is_released))
        case _:
            return None


def _time(finite: float | None) -> float:
    return math.inf if finite is None else float(finite)


_READERS: Final[Mapping[str, Callable[[str, _Fields], GroupRow | None]]] = {
    Kind.NODE: _read_node,
    Kind.SESSION: _read_session,
    Kind.OWNER: _read_owner,
    Kind.PATH: _read_path,
    Kind.NAME: _read_name,
}


def _digest(text: str) -> bytes:
    digest = bytes.fromhex(text)
    if len(digest) != _DIGEST:
        raise ValueError(text)
    return digest


def _holder(node: Json, boot: Json) -> Holder | None:
    number = _number(boot)
    if not isinstance(node, str) or not is_node_id(node) or number is None:
        return None
    return Holder(node, number)


def _number(value: Json) -> int | None:
    is_one = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_one and isinstance(value, int) else None
