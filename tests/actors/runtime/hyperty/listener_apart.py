"""A hyperty that hears events, in a module that another process can import."""

import actors


class Ear(actors.Hyperty):
    """Keeps what it hears, and passes it on to the address that the value names."""

    def __init__(self):
        self.heard = []

    async def on_event(self, message):
        if message.value == "fail":
            raise KeyError(message.value)
        self.heard.append((message.from_, message.value, message.identity))
        if isinstance(message.value, dict):
            await self.send(message.value["to"], {"heard": message.value["number"]})
