"""The messages of the bus of a node."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, final

import attrs

from actors.kit.back_ends.requests import Asked
from actors.kit.supervision.actor import ActorRef, Reply
from actors.node.errors import AddressTakenError
from actors.node.links.acceptor import Item
from actors.node.links.connection import Connection
from fsm.catalogue.foreign import ForeignCore
from fsm.effects import Refused
from fsm.policy.model import Book
from specs.message import Message

ForeignCall: TypeAlias = Callable[[ForeignCore, float], None]
"""A call of the table of foreign domains at a time; the task of its owner makes it."""

ForeignRef: TypeAlias = ActorRef[ForeignCall]
"""Takes what is for other domains."""


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
class Emitted:
    """A component has something to say.

    Attributes:
        to_runtime: The session an answer goes back over; None: by its address.
    """

    message: Message
    to_runtime: str | None = None


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


class Bus(Protocol):
    """The bus of a node, as links, parts and stubs call it.

    Attributes:
        is_over: Whether it has ended, or crashed.
    """

    is_over: bool

    def connected(self, port: Connection) -> None: ...
    def arrived(self, number: int, items: Sequence[Item]) -> None: ...
    def refuse_frame(self, number: int) -> None: ...
    def expel(self, number: int) -> None: ...
    def gone(self, number: int, name: str, why: str) -> None: ...
    def end_turn(self) -> None: ...
    def fail(self, error: Exception) -> None: ...
    def attach(self, address: str, component: Component) -> AddressTakenError | None: ...
    def detach(self, address: str, component: Component) -> None: ...
    def connect_abroad(self, foreign: ForeignRef) -> None: ...
    def renew_paths(self, peer: str) -> None: ...
    def take_foreign(self, message: Message, peer: str, stub: str) -> None: ...
    def share_policies(self, book: Book, reply: Reply[Book | Refused]) -> None: ...
    def sessions(self) -> tuple[SessionView, ...]: ...
    def drain(self, done: Reply[None]) -> None: ...


BusMessage: TypeAlias = Emitted | Callable[[Bus], object]
"""What parts have to say, or a call; the task of the bus makes it."""
