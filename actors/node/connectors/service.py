"""The interface between a connector and one kind of back end, and code that back ends share.

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
"""Sends a message of the connector, which is routed by its address."""


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
    """Return a reply with a value, and with a sentence if it is not empty.

    Args:
        code: Reply code.
        value: Content of the answer.
        why: The reason.
    """
    return Replied(code, {"description": why, "value": value} if why else {"value": value})


@attrs.frozen
class Plan:
    """The work of the back end for a request.

    Attributes:
        perform: Sends the request; the connector limits and cancels it.
        lane: Requests of the same lane are performed in order; None: no order.
    """

    perform: Callable[[], Awaitable[Replied]]
    lane: str | None = None


class Service(ABC):
    """One kind of back end; only `Plan.perform` and `run` may wait for long."""

    @abstractmethod
    def plan(self, asked: Asked) -> Plan | Replied:
        """Read a request; return the work for the back end, or a reply that needs none.

        `Plan.perform` raises `HttpError` or `BackEndError` when the back end gives no answer.

        Raises:
            BadMessageError: The request is invalid.
        """

    @abstractmethod
    def forget_runtime(self, runtime: str) -> None:
        """Note that the session of a runtime is over, and that its requests were given up."""

    @abstractmethod
    async def run(self, say: Say) -> None:
        """Work beside the requests for as long as the connector lives."""

    @abstractmethod
    async def closing(self) -> None:
        """Finish pending work; the number of waiting requests bounds it."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the back end, within bounds."""


_log = get_logger("actors.node")


class RetryWorker:
    """Repeat calls to one back end until they succeed.

    Args:
        what: Kind of the pending calls, for the log.
        perform: Makes one of the calls, by its name; may raise `HttpError` or `BackEndError`.
    """

    def __init__(self, what: str, perform: Callable[[str], Awaitable[None]]) -> None:
        self._what = what
        self._perform = perform
        self._retries = RetryQueue()
        self._has_news = trio.Event()
        self._is_idle = trio.Event()

    def __len__(self) -> int:
        return len(self._retries)

    def schedule(self, name: str) -> None:
        """Schedule a call as soon as possible."""
        self._retries.owe(name, trio.current_time())
        self._has_news.set()

    def cancel(self, name: str) -> None:
        """Cancel a scheduled call. Idempotent."""
        self._retries.remove(name)

    async def run(self) -> None:
        """Make the scheduled calls until cancelled."""
        while True:
            self._has_news = trio.Event()
            for name in self._retries.due(trio.current_time()):
                if name in self._retries:
                    await self._try(name)
            if not self._retries:
                self._is_idle.set()
            with trio.move_on_at(self._retries.deadline()):
                await self._has_news.wait()

    async def settle(self) -> None:
        """Wait a limited time until no call is pending; `run` has to run."""
        with trio.move_on_after(GOODBYE_TIMEOUT / 2):
            await trio.lowlevel.checkpoint()
            while self._retries:
                self._is_idle = trio.Event()
                await self._is_idle.wait()
        if self._retries:
            _log.warning("back end calls left undone", what=self._what, count=len(self._retries))

    async def _try(self, name: str) -> None:
        try:
            with trio.move_on_after(BACKEND_TIMEOUT) as patience:
                await self._perform(name)
            if not patience.cancelled_caught:
                self._retries.remove(name)
                return
        except (HttpError, BackEndError) as exc:
            _log.debug("not done yet", what=self._what, why=exc.reason)
        if self._retries.count_failure(name, trio.current_time()):
            _log.error("call to the back end given up", what=self._what, name=name)
