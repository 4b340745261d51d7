"""The interface between a connector and one kind of back end, and what back ends share.

`RetryWorker` hosts the retry queue of one back end.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import attrs
import trio

from actors.kit.back_ends.requests import Asked, BackEndError
from actors.kit.http_client import HttpError
from actors.kit.log import get_logger
from fsm.registry.relay import RetryQueue
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import BACKEND_TIMEOUT
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import Message

Say: TypeAlias = Callable[[Message], None]
"""Sends a message by its address, as the connector's."""


@attrs.frozen
class Replied:
    """The answer of a back end, in the protocol's terms.

    Attributes:
        notices: Messages to others, sent after the answer.
    """

    code: int
    body: JsonObject = attrs.field(factory=dict)
    notices: tuple[Message, ...] = ()


def with_value(code: int, value: Json, why: str = "") -> Replied:
    """Answer with a value, and a sentence if there is one.

    Args:
        code: Reply code.
        value: Content of the answer.
        why: The reason.
    """
    return Replied(code, {"description": why, "value": value} if why else {"value": value})


@attrs.frozen
class Plan:
    """The work that a request needs of the back end.

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
    def forget_runtime(self, runtime: str) -> None:
        """Note that the session of a runtime is over, and its requests given up."""

    @abstractmethod
    async def run(self, say: Say) -> None:
        """Do what is to be done beside requests, for as long as the connector lives."""

    @abstractmethod
    async def closing(self) -> None:
        """Finish what must not stay undone; bounded by the waiting requests."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the back end, within bounds."""


_log = get_logger("actors.node")


class RetryWorker:
    """Owes things to one back end.

    Args:
        pay: Does one of them by its name; raises `HttpError` or `BackEndError` if it cannot.
    """

    def __init__(self, what: str, pay: Callable[[str], Awaitable[None]]) -> None:
        self._what = what
        self._pay = pay
        self._retries = RetryQueue()
        self._stirred = trio.Event()
        self._is_idle = trio.Event()

    def __len__(self) -> int:
        return len(self._retries)

    def owe(self, name: str) -> None:
        """Have something done as soon as possible."""
        self._retries.owe(name, trio.current_time())
        self._stirred.set()

    def forgive(self, name: str) -> None:
        """Do not do it any more; nothing if it is not owed."""
        self._retries.remove(name)

    async def run(self) -> None:
        """Pay for as long as this runs."""
        while True:
            self._stirred = trio.Event()
            for name in self._retries.due(trio.current_time()):
                if name in self._retries:
                    await self._try(name)
            if not self._retries:
                self._is_idle.set()
            with trio.move_on_at(self._retries.deadline()):
                await self._stirred.wait()

    async def settle(self) -> None:
        """Wait until nothing is owed, but not for long; `run` has to run."""
        with trio.move_on_after(GOODBYE_TIMEOUT / 2):
            await trio.lowlevel.checkpoint()
            while self._retries:
                self._is_idle = trio.Event()
                await self._is_idle.wait()
        if self._retries:
            _log.warning("left undone at the back end", what=self._what, count=len(self._retries))

    async def _try(self, name: str) -> None:
        try:
            with trio.move_on_after(BACKEND_TIMEOUT) as patience:
                await self._pay(name)
            if not patience.cancelled_caught:
                self._retries.remove(name)
                return
        except (HttpError, BackEndError) as exc:
            _log.debug("not done yet", what=self._what, why=exc.reason)
        if self._retries.count_failure(name, trio.current_time()):
            _log.error("given up at the back end", what=self._what, name=name)
