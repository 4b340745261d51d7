"""The kinds of rows that the nodes of a domain share, and their keys in the engine.

A key is `<kind>/<subject>`. For an address that is too long for a key, the key has a digest, and
the value has the address.
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
    """The tables of the trace in which the nodes of a group record their knowledge of each other.

    Attributes:
        MEMBERS: By node id: name of the group and boot epoch; with the revision of the node's own
            lease, each time that it is written.
        HOMES: By runtime: node id, boot epoch and epoch of a session that the node has according to
            the engine, with the revision of the row.
        ENGINE: By the node's own id: outages of the engine, messages that found no room here, and
            messages that may be lost with the engine.
    """

    MEMBERS = "members"
    HOMES = "homes"
    ENGINE = "engine"


class RowRefusal(StrEnum):
    """The reasons why a row is refused."""

    UNKNOWN_KIND = "unknown kind"
    MALFORMED = "malformed"
    TOO_LARGE = "too large"
    TOO_MANY = "too many rows"


class RowRefusedError(ProtoflyError):
    """A row of the engine has an unknown form, or a later version's; the node ignores it.

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
    """One process of a node; its rows are void when it ends.

    Attributes:
        node: Id of the node.
        boot: Its boot epoch, which changes each time the node joins.
    """

    node: str
    boot: int


@attrs.frozen(slots=True)
class NodeReport:
    """The state of a node, for people: no decision depends on it.

    Attributes:
        up: Seconds since the node started.
        figures: Counts by name, at most `GROUP_FIGURES`; a missing one is 0.
    """

    up: float
    figures: Mapping[str, int]


@attrs.frozen(slots=True)
class NodeRow:
    """The membership of a node in the group, as long as the row exists.

    Attributes:
        address: Base URL at which other nodes and the dashboard reach it by HTTP; empty: none.
        is_leaving: Whether it is shutting down.
        report: Its report when it wrote the row; None: none that can be read. It is ignored when
            rows are compared.
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
    """The session of a runtime.

    Attributes:
        holder: The process that has it; the session is free once that process is no member.
        epoch: Raised by each node that takes the session up.
        form: The form that the runtime speaks.
        stub: Address of the stub that had its last link.
        kept: The data with which another node can take it up; the credentials follow from
            `identity`. None: it ends with its node.
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
    """The owner of an address: a runtime with a session.

    Attributes:
        block: The key under which it was allocated together with others; None: no key.
        is_bound: Whether it was bound, not allocated by the node.
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
    """A node that delivers messages for a resource to its subscribers."""

    resource: str
    holder: Holder

    @property
    def key(self) -> str:
        """The key of the row."""
        return path_key(self.resource, self.holder.node)


@attrs.frozen(slots=True)
class NameRow:
    """The user to whom the name of a runtime belongs."""

    name: NameKept

    @property
    def key(self) -> str:
        """The key of the row."""
        return name_key(self.name.runtime)


GroupRow: TypeAlias = NodeRow | SessionRow | OwnerRow | PathRow | NameRow | PolicyRow | CatalogueRow


_DIGEST: Final = 32
"""Number of bytes of a digest."""

_DIGEST_MARK: Final = "~"
"""First character of the digest of a long address; no address begins with it."""


def brief(address: str) -> str:
    """Return the form of an address in a key: the address, or a digest if it is too long."""
    if len(address.encode()) <= GROUP_ADDRESS:
        return address
    return _DIGEST_MARK + blake2b(address.encode(), digest_size=_DIGEST).hexdigest()


def full(about: str, said: Json) -> str | None:
    """Return the address for a part of a key, or None if it is invalid.

    Args:
        about: The part of the key.
        said: The address in the value, if the key has a digest.
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
