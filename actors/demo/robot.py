"""The robot of the demonstration's page: it reports a chat and a to-do list, and takes part.

Pages observe both and ask the robot for each change, so that all changes have one order and every
copy converges. Who has said something is what the runtime has established, never what a page says
of itself.
"""

from typing import Final, final

import attrs
from typing_extensions import override

from actors.runtime.hyperty.handlers import handles
from actors.runtime.hyperty.hyperty import Hyperty, Refused
from actors.runtime.objects.error import ObjectError, SchemaError
from actors.runtime.objects.reported_object import ReportedObject
from fsm.sync.observers import ObserverJoined
from specs.jsonvalue import Json, JsonObject
from specs.limits.demo import (
    DEMO_ITEMS,
    DEMO_LINES,
    DEMO_MORE_LINES,
    DEMO_NAME,
    DEMO_PEOPLE,
    DEMO_TEXT,
)
from specs.message import Message
from specs.reply_code import Code

__all__ = ["CHAT", "NAME", "TODO", "Robot"]

NAME: Final = "Robot"
_WISH: Final = "todo:"
_TEXT: Final[JsonObject] = {"type": "string", "minLength": 1, "maxLength": DEMO_TEXT}
_NAME: Final[JsonObject] = {"type": "string", "minLength": 1, "maxLength": DEMO_NAME}


def _list(most: int, **properties: JsonObject) -> JsonObject:
    items: JsonObject = {
        "type": "object",
        "required": list(properties),
        "additionalProperties": False,
        "properties": {**properties},
    }
    return {"type": "array", "maxItems": most, "items": items}


_WORD: Final[JsonObject] = {"type": "string"}
_NUMBER: Final[JsonObject] = {"type": "integer"}

CHAT: Final[JsonObject] = {
    "type": "object",
    "required": ["people", "lines"],
    "properties": {
        "people": _list(DEMO_PEOPLE, url=_WORD, runtime=_WORD, name=_NAME),
        # An answer of the robot may quote a line, and be longer.
        "lines": _list(DEMO_LINES + DEMO_MORE_LINES, id=_NUMBER, by=_WORD, name=_NAME, text=_WORD),
    },
}
"""The schema of the chat."""

TODO: Final[JsonObject] = {
    "type": "object",
    "required": ["items"],
    "properties": {
        "items": _list(DEMO_ITEMS, id=_NUMBER, what=_TEXT, done={"type": "boolean"}, by=_NAME)
    },
}
"""The schema of the to-do list."""


@final
@attrs.frozen
class _Person:
    """Who has joined, and may be there.

    Attributes:
        runtime: Runtime, as the node or the link has established it.
    """

    name: str
    runtime: str


@final
@attrs.frozen
class Join:
    """A hyperty wants to take part under a name."""

    name: str


@final
@attrs.frozen
class Say:
    """A participant says something."""

    text: str


@final
@attrs.frozen
class Add:
    """A participant adds an entry to the list."""

    what: str


@final
@attrs.frozen
class Tick:
    """A participant sets whether an entry is done."""

    id: int
    done: bool


@final
@attrs.frozen
class Drop:
    """A participant removes an entry."""

    drop: int


def _text(given: str, most: int, what: str) -> str:
    """Return a text without what nobody sees at its ends; refuse one that is empty or too long."""
    text = given.strip()
    if not 0 < len(text) <= most:
        raise Refused(Code.MALFORMED, f"{what} has 1 to {most} characters")
    return text


@final
class Robot(Hyperty):
    """Reports the chat and the list, carries out requests, and answers each line."""

    def __init__(self) -> None:
        self.chat: ReportedObject
        self.todo: ReportedObject
        self._url = ""
        self._people: dict[str, _Person] = {}
        self._last = 0

    async def begin(
        self, url: str, runtime: str, chat: ReportedObject, todo: ReportedObject
    ) -> None:
        """Take what was reported, and follow who observes it.

        Args:
            url: Address of the robot.
            runtime: Address of its runtime.
            chat: The chat.
            todo: The list.

        If cancelled, the robot may not be shown among the participants.
        """
        self._url, self.chat, self.todo = url, chat, todo
        self._people[url] = _Person(NAME, runtime)
        self.spawn(self._watch)
        await self._show_people()

    @override
    async def on_subscribe(self, url: str, observer: str) -> None:
        """Accept who has joined."""
        if observer not in self._people:
            raise Refused(Code.FORBIDDEN, "join first")

    @override
    async def on_request(self, message: Message) -> Json:
        """Answer a greeting, by which pages measure the way."""
        return None

    @handles(Join)
    async def join(self, asked: Join, message: Message) -> Json:
        """Note a name, and return the addresses of what is shared.

        Args:
            asked: The request.
            message: Its message, whose sender is proven.

        If cancelled, it may be done all the same.

        Raises:
            Refused: The name does not fit, or there is no room.
        """
        who, name = message.from_, _text(asked.name, DEMO_NAME, "a name")
        if who not in self._people and len(self._people) >= DEMO_PEOPLE:
            self._forget_one()
        runtime = "" if message.identity is None else message.identity.runtime
        self._people[who] = _Person(name, runtime)
        if who in self.chat.observers:
            await self._show_people()
        return {"chat": self.chat.url, "todo": self.todo.url}

    @handles(Say)
    async def say(self, asked: Say, message: Message) -> Json:
        """Add a line, and answer it.

        Args:
            asked: The request.
            message: Its message, whose sender is proven.

        If cancelled, it may be done all the same.

        Raises:
            Refused: The line does not fit, or its sender has not joined.
        """
        text = _text(asked.text, DEMO_TEXT, "a line")
        self._add_line(message.from_, self._name_of(message), text)
        if text.lower().startswith(_WISH):
            wish = text[len(_WISH) :].strip()
            if wish:
                await self._enter(wish, self._name_of(message))
                self._add_line(self._url, NAME, f"Added to the list: {wish}")
            else:
                self._add_line(self._url, NAME, "Write what there is to do after “todo:”.")
        else:
            count = len(text.split())
            self._add_line(self._url, NAME, f"I count {count} word{'s' * (count != 1)}.")
        return await _flush(self.chat)

    @handles(Add)
    async def add(self, asked: Add, message: Message) -> Json:
        """Add an entry.

        Args:
            asked: The request.
            message: Its message, whose sender is proven.

        If cancelled, it may be done all the same.

        Raises:
            Refused: The entry does not fit, its sender has not joined, or the list is full.
        """
        return await self._enter(_text(asked.what, DEMO_TEXT, "an entry"), self._name_of(message))

    @handles(Tick)
    async def tick(self, asked: Tick, message: Message) -> Json:
        """Set whether an entry is done.

        Args:
            asked: The request.
            message: Its message, whose sender is proven.

        If cancelled, it may be done all the same.

        Raises:
            Refused: There is no such entry, or the sender has not joined.
        """
        self._name_of(message)
        place = self._place(asked.id)
        self.todo.data.items[place].done = asked.done
        return await _flush(self.todo)

    @handles(Drop)
    async def drop(self, asked: Drop, message: Message) -> Json:
        """Remove an entry.

        Args:
            asked: The request.
            message: Its message, whose sender is proven.

        If cancelled, it may be done all the same.

        Raises:
            Refused: There is no such entry, or the sender has not joined.
        """
        self._name_of(message)
        del self.todo.data.items[self._place(asked.drop)]
        return await _flush(self.todo)

    # --- what there is --------------------------------------------------------------------

    def _name_of(self, message: Message) -> str:
        person = self._people.get(message.from_)
        if person is None:
            raise Refused(Code.FORBIDDEN, "join first")
        return person.name

    def _place(self, number: int) -> int:
        for place, item in enumerate(self.todo.data.items):
            if item.id == number:
                return place
        raise Refused(Code.NOT_FOUND, "this entry is gone")

    def _next(self) -> int:
        self._last += 1
        return self._last

    async def _enter(self, what: str, by: str) -> Json:
        items = self.todo.data.items
        if len(items) >= DEMO_ITEMS:
            raise Refused(Code.UNAVAILABLE, f"the list is full: it has {DEMO_ITEMS} entries")
        items.append({"id": self._next(), "what": what, "done": False, "by": by})
        return await _flush(self.todo)

    def _add_line(self, by: str, name: str, text: str) -> None:
        lines = self.chat.data.lines
        # Room is made first: observers see each change, and none shows more than the limit.
        if len(lines) >= DEMO_LINES + DEMO_MORE_LINES:
            del lines[: 1 - DEMO_LINES]
        lines.append({"id": self._next(), "by": by, "name": name, "text": text})

    def _forget_one(self) -> None:
        """Forget the oldest who does not observe; where all do, there is no room."""
        there = {self._url, *self.chat.observers}
        gone = next((one for one in self._people if one not in there), None)
        if gone is None:
            raise Refused(Code.UNAVAILABLE, f"{DEMO_PEOPLE} take part already")
        del self._people[gone]

    async def _watch(self) -> None:
        """Show who observes, and tell who has come and gone."""
        async for move in self.chat.observer_changes():
            person = self._people.get(move.observer)
            if person is None:
                continue
            verb = "joins" if isinstance(move, ObserverJoined) else "leaves"
            self._add_line(self._url, NAME, f"{person.name} {verb}.")
            await self._show_people()

    async def _show_people(self) -> None:
        there = [self._url, *self.chat.observers]
        self.chat.data.people = [
            {"url": url, "runtime": person.runtime, "name": person.name}
            for url in there
            if (person := self._people.get(url)) is not None
        ]
        await _flush(self.chat)


async def _flush(thing: ReportedObject) -> Json:
    """Wait until all observers are sent what was written, and return the version."""
    try:
        return await thing.flush()
    except (ObjectError, SchemaError) as lost:
        raise Refused(Code.UNAVAILABLE, "it could not be written") from lost
