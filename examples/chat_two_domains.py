"""A chat between two domains: Alice reports a data object, and invites Bob to write into it.

Run it: `python examples/chat_two_domains.py`

Each domain has its own node. Each runtime knows the address of the other domain's node and
dials it at its first message to that domain.
"""

from contextlib import AsyncExitStack

import trio

import actors

Runtimes = tuple[actors.Runtime, actors.Runtime]


class Host(actors.Hyperty):
    """Reports the chat, and adds the lines that others request."""

    chat_object: actors.ReportedObject

    async def on_request(self, message: actors.Message) -> actors.Json:
        """Add a line to the chat, with the name of its author."""
        line = message.value
        if not isinstance(line, str):
            raise actors.Refused(actors.Code.MALFORMED, "a line is a text")
        await self.chat_object.add("lines", f"bob: {line}")
        return None


class Participant(actors.Hyperty):
    """Accepts an invitation, reads the chat, and adds a line."""

    def __init__(self) -> None:
        self.has_read = trio.Event()
        self.has_left = trio.Event()

    async def on_invited(self, invited: actors.Invited) -> None:
        """Accept, and observe the chat in a separate task."""
        print(f"bob is invited to {invited.shown.get('name')!r}")
        self.spawn(self.chat, invited)

    async def chat(self, invited: actors.Invited) -> None:
        """Add a greeting, and print lines until the chat is closed."""
        async with self.observe(invited.url) as chat:
            await self.request(invited.reporter, "Hello from the other domain!")
            shown = 0
            async for state in chat.states():
                lines = state.value.get("lines")
                for line in lines[shown:] if isinstance(lines, list) else ():
                    print(f"bob reads      {line}")
                    shown += 1
                if shown == 2:
                    self.has_read.set()
        print("bob sees that the chat is closed")
        self.has_left.set()


async def main() -> None:
    """Exchange two lines."""
    host, participant = Host(), Participant()
    async with AsyncExitStack() as stack:
        here, there = await open_domains(stack)
        alice = await here.deploy(lambda: host, "alice")
        bob = await there.deploy(lambda: participant, "bob")
        async with alice.report("comm", {"lines": []}, name="the garden") as host.chat_object:
            await host.chat_object.invite(bob.url)
            async with alice.observe(host.chat_object.url) as chat:
                await chat.wait_for(lambda value: bool(value["lines"]))
            await host.chat_object.add("lines", "alice: Hello Bob!")
            await participant.has_read.wait()
            print(f"alice's chat   {host.chat_object.value['lines']}")
        await participant.has_left.wait()


async def open_domains(stack: AsyncExitStack) -> Runtimes:
    """Open two domains with one runtime each and a route to each other."""
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
