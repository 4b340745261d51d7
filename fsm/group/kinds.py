"""The kinds of rows that the nodes of a domain share, and their keys in the engine.

A key is `<kind>/<what it is about>`. Of an address that is too long for a key the key has a digest,
and the value the address.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from hashlib import blake2b
from typing import Final, TypeAlias, final

import attrs

from fsm.group.catalogue import CatalogueRow
from fsm.group.policies import PolicyRow
from fsm.session.node_session_io import KeptSession, PeerForm
from fsm.session.runtime_names import NameKept
from specs.errors import ProtoflyError
from specs.identity import Identity
from specs.jsonvalue import Json
from specs.limits.group import GROUP_ADDRESS


@final
class Kind(StrEnum):
    """The kinds of rows; the first segments of their keys."""

    NODE = "node"
    SESSION = "session"
    OWNER = "owner"
    PATH = "path"
    NAME = "name"
    POLICY = "policy"
    CATALOGUE = "catalogue"


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


class RowRefusal(StrEnum):
    """The reasons for which a row is not taken."""

    UNKNOWN_KIND = "unknown kind"
    MALFORMED = "malformed"
    TOO_LARGE = "too large"
    TOO_MANY = "too many rows"


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


@attrs.frozen(slots=True)
class Holder:
    """One process of a node: what it holds ends with it.

    Attributes:
        node: Id of the node.
        boot: Its boot epoch, which is another one each time the node joins.
    """

    node: str
    boot: int


@attrs.frozen(slots=True)
class NodeReport:
    """What a node says of itself, for people: nothing is decided by it.

    Attributes:
        up: Seconds since the node started.
        figures: Counts by name, `GROUP_FIGURES` at most; one that is missing is 0.
    """

    up: float
    figures: Mapping[str, int]


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


@attrs.frozen(slots=True)
class OwnerRow:
    """An address belongs to a runtime, with its session.

    Attributes:
        block: The key under which it was allocated together with others; None: under none.
        is_bound: Whether the node does not allocate such addresses, and only binds them.
    """

    address: str
    runtime: str
    block: str | None = None
    is_bound: bool = False

    @property
    def key(self) -> str:
        """The key of the row."""
        return owner_key(self.address)


@attrs.frozen(slots=True)
class PathRow:
    """A node has a subscriber of a resource, to which it delivers."""

    resource: str
    holder: Holder

    @property
    def key(self) -> str:
        """The key of the row."""
        return path_key(self.resource, self.holder.node)


@attrs.frozen(slots=True)
class NameRow:
    """A name of a runtime belongs to a user."""

    name: NameKept

    @property
    def key(self) -> str:
        """The key of the row."""
        return name_key(self.name.runtime)


GroupRow: TypeAlias = NodeRow | SessionRow | OwnerRow | PathRow | NameRow | PolicyRow | CatalogueRow


_DIGEST: Final = 32
"""Bytes of a digest."""

_DIGEST_MARK: Final = "~"
"""First of what stands for a long address; no address begins with it."""


def brief(address: str) -> str:
    """Return what stands for an address in a key: itself, or a digest of one that is too long."""
    if len(address.encode()) <= GROUP_ADDRESS:
        return address
    return _DIGEST_MARK + blake2b(address.encode(), digest_size=_DIGEST).hexdigest()


def full(about: str, said: Json) -> str | None:
    """Return the address that a part of a key stands for; None: it stands for none.

    Args:
        about: The part of the key.
        said: What the value says of a long address.
    """
    if not about.startswith(_DIGEST_MARK):
        return about
    return said if isinstance(said, str) and said != about and brief(said) == about else None


def node_key(node: str) -> str:
    """Return the key of the row of a node."""
    return f"{Kind.NODE}/{node}"


_SESSIONS: Final = f"{Kind.SESSION}/"


def session_key(runtime: str) -> str:
    """Return the key of the row of a runtime's session."""
    return _SESSIONS + runtime  # once for each message


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
