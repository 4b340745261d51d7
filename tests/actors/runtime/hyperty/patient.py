"""A hyperty whose handlers take long, in a module that another process can import."""

import trio

import actors


class Patient(actors.Hyperty):
    """Works as long as it is told, and notes how its work ends."""

    def __init__(self):
        self.begun = 0
        self.ends = []

    async def work(self, seconds):
        self.begun += 1
        try:
            await trio.sleep(seconds)  # real time: of a process, or of the test
        except trio.Cancelled:
            self.ends.append("cancelled")
            raise
        self.ends.append("done")
        return "done"

    async def on_request(self, message):
        return await self.work(message.value)

    @actors.handles("execute", shield=True)
    async def work_on(self, seconds: float) -> str:
        return await self.work(seconds)

    @actors.handles("update")
    async def give_up(self, order: dict[str, actors.Json]) -> None:
        """Request work of another, and give up."""
        with trio.move_on_after(order["wait"]):
            await self.request(order["to"], order["seconds"], order.get("type", "create"))

    @actors.handles("read")
    async def told(self) -> list[str]:
        return self.ends


class Stubborn(Patient):
    """Its handlers are never cancelled by requesters."""

    shield = True
