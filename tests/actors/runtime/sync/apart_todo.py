"""A hyperty that writes a live value, in a module that another process can import."""

import trio
from typing_extensions import override

import actors

DEFINITION: actors.JsonObject = {
    "properties": {"items": {"type": "array", "items": {"required": ["title"]}}}
}


class Writer(actors.Hyperty):
    """Adds a title that it is asked to, and answers with what came of it."""

    def __init__(self):
        self.list = None
        self.is_there = trio.Event()

    @override
    async def started(self):
        self.spawn(self.write)

    async def write(self):
        async with self.report("comm", {"items": []}, definition=DEFINITION) as self.list:
            self.is_there.set()
            await trio.sleep_forever()

    @override
    async def on_request(self, message):
        await self.is_there.wait()
        try:
            self.list.data.items.append(message.body["value"])
            self.list.data.items[-1].done = False
        except actors.SchemaError as error:
            return str(error)
        return [self.list.url, await self.list.flush(), dict(self.list.value)]

    @override
    async def on_subscribe(self, url, observer):
        pass
