"""A chat room whose history goes on: the newest texts stay, and a moderator deletes a rude one.

Run it: `python examples/chat_room.py`

The room is a data object, each text is a child of it. A member that joins late receives the window
of the newest texts.
"""

from collections.abc import Mapping

import trio

import actors

WINDOW = actors.ChildWindow(last=5, seconds=7 * 24 * 3600)
"""The room keeps five texts, for a week at most."""


class Moderator(actors.Hyperty):
    """Reports the room."""


class Member(actors.Hyperty):
    """Reads the room, and writes into it."""


async def moderate(room: actors.ReportedObject) -> None:
    """Delete each rude text, until the room is closed."""
    async for change in room.children.changes():
        if "fool" in text_of(change.new):
            await room.children[change.id].delete()
            print(f"the moderator deletes a text of {name_of(change.new)}")


async def write(room: actors.ObservedObject, name: str, *texts: str) -> None:
    """Write texts into the room, with the name of their author."""
    for text in texts:
        await room.children.create({"by": name, "text": text})


def text_of(text: actors.Json) -> str:
    """Return what a child of the room says; empty: the child is gone."""
    return str(text["text"]) if isinstance(text, Mapping) else ""


def name_of(text: actors.Json) -> str:
    """Return who wrote a child of the room."""
    return str(text["by"]) if isinstance(text, Mapping) else ""


def texts_in(room: actors.ObservedObject) -> str:
    """Return the texts that a member has, the oldest first, a line for each."""
    values = [child.value for child in room.children.values()]
    return "\n".join(f"  {name_of(value)}: {text_of(value)}" for value in values)


async def main() -> None:
    """Let two members write, and a third one join late."""
    async with (
        actors.open_node("chat.example") as node,
        actors.open_runtime("chat.example", "server", node=node.url) as server,
        actors.open_runtime("chat.example", "home", node=node.url) as home,
        await server.deploy(Moderator) as moderator,
        await home.deploy(Member) as ann,
        await home.deploy(Member) as ben,
        await home.deploy(Member) as late,
        moderator.report("comm", {"topic": "soup"}, public=True, children=WINDOW) as room,
        ann.observe(room.url) as of_ann,
        ben.observe(room.url) as of_ben,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(moderate, room)
        await write(of_ann, "ann", *(f"{number} spoons of salt" for number in range(2, 12)))
        await write(of_ben, "ben", "you fool", "less salt, please")
        while "fool" in (texts := texts_in(of_ann)) or "please" not in texts:
            await of_ann.children.wait_for_change()
        print(f"ann reads\n{texts}")
        async with late.observe(room.url) as of_late:
            print(f"a late member reads\n{texts_in(of_late)}")
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
