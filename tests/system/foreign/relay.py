"""A hyperty that asks others on behalf of whoever asks it, from its own runtime."""

import trio
from typing_extensions import override

from actors.runtime.hyperty.hyperty import Hyperty
from specs.jsonvalue import Json
from specs.message import Message


class Relay(Hyperty):
    """`{"to": address, "times": n}` is answered with the codes of n answers; else an echo."""

    @override
    async def on_request(self, message: Message) -> Json:
        value = message.body.get("value")
        if not isinstance(value, dict):
            return value
        codes: list[Json] = []

        async def one(number: int) -> None:
            codes.append((await self.request(str(value["to"]), number)).code)

        async with trio.open_nursery() as nursery:
            for number in range(int(str(value["times"]))):
                nursery.start_soon(one, number)
        return codes
