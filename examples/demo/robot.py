"""The robot on the page of the demonstration: it reports a chat and a to-do list, and takes part.

Pages observe both objects and ask the robot for each change, so that all changes have one order and
all copies are equal. The sender of a request is what the runtime has established, never what a page
says of itself.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs

import actors

PEOPLE = 24
"""Participants that the robot knows at a time."""
NAME = 40
"""Characters of the name of a participant; the form of the page has the same limit."""
TEXT = 400
"""Characters of a line of the chat, or of an entry of the list; so have the forms of the page."""
LINES = 40
"""Lines of the chat that are kept when older ones are removed."""
MORE_LINES = 20
"""Lines beyond these that are kept until then: to remove some sends all others anew."""
ITEMS = 40
"""Entries of the list."""

ROBOT = "Robot"
WISH = "todo:"


def array(most: int, **properties: actors.JsonObject) -> actors.JsonObject:
    """Return the schema of an array of objects, which have all of the properties."""
    items: actors.JsonObject = {
        "type": "object",
        "required": list(properties),
        "additionalProperties": False,
        "properties": {**properties},
    }
    return {"type": "array", "maxItems": most, "items": items}


def schema(**properties: actors.JsonObject) -> actors.JsonObject:
    """Return the schema of a data object, which has all of the properties."""
    return {"type": "object", "required": list(properties), "properties": {**properties}}


def string(most: int) -> actors.JsonObject:
    """Return the schema of a string that is not empty."""
    return {"type": "string", "minLength": 1, "maxLength": most}


WORD: actors.JsonObject = {"type": "string"}
NUMBER: actors.JsonObject = {"type": "integer"}
CHAT = schema(
    people=array(PEOPLE, url=WORD, runtime=WORD, name=string(NAME)),
    # An answer of the robot may quote a line, and be longer.
    lines=array(LINES + MORE_LINES, id=NUMBER, by=WORD, name=string(NAME), text=WORD),
)
TODO = schema(
    items=array(ITEMS, id=NUMBER, what=string(TEXT), done={"type": "boolean"}, by=string(NAME))
)


@attrs.frozen
class Join:
    """A hyperty wants to take part under a name."""

    name: str


@attrs.frozen
class Say:
    """A participant says something."""

    text: str


@attrs.frozen
class Add:
    """A participant adds an entry to the list."""

    what: str


@attrs.frozen
class Tick:
    """A participant sets whether an entry is done."""

    id: int
    done: bool


@attrs.frozen
class Drop:
    """A participant removes an entry."""

    drop: int


class Robot(actors.Hyperty):
    """Reports the chat and the list, carries out requests, and answers each line."""

    chat: actors.ReportedObject
    todo: actors.ReportedObject

    def __init__(self) -> None:
        self.people: dict[str, actors.JsonObject] = {}
        self.last_id = 0

    async def on_subscribe(self, url: str, observer: str) -> None:
        """Accept who has joined."""
        self.name_of(observer)

    async def on_request(self, message: actors.Message) -> actors.Json:
        """Answer a greeting, by which pages measure the way."""
        return None

    @actors.handles(Join)
    async def join(self, request: Join, message: actors.Message) -> actors.Json:
        """Note a name, and return the addresses of what is shared."""
        url, name = message.from_, stripped(request.name, NAME, "a name")
        if url not in self.people and len(self.people) >= PEOPLE:
            self.forget_one()
        runtime = "" if message.identity is None else message.identity.runtime
        self.people[url] = {"url": url, "runtime": runtime, "name": name}
        if url in self.chat.observers:
            await self.show_people()
        return {"chat": self.chat.url, "todo": self.todo.url}

    @actors.handles(Say)
    async def say(self, request: Say, message: actors.Message) -> actors.Json:
        """Add a line, and answer it."""
        text, name = stripped(request.text, TEXT, "a line"), self.name_of(message.from_)
        self.add_line(message.from_, name, text)
        wish, count = text[len(WISH) :].strip(), len(text.split())
        if not text.lower().startswith(WISH):
            self.answer(f"I count {count} word{'s' * (count != 1)}.")
        elif wish:
            await self.add_item(wish, name)
            self.answer(f"Added to the list: {wish}")
        else:
            self.answer("Write what there is to do after “todo:”.")
        return await flush(self.chat)

    @actors.handles(Add)
    async def add(self, request: Add, message: actors.Message) -> actors.Json:
        """Add an entry."""
        what = stripped(request.what, TEXT, "an entry")
        return await self.add_item(what, self.name_of(message.from_))

    @actors.handles(Tick)
    async def tick(self, request: Tick, message: actors.Message) -> actors.Json:
        """Set whether an entry is done."""
        self.name_of(message.from_)
        self.todo.data.items[self.place_of(request.id)].done = request.done
        return await flush(self.todo)

    @actors.handles(Drop)
    async def drop(self, request: Drop, message: actors.Message) -> actors.Json:
        """Remove an entry."""
        self.name_of(message.from_)
        del self.todo.data.items[self.place_of(request.drop)]
        return await flush(self.todo)

    def name_of(self, url: str) -> str:
        """Return the name of a participant; refuse others."""
        if url not in self.people:
            raise actors.Refused(actors.Code.FORBIDDEN, "join first")
        return str(self.people[url]["name"])

    def place_of(self, number: int) -> int:
        """Return the place of an entry in the list."""
        for place, item in enumerate(self.todo.data.items):
            if item.id == number:
                return place
        raise actors.Refused(actors.Code.NOT_FOUND, "this entry is gone")

    def new_id(self) -> int:
        """Return an id for a line or an entry."""
        self.last_id += 1
        return self.last_id

    async def add_item(self, what: str, by: str) -> actors.Json:
        """Add an entry to the list; refuse it if the list is full."""
        items = self.todo.data.items
        if len(items) >= ITEMS:
            why = f"the list is full: it has {ITEMS} entries"
            raise actors.Refused(actors.Code.UNAVAILABLE, why)
        items.append({"id": self.new_id(), "what": what, "done": False, "by": by})
        return await flush(self.todo)

    def add_line(self, by: str, name: str, text: str) -> None:
        """Add a line to the chat."""
        lines = self.chat.data.lines
        # Room is made first: observers see each change, and none shows more than the limit.
        if len(lines) >= LINES + MORE_LINES:
            del lines[: 1 - LINES]
        lines.append({"id": self.new_id(), "by": by, "name": name, "text": text})

    def answer(self, text: str) -> None:
        """Add a line of the robot."""
        self.add_line(self.url, ROBOT, text)

    def present(self) -> list[str]:
        """Return the addresses of the robot and of all observers of the chat."""
        return [self.url, *self.chat.observers]

    def forget_one(self) -> None:
        """Forget the oldest participant who does not observe; if all do, there is no room."""
        present = self.present()
        gone = next((url for url in self.people if url not in present), None)
        if gone is None:
            raise actors.Refused(actors.Code.UNAVAILABLE, f"{PEOPLE} take part already")
        del self.people[gone]

    async def follow_observers(self) -> None:
        """Show who observes the chat, and say who joins and leaves."""
        async for move in self.chat.observer_changes():
            if move.observer in self.people:
                verb = "joins" if isinstance(move, actors.ObserverJoined) else "leaves"
                self.answer(f"{self.name_of(move.observer)} {verb}.")
                await self.show_people()

    async def show_people(self) -> None:
        """Write into the chat who is present."""
        self.chat.data.people = [self.people[url] for url in self.present() if url in self.people]
        await flush(self.chat)


def stripped(text: str, most: int, what: str) -> str:
    """Return a text without blanks at its ends; refuse one that is empty or too long."""
    text = text.strip()
    if not 0 < len(text) <= most:
        raise actors.Refused(actors.Code.MALFORMED, f"{what} has 1 to {most} characters")
    return text


async def flush(thing: actors.ReportedObject) -> actors.Json:
    """Wait until all observers are sent what was written, and return the version."""
    try:
        return await thing.flush()
    except actors.ObjectError as lost:
        raise actors.Refused(actors.Code.UNAVAILABLE, "it could not be written") from lost


@asynccontextmanager
async def open_robot(runtime: actors.Runtime) -> AsyncIterator[str]:
    """Run the robot while the context is open; yield its address."""
    robot = Robot()
    async with (
        await runtime.deploy(lambda: robot, "robot", resources=("demo",)) as me,
        me.report("comm", {"people": [], "lines": []}, definition=CHAT) as robot.chat,
        me.report("ctxt", {"items": []}, definition=TODO) as robot.todo,
    ):
        robot.people[me.url] = {"url": me.url, "runtime": runtime.url, "name": ROBOT}
        robot.spawn(robot.follow_observers)
        await robot.show_people()
        yield me.url
