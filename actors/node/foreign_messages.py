"""What the bus of a node and its ways to other domains tell each other."""

from typing import TypeAlias, final

import attrs

from actors.kit.actor import ActorRef
from fsm.catalogue.foreign_io import Banish, Send
from specs.message import Message

__all__ = ["Abroad", "AbroadIs", "ForgottenBy", "FromAbroad"]

Abroad: TypeAlias = ActorRef[Send | Banish]
"""Takes what is for other domains."""


@final
@attrs.frozen
class AbroadIs:
    """The ways to other domains are open from now on."""

    abroad: Abroad


@final
@attrs.frozen
class ForgottenBy:
    """The node of a foreign domain may have forgotten what was subscribed there."""

    peer: str


@final
@attrs.frozen
class FromAbroad:
    """A stub of a foreign domain has brought a message; nothing of it was checked.

    Attributes:
        peer: The node of that domain.
        stub: The stub that brought it.
    """

    peer: str
    stub: str
    message: Message
