"""Who is here: each person has a data object with a status, and everybody sees everybody's.

A search that is followed finds the objects of those who come, and reports those who leave.
"""

from contextlib import AsyncExitStack
from functools import partial

import trio

import actors

DOMAIN = "a.example"
RESOURCE = "presence"


class Person(actors.Hyperty):
    """Shows its own status, and keeps a list of the others'."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.present: dict[str, str] = {}
        self._changed = trio.Event()

    def note(self, name: str, status: str | None) -> None:
        """Keep the status of a person; None: the person has left."""
        if status is None:
            self.present.pop(name, None)
        else:
            self.present[name] = status
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, **expected: str) -> None:
        """Wait until the list is as expected."""
        while self.present != expected:
            await self._changed.wait()

    async def look(self) -> None:
        """Follow all who are present, for ever."""
        async with trio.open_nursery() as nursery:
            changes = self.watch(resources=(RESOURCE,), scheme="ctxt")
            async for change in changes:
                if change.change is actors.Change.APPEARED:
                    nursery.start_soon(self._follow, change.entry.url)

    async def _follow(self, url: str) -> None:
        name = None
        try:
            async with self.observe(url) as status:
                name = str(status.value["name"])
                self.note(name, str(status.value["status"]))
                async for state in status.states():
                    self.note(name, str(state.value["status"]))
        except actors.ObjectError:
            pass  # the person left before we saw the status
        if name is not None:
            self.note(name, None)


def itself(person: Person) -> Person:
    """Return a person: each is deployed once, and a crash would end it."""
    return person


async def main() -> None:
    async with actors.open_node(DOMAIN) as node, AsyncExitStack() as stack:
        statuses = {}
        people = [Person(name) for name in ("alice", "bob")]
        for person in people:
            opening = actors.open_runtime(DOMAIN, person.name, node=node.url)
            runtime = await stack.enter_async_context(opening)
            await runtime.deploy(partial(itself, person))
            value = {"name": person.name, "status": "here"}
            report = person.report("ctxt", value, resources=(RESOURCE,), public=True)
            statuses[person.name] = await stack.enter_async_context(report)
            person.spawn(person.look)
        alice = people[0]
        await alice.until(alice="here", bob="here")
        print("alice sees", dict(sorted(alice.present.items())))
        await statuses["bob"].set("status", "at lunch")
        await alice.until(alice="here", bob="at lunch")
        print("alice sees", dict(sorted(alice.present.items())))
        await statuses["bob"].delete()
        await alice.until(alice="here")
        print("alice sees", dict(sorted(alice.present.items())))


if __name__ == "__main__":
    trio.run(main)
