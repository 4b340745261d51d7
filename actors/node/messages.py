"""The messages of the bus of a node."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, final

import attrs

from actors.kit.back_ends.requests import Asked
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.mailbox import Reply
from actors.node.errors import AddressTakenError
from actors.node.links.acceptor import Item
from actors.node.links.port import Port
from fsm.catalogue.foreign import ForeignCore
from fsm.effects import Refused
from fsm.policy.model import Book
from specs.message import Message

if TYPE_CHECKING:
    from fsm.group.catalogue import CatalogueRow


ForeignCall: TypeAlias = Callable[[ForeignCore, float], None]
"""A call of the table of foreign domains at a time; the task of its owner makes it."""

ForeignRef: TypeAlias = ActorRef[ForeignCall]
"""Takes what is for other domains."""


@final
@attrs.frozen
class ForeignReady:
    """The routes to other domains are open from now on."""

    foreign: ForeignRef


@final
@attrs.frozen
class PathsForgotten:
    """The node of a foreign domain may have forgotten what was subscribed there."""

    peer: str


@final
@attrs.frozen
class FromForeign:
    """A stub of a foreign domain has brought a message; nothing of it was checked."""

    peer: str
    stub: str
    message: Message


@final
@attrs.frozen
class Connected:
    """A link is there; it has no session yet."""

    port: Port


@final
@attrs.frozen(slots=True)
class Arrived:
    """The content of one frame of a link."""

    number: int
    items: Sequence[Item]


@final
@attrs.frozen
class TooLarge:
    """A link sent a frame over the limit: nothing more can be read from it."""

    number: int


@final
@attrs.frozen
class Misbehaved:
    """A link sent more malformed messages than are borne: it has to go."""

    number: int


@final
@attrs.frozen
class Gone:
    """A link is no more."""

    number: int
    name: str
    why: str


@final
@attrs.frozen
class RuntimeLeft:
    """The session of a runtime is over.

    Attributes:
        is_released: Whether its user has released its name, so that it does not come back.
    """

    runtime: str
    why: str
    is_released: bool = False


Component: TypeAlias = ActorRef[Asked | RuntimeLeft]
"""A part of the node that is an actor of its own."""


@final
@attrs.frozen
class Attached:
    """A component is to be reachable at an address from now on (MN-09).

    Attributes:
        verdict: Receives the objection to it; None: there is none.
    """

    address: str
    component: Component
    verdict: Reply[AddressTakenError | None] | None = None


@final
@attrs.frozen
class Detached:
    """A component is no longer reachable there."""

    address: str
    component: Component


@final
@attrs.frozen
class Emitted:
    """A component has something to say.

    Attributes:
        to_runtime: The session an answer goes back over; None: by its address.
    """

    message: Message
    to_runtime: str | None = None


@attrs.frozen
class GroupEvent:
    """News of the other nodes of the domain, or of the engine that they share."""


@attrs.frozen
class LogEvent:
    """News of the logs that keep durable messages."""


@final
@attrs.frozen
class PoliciesReread(GroupEvent):
    """The domain is to have the policies of this node's files.

    Attributes:
        reply: Receives those that are in effect then, or why the change was not made.
    """

    book: Book
    reply: Reply[Book | Refused]


@final
@attrs.frozen
class CatalogueRead(GroupEvent):
    """The directory of the node's catalogue has other files.

    Attributes:
        files: All of them that can be used, by path.
    """

    files: "Mapping[str, CatalogueRow]"


@final
@attrs.frozen
class Drain:
    """The node is going down: close every session, take no new one."""

    done: Reply[None]


@final
@attrs.frozen
class Alive:
    """A check asks whether the bus handles its messages."""

    reply: Reply[None]


@final
@attrs.frozen
class SessionView:
    """The state of a session.

    Attributes:
        link: Name of its link; None while detached.
    """

    runtime: str
    state: str
    link: str | None
    addresses: tuple[str, ...]
    paths: tuple[str, ...]


@final
@attrs.frozen
class Snapshot:
    """A request for the list of sessions."""

    reply: Reply[tuple[SessionView, ...]]


Operation: TypeAlias = (
    Attached
    | Detached
    | ForeignReady
    | PathsForgotten
    | GroupEvent
    | LogEvent
    | Drain
    | Snapshot
    | Alive
)
"""What the bus does beside what links, parts and stubs bring."""

BusMessage: TypeAlias = (
    Connected | Arrived | TooLarge | Misbehaved | Gone | Emitted | FromForeign | Operation
)
