"""Small hyperties for trying things out; commands name them as `echo=actors.hyperties:Echo`."""

from typing import final

from typing_extensions import override

from actors.runtime.hyperty.hyperty import Hyperty
from specs.jsonvalue import Json
from specs.message import Message

__all__ = ["Caller", "Counter", "Echo"]


@final
class Echo(Hyperty):
    """Answers every request with the value that the request carries."""

    @override
    async def on_request(self, message: Message) -> Json:
        return message.body.get("value")


@final
class Counter(Hyperty):
    """Counts numbered requests, so that lost and repeated ones show.

    A request with the value `{"number": n}` is counted and answered with the same value. A
    request with the value `"report"` is answered with `{"distinct": d, "doubled": r}`: how many
    different numbers came, and how many requests repeated a number.
    """

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._doubled = 0

    @override
    async def on_request(self, message: Message) -> Json:
        value = message.body.get("value")
        if value == "report":
            return {"distinct": len(self._seen), "doubled": self._doubled}
        number = value.get("number") if isinstance(value, dict) else None
        if isinstance(number, int):
            self._doubled += number in self._seen
            self._seen.add(number)
        return value


@final
class Caller(Hyperty):
    """Answers every request 400; the program that deployed it sends requests in its name."""
