"""A chat between two domains: Alice reports the room, Bob is invited and writes into it.

Run it: `python examples/chat_two_domains.py`

Each domain has its own node; each runtime knows the other domain's node, and
dials it when it first has something to say there.
"""

from contextlib import AsyncExitStack

import trio

import actors

Runtimes = tuple[actors.Runtime, actors.Runtime]


class Host(actors.Hyperty):
    """Owns the room: what others ask it to say is added for all to see."""

    room: actors.ReportedObject

    async def on_request(self, message: actors.Message) -> actors.Json:
        """Add a line to the room, signed by who asked."""
        line = message.body.get("value")
        if not isinstance(line, str):
            raise actors.Refused(actors.Code.MALFORMED, "a line is a text")
        await self.room.add("lines", f"bob: {line}")
        return None


class Guest(actors.Hyperty):
    """Comes when it is invited, reads, and answers."""

    def __init__(self) -> None:
        self.has_read = trio.Event()
        self.has_left = trio.Event()

    async def on_invited(self, invited: actors.Invited) -> None:
        """Accept: go on in a task of our own."""
        print(f"bob is invited to {invited.shown.get('name')!r}")
        self.spawn(self.chat, invited)

    async def chat(self, invited: actors.Invited) -> None:
        """Say hello, and read until the room is closed."""
        async with self.observe(invited.url) as room:
            await self.request(invited.reporter, "Hello from the other domain!")
            shown = 0
            async for state in room.states():
                lines = state.value.get("lines")
                for line in lines[shown:] if isinstance(lines, list) else ():
                    print(f"bob reads      {line}")
                    shown += 1
                if shown == 2:
                    self.has_read.set()
        print("bob sees that the room is closed")
        self.has_left.set()


async def main() -> None:
    """Chat for two lines."""
    host, guest = Host(), Guest()
    async with AsyncExitStack() as stack:
        here, there = await open_domains(stack)
        alice = await here.deploy(lambda: host, "alice")
        bob = await there.deploy(lambda: guest, "bob")
        async with alice.report("comm", {"lines": []}, name="the garden") as host.room:
            await host.room.invite(bob.url)
            async with alice.observe(host.room.url) as room:
                await room.wait_for(lambda value: bool(value["lines"]))
            await host.room.add("lines", "alice: Hello Bob!")
            await guest.has_read.wait()
            print(f"alice's room   {host.room.value['lines']}")
        await guest.has_left.wait()


async def open_domains(stack: AsyncExitStack) -> Runtimes:
    """Open two domains that know of each other, each with one runtime."""
    nodes = {
        domain: (await stack.enter_async_context(actors.open_node(domain))).url
        for domain in ("alice.example", "bob.example")
    }
    here, there = (
        actors.RuntimeConfig(domain=domain, name="home", node=url, nodes=nodes)
        for domain, url in nodes.items()
    )
    return (
        await stack.enter_async_context(actors.open_runtime(here)),
        await stack.enter_async_context(actors.open_runtime(there)),
    )


if __name__ == "__main__":
    trio.run(main)
