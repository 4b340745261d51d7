"""The hyperty of a simulation: it does what it is asked, and has written down what came."""

from collections.abc import Awaitable, Callable

import trio

from actors.runtime.hyperty.hyperty import Hyperty
from specs.jsonvalue import Json
from specs.message import Message, MessageType
from tests.simulation.judgement.history import Executed, History, Overheard


class Worker(Hyperty):
    """Answers a numbered request with its own value; crashes if it is to.

    Args:
        life: Of which process; `r0.1` is the first life of `r0`.
        history: Where to write.
        here: Told of every new life of the hyperty.
        rest: Waits until the hyperty is not busy any more.
    """

    def __init__(
        self,
        life: str,
        history: History,
        here: Callable[["Worker"], None],
        rest: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
    ) -> None:
        self.life = life
        self._history = history
        self._here = here
        self._rest = rest

    async def started(self) -> None:
        self._here(self)

    async def on_request(self, message: Message) -> Json:
        value = message.body.get("value")
        if not isinstance(value, dict) or "n" not in value:
            return None
        number = int(value["n"])
        self._history.note(Executed(trio.current_time(), number, self.url))
        if value.get("crash"):
            self.spawn(self._fall)
            await trio.sleep_forever()
        await self._rest()
        await trio.sleep(number % 3 * 0.02)
        return value

    async def _fall(self) -> None:
        raise RuntimeError("told to crash")

    async def on_subscribe(self, url: str, observer: str) -> None:
        """Let everybody in."""

    async def on_event(self, message: Message) -> None:
        version = message.body.get("version")
        if message.type is MessageType.UPDATE and isinstance(version, int):
            now = trio.current_time()
            self._history.note(Overheard(now, self.life, message.from_, version))
