"""Hyperties and worse, for sandboxes to contain."""

import os
import time

import trio
from typing_extensions import override

from actors.runtime.hyperty.hyperty import Hyperty


async def crash():
    raise ZeroDivisionError("as it was asked to")


async def leave():
    os._exit(3)


async def hang():
    time.sleep(3600)  # noqa: ASYNC251 - that is what is wrong with it


async def spin():
    while True:
        pass


HARMS = {
    "crash": crash,
    "exit": leave,
    "hang": hang,
    "spin": spin,
    "sleep": trio.sleep_forever,
}


class Rough(Hyperty):
    """Does what it is asked for, whatever that is; anything else it answers with its own value."""

    @override
    async def on_request(self, message):
        value = message.body.get("value")
        match value:
            case {"ask": to, "value": inner}:
                answer = await self.request(to, inner)
                return {"code": answer.code, "value": answer.body.get("value")}
            case "url":
                return self.url
            case "flood":
                for _ in range(20):
                    self.spawn(self._flood, message.from_)
            case str():
                await HARMS.get(value, trio.lowlevel.checkpoint)()
        return value

    async def _flood(self, to):
        while True:
            await self.request(to, "x" * 100)


class Sick(Hyperty):
    """Does not even start."""

    @override
    async def started(self):
        raise ZeroDivisionError("never well")
