"""The messages of the bus of a node."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import attrs

from actors.kit.back_ends.requests import Asked
from actors.kit.supervision.actor import ActorRef
from fsm.catalogue.foreign import ForeignCore

if TYPE_CHECKING:
    from actors.node.bus import NodeBus

ForeignCall: TypeAlias = Callable[[ForeignCore, float], None]
"""A call of the table of foreign domains at a time; the task of its owner makes it."""

ForeignRef: TypeAlias = ActorRef[ForeignCall]
"""Takes what is for other domains."""


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


BusMessage: TypeAlias = "Callable[[NodeBus], object]"
"""A call, which the task of the bus makes."""
