"""What a connector relays to: the seam between its queue and one kind of back end."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TypeAlias, final

import attrs

from actors.node.messages import Asked
from specs.errors import ReasonError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message

__all__ = ["BackEndError", "Plan", "Replied", "Say", "Service", "with_value"]

Say: TypeAlias = Callable[[Message], Awaitable[None]]
"""Sends a message by its address, as the connector's."""


@final
class BackEndError(ReasonError):
    """The back end was asked, and what came is no answer."""

    told = "the back end failed"


@final
@attrs.frozen
class Replied:
    """What the back end answered, in the protocol's terms.

    Attributes:
        code: A reply code.
        body: What the answer says besides its code.
        news: What others are to be told, after the answer.
    """

    code: int
    body: JsonObject = attrs.field(factory=dict)
    news: tuple[Message, ...] = ()


def with_value(code: int, value: Json, why: str = "") -> Replied:
    """Answer with a value, and a sentence if there is one."""
    return Replied(code, {"description": why, "value": value} if why else {"value": value})


@final
@attrs.frozen
class Plan:
    """What a request asks of the back end.

    Attributes:
        perform: Asks it; bounded and cancelled by the connector.
        lane: What must keep its order; None: nothing.
    """

    perform: Callable[[], Awaitable[Replied]]
    lane: str | None = None


class Service(ABC):
    """One kind of back end; everything but `Plan.perform` and `run` is on the spot."""

    @abstractmethod
    def plan(self, asked: Asked) -> Plan | Replied:
        """Read a request; what needs no back end is answered here.

        `Plan.perform` raises `HttpError` or `BackEndError` when no answer can be had.

        Raises:
            BadMessageError: It asks for nothing that is known.
        """

    @abstractmethod
    def left(self, runtime: str) -> None:
        """Hear that the session of a runtime is over, and its requests given up."""

    @abstractmethod
    async def run(self, say: Say) -> None:
        """Do what is to be done beside requests, for as long as the connector lives."""

    @abstractmethod
    async def farewell(self) -> None:
        """Finish what must not stay undone; bounded by who waits."""

    @abstractmethod
    async def aclose(self) -> None:
        """Let go of the back end; bounded."""
