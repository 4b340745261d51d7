"""A hyperty with typed handlers, in a module that another process can import."""

from enum import StrEnum

import attrs

import actors


class Size(StrEnum):
    """How large a thing is."""

    SMALL = "small"
    LARGE = "large"


@attrs.frozen
class Part:
    """A part of an order.

    Attributes:
        title: What is ordered.
    """

    title: str
    count: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    size: Size = Size.SMALL


@attrs.frozen
class Order:
    """An order of some parts."""

    parts: list[Part]
    note: str | None = None
    prices: dict[str, float] = attrs.field(factory=dict)
    free: actors.Json = None


@attrs.frozen
class Receipt:
    """The answer to an order."""

    number: int
    parts: tuple[Part, ...]


@attrs.frozen
class Greeting:
    """A greeting."""

    hello: str


@attrs.frozen
class Farewell:
    """A farewell."""

    bye: str
    when: int = 0


class Shop(actors.Hyperty):
    """Takes orders."""

    @actors.handles("create", path="/order")
    async def order(self, order: Order) -> Receipt:
        """Take an order.

        It is kept.
        """
        if order.note == "closed":
            raise actors.Refused(actors.Code.GONE, "the shop is closed")
        return Receipt(7, tuple(order.parts))

    @actors.handles("read", path="/order")
    @actors.handles("read", path="/receipt")
    async def who_reads(self, message: actors.Message) -> str:
        return message.from_

    @actors.handles("update", path="/order")
    async def change(self, numbers: list[int]) -> actors.Json:
        return {"sum": sum(numbers)}

    @actors.handles("delete")
    async def fail(self, value: actors.Json) -> None:
        raise KeyError(value)

    @actors.handles(Greeting)
    async def greet(self, greeting: Greeting, message: actors.Message) -> actors.JsonObject:
        return {"greeted": greeting.hello, "from": message.from_}

    @actors.handles(Farewell)
    async def part(self, farewell: Farewell) -> int:
        return farewell.when

    async def on_request(self, message):
        return f"plain {message.type}"
