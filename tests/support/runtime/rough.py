"""Hyperties and worse, for sandboxes to contain."""

import os
import sys
import time
from contextlib import suppress

import trio
from typing_extensions import override

from actors.kit.log import get_logger
from actors.runtime.hyperty.hyperty import Hyperty


async def crash():
    raise ZeroDivisionError("as it was asked to")


async def log():
    get_logger("actors.rough").warning("told", number=7)


async def leave():
    os._exit(3)


async def hang():
    time.sleep(3600)  # noqa: ASYNC251 - that is what is wrong with it


async def spin():
    while True:
        pass


async def shout():
    while True:
        sys.stderr.write("x" * 1000 + "\n")
        await trio.lowlevel.checkpoint()


def allocate(count):
    """Have pages of its own, as many as it gets of so many mebibytes; keep them."""
    held = []
    with suppress(MemoryError):
        # Pages of another value than those that the kernel hands out.
        held.extend(b"x" * size for size in [1_048_576] * count)
    return held


ACTS = {
    "crash": crash,
    "log": log,
    "exit": leave,
    "hang": hang,
    "spin": spin,
    "shout": shout,
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
            case {"allocate": int(count)}:
                self.held = allocate(count)
                return len(self.held)
            case "url":
                return self.url
            case "flood":
                for _ in range(20):
                    self.spawn(self._flood, message.from_)
            case str():
                await ACTS.get(value, trio.lowlevel.checkpoint)()
        return value

    async def _flood(self, to):
        while True:
            await self.request(to, "x" * 100)
