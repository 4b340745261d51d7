"""Kinds of rows that the nodes of a domain share in the engine, and the keys of these rows.

The engine is a key-value store. A key is `<kind>/<subject>`. If an address is too long for a key,
the key contains its digest instead, and the value of the row contains the address.
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
    """Kind of a row; the first segment of its key."""

    NODE = "node"
    SESSION = "session"
    OWNER = "owner"
    PATH = "path"
    NAME = "name"
    POLICY = "policy"
    CATALOGUE = "catalogue"


class GroupTable(StrEnum):
    """Tables of the trace in which a node of a group records its knowledge of the others.

    Attributes:
        MEMBERS: By node id: name of the group and boot epoch; each time that the node writes its
            own lease also the revision of the lease.
        HOMES: By runtime: node id, boot epoch and epoch of a session that the node has according to
            the shared store, with the revision of the row.
        ENGINE: By the node's own id: outages of the shared store, messages that were refused for
            lack of room, and messages that may be lost with the store.
    """

    MEMBERS = "members"
    HOMES = "homes"
    ENGINE = "engine"


class RowRefusal(StrEnum):
    """Reason why a node ignores a row of the shared store."""

    UNKNOWN_KIND = "unknown kind"
    MALFORMED = "malformed"
    TOO_LARGE = "too large"
    TOO_MANY = "too many rows"


class RowRefusedError(ProtoflyError):
    """Error: a row of the shared store has an unknown form, for example a later version's.

    Attributes:
        key: Key of the row.
        reason: The reason for its refusal.
    """

    def __init__(self, key: str, reason: RowRefusal) -> None:
        super().__init__(f"row {key!r} is refused: {reason}")
        self.key = key
        self.reason = reason


@attrs.frozen(slots=True)
class Holder:
    """Process of a node; rows that name the process are void when it ends.

    Attributes:
        node: Id of the node.
        boot: Its boot epoch, which changes each time the node joins.
    """

    node: str
    boot: int


@attrs.frozen(slots=True)
class NodeReport:
    """Load and uptime of a node, for display only: no decision depends on it.

    Attributes:
        up: Seconds since the node started.
        figures: Counts by name, at most `GROUP_FIGURES`; a missing one is 0.
    """

    up: float
    figures: Mapping[str, int]


@attrs.frozen(slots=True)
class NodeRow:
    """Row that makes a node a member of the group as long as the row exists.

    Attributes:
        address: Base URL at which other nodes and the dashboard reach it by HTTP; empty: none.
        is_leaving: Whether the node is shutting down.
        report: Its report when it wrote the row; None: no readable report. Reports are ignored when
            rows are compared.
    """

    holder: Holder
    address: str = ""
    is_leaving: bool = False
    report: NodeReport | None = attrs.field(default=None, eq=False)

    @property
    def key(self) -> str:
        """The key of the row in the shared store."""
        return node_key(self.holder.node)


@attrs.frozen(slots=True)
class SessionRow:
    """Row for the session of a runtime, with the data for another node to take it over.

    Attributes:
        holder: The process that has the session; once that process is no member, no process has it.
        epoch: Number that each node raises when it takes the session over.
        form: The form of messages that the runtime uses.
        stub: Address of the stub that had the last link of the session.
        kept: The data with which another node can take the session over; its credentials follow
            from `identity`. None: the session ends with its node.
        identity: The identity of the login that opened the session; None: nobody logged in.
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
        """The key of the row in the shared store."""
        return session_key(self.runtime)


@attrs.frozen(slots=True)
class OwnerRow:
    """Row for the owner of an address, which is a runtime with a session.

    Attributes:
        block: The key under which the address was allocated together with others; None: no key.
        is_bound: Whether the runtime chose and bound the address, instead of the node.
    """

    address: str
    runtime: str
    block: str | None = None
    is_bound: bool = False

    @property
    def key(self) -> str:
        """The key of the row in the shared store."""
        return owner_key(self.address)


@attrs.frozen(slots=True)
class PathRow:
    """Row that tells other nodes that a node has subscribers of a resource."""

    resource: str
    holder: Holder

    @property
    def key(self) -> str:
        """The key of the row in the shared store."""
        return path_key(self.resource, self.holder.node)


@attrs.frozen(slots=True)
class NameRow:
    """Row that reserves the name of a runtime for a user."""

    name: NameKept

    @property
    def key(self) -> str:
        """The key of the row in the shared store."""
        return name_key(self.name.runtime)


GroupRow: TypeAlias = NodeRow | SessionRow | OwnerRow | PathRow | NameRow | PolicyRow | CatalogueRow


_DIGEST: Final = 32
"""Number of bytes of the digest that replaces a long address."""

_DIGEST_MARK: Final = "~"
"""First character of the digest of a long address; no address begins with it."""


def brief(address: str) -> str:
    """Return the form of an address in a key: the address, or its digest if too long."""
    if len(address.encode()) <= GROUP_ADDRESS:
        return address
    return _DIGEST_MARK + blake2b(address.encode(), digest_size=_DIGEST).hexdigest()


def full(about: str, said: Json) -> str | None:
    """Return the address that a part of a key stands for, or None if it is invalid.

    Args:
        about: The part of the key: an address, or its digest.
        said: The address in the value of the row, if the key has a digest.
    """
    if not about.startswith(_DIGEST_MARK):
        return about
    return said if isinstance(said, str) and said != about and brief(said) == about else None


def node_key(node: str) -> str:
    """Return the key of the row for a node."""
    return f"{Kind.NODE}/{node}"


_SESSIONS: Final = f"{Kind.SESSION}/"


def session_key(runtime: str) -> str:
    """Return the key of the row for a runtime's session."""
    return _SESSIONS + runtime  # fast, since it is called for each message


def owner_key(address: str) -> str:
    """Return the key of the row for the owner of an address."""
    return f"{Kind.OWNER}/{brief(address)}"


def path_key(resource: str, node: str) -> str:
    """Return the key of the row that says that a node has subscribers of a resource.

    Args:
        resource: Address of the resource.
        node: Id of the node.
    """
    return f"{Kind.PATH}/{brief(resource)}/{node}"


def name_key(runtime: str) -> str:
    """Return the key of the row that reserves the name of a runtime."""
    return f"{Kind.NAME}/{runtime}"


_NODE_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def is_node_id(text: str) -> bool:
    """Return whether a text can be the id of a node: up to 64 letters, digits, `.`, `_`, `-`."""
    return _NODE_ID.fullmatch(text) is not None
