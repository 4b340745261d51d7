"""A hyperty that observes what it is ordered to, for as long as its process lives."""

import trio

import actors


class Watcher(actors.Hyperty):
    """Observes the object that it is sent; asked for the next, it waits for another value."""

    def __init__(self):
        self.copy = None
        self.is_there = trio.Event()

    async def hold(self, url):
        async with self.observe(url) as self.copy:
            self.is_there.set()
            await trio.sleep_forever()

    async def on_request(self, message):
        wanted = message.body["value"]
        if wanted == "next":
            return (await self.copy.wait_for(lambda value: value["n"] != 0)).value["n"]
        self.spawn(self.hold, wanted)
        await self.is_there.wait()
        return self.copy.value["n"]
