"""A hyperty that reports, in a module that another process can import."""

import trio
from typing_extensions import override

from actors.runtime.hyperty.hyperty import Hyperty


class Thermometer(Hyperty):
    """Reports a temperature; tells where when it is asked, and is warmer each time."""

    def __init__(self):
        self.thing = None
        self.is_there = trio.Event()

    @override
    async def started(self):
        self.spawn(self.measure)

    async def measure(self):
        async with self.report("ctxt", {"celsius": 20}) as self.thing:
            self.is_there.set()
            await trio.sleep_forever()

    @override
    async def on_request(self, message):
        await self.is_there.wait()
        await self.thing.set("celsius", self.thing.value["celsius"] + 1)
        return self.thing.url

    @override
    async def on_subscribe(self, url, observer):
        pass


class Named(Hyperty):
    """Cannot be made by its class alone."""

    def __init__(self, name):
        self.name = name
