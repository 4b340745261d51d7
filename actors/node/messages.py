"""Types of calls and notices between the bus of a node and its components."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import attrs

from actors.kit.back_ends.requests import Asked
from actors.kit.supervision.actor import ActorRef
from fsm.catalogue.foreign import ForeignCore

if TYPE_CHECKING:
    from actors.node.bus import NodeBus

ForeignCall: TypeAlias = Callable[[ForeignCore, float], None]
"""A call of the table of foreign domains, with the present time; its owner makes it."""

ForeignRef: TypeAlias = ActorRef[ForeignCall]
"""Reference to the actor that carries messages to other domains."""


@attrs.frozen
class RuntimeLeft:
    """Notice to a component that the session of a runtime has ended.

    Attributes:
        is_released: Whether the user has released the name of the runtime: it never returns.
    """

    runtime: str
    why: str
    is_released: bool = False


Component: TypeAlias = ActorRef[Asked | RuntimeLeft]
"""Reference to a component of the node that is an actor."""


@attrs.frozen
class SessionView:
    """Snapshot of a session's state.

    Attributes:
        link: Name of its link; None while detached.
    """

    runtime: str
    state: str
    link: str | None
    addresses: tuple[str, ...]
    paths: tuple[str, ...]


BusMessage: TypeAlias = "Callable[[NodeBus], object]"
"""Call that the task of the bus executes."""
