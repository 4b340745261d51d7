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


class Stepwise(actors.Hyperty):
    """Works in steps, and tells its requester of each."""

    def __init__(self):
        self.ends = []

    async def on_request(self, message):
        try:
            for step in range(message.value["steps"]):
                await self.progress(message, {"step": step})
                await trio.sleep(message.value["pause"])  # real time: it may be in a process
        except trio.Cancelled:
            self.ends.append("cancelled")
            raise
        return "done"

    @actors.handles("update")
    async def follow(self, order: dict[str, actors.Json]) -> list[actors.Json]:
        """Request work of another, and return all that it has answered."""
        async with self.open_request(order["to"], order["work"]) as request:
            return [answer.value async for answer in request]


class Stubborn(Patient):
    """Its handlers are never cancelled by requesters."""

    shield = True
