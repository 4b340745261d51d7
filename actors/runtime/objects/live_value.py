"""The value of a reported object, written like any value of Python (SYN-13..SYN-15).

`data.title = "x"`, `data["a"]["b"] = 1`, `data.items.append(x)`, `del data.note`: each write is
checked, changes the value at once, and is published in the background. An attribute may have
any name, so an object has no methods: only `in`, `len` and iteration over names. Comparison is
that of JSON, also with plain values.

The plain value is never changed in place: a write makes a new value, which shares the unchanged
parts. An object or list inside the value is identified by its `Place`, its path from the whole
value. The place follows when neighbours are added or removed; once the object or list was replaced
or removed, its place is no part of the value any more.

`fsm.sync.value.writes` decides about writes; `Writes` asks the runtime to publish them, and wakes
the tasks that wait for the publication.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, MutableSequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias, assert_never, overload

import trio
from typing_extensions import override

from actors.kit.errors import ActorStoppedError
from actors.runtime.objects.participant import ObjectError, Participant, SchemaError
from fsm.sync.value.json import Flaw, NotJsonError, ObjectSchema, Steps, as_json, dotted_path
from fsm.sync.value.value import same
from fsm.sync.value.writes import Unpublished, Verdict, WritesCore
from specs.bodies.object import ChangeObject
from specs.jsonvalue import Json, JsonObject, index_in
from specs.limits.protocol import GOODBYE_TIMEOUT, READ_PAUSE
from specs.limits.sync import VALUE_DEPTH
from specs.message import MessageType
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body
from transports.sockets import open_background

Container: TypeAlias = "JsonObject | list[Json]"
"""A JSON value that has parts: an object or a list."""


_NO_PART: Final = "this part of it was replaced or removed: take it from `data` again"


class Place:
    """The location of one object or list within the value of a data object.

    Args:
        whole: The value.
        above: Place of the containing object or list; None: this is the whole value.
        key: Key or index in the containing object or list.

    Attributes:
        is_part: Whether the object or list is still a part of the value.
        key: Key or index, which follows changes of neighbours.
    """

    __slots__ = ("_above", "_below", "_whole", "is_part", "key")

    def __init__(
        self, whole: "Writes", above: "Place | None" = None, key: str | int | None = None
    ) -> None:
        self._whole = whole
        self._above = above
        self.key = key
        self._below: dict[str | int, Place] = {}
        self.is_part = True

    @property
    def steps(self) -> Steps:
        """The keys and indices that lead from the whole value to this location.

        Raises:
            ObjectError: 410: the place is no part of the value any more.
        """
        if not self.is_part:
            raise ObjectError(self._whole.url, Code.GONE, _NO_PART)
        if self._above is None or self.key is None:
            return ()
        return (*self._above.steps, self.key)

    @property
    def now(self) -> Container:
        """The object or list that is at this location now.

        Raises:
            ObjectError: 410: the place is no part of the value any more.
        """
        value: Json = self._whole.now
        for step in self.steps:
            value = _at(value, step)
        if not isinstance(value, dict | list):
            raise ObjectError(self._whole.url, Code.GONE, _NO_PART)
        return value

    def below(self, key: str | int) -> "Place":
        """Return the location of the object or list at a key of this one."""
        place = self._below.get(key)
        if place is None:
            place = self._below[key] = Place(self._whole, self, key)
        return place

    def become(self, new: Container) -> None:
        """Replace the object or list at this location; parts of both values keep their locations.

        Raises:
            SchemaError: The schema does not allow the new value; nothing has changed.
            ObjectError: 410: the place is no part of the value any more; or as of `Writes.become`.
        """
        old, steps = self.now, self.steps
        whole = _with(self._whole.now, steps, new)
        if isinstance(whole, dict):
            self._whole.become(whole)
            self._move_parts(old, self.now)

    def follow(self, old: Json, new: Json, path: tuple[str, ...]) -> None:
        """Move the locations below, as elements were inserted or removed by `Writes.publish`.

        Args:
            old: The value at this place before.
            new: The value at this place now.
            path: Path from here to the object or list with the change.
        """
        if path:
            index = index_in(old, path[0]) if isinstance(old, list) else None
            key = path[0] if index is None else index
            before, after = _at(old, key), _at(new, key)
            place = self._below.get(key)
            if place is not None and type(before) is type(after):
                place.follow(before, after, path[1:])
                return
        self._move_parts(old, new)

    def forget(self) -> None:
        """Mark all locations below as removed from the value."""
        for place in self._below.values():
            place.is_part = False
        self._below = {}

    def _move_parts(self, old: Json, new: Json) -> None:
        """Find the old value's parts in the new one, by identity; mark the others as removed."""
        keys = {id(each): key for key, each in _items_of(new) if isinstance(each, dict | list)}
        below, self._below = self._below, {}
        for key, place in below.items():
            moved = keys.get(id(_at(old, key)))
            place.is_part = moved is not None
            if moved is not None:
                place.key = moved
                self._below[moved] = place


def _at(value: Json, step: str | int) -> Json:
    """Return the value at a key or index; None: the value has none, or is null."""
    if isinstance(value, dict) and isinstance(step, str):
        return value.get(step)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return None


def _items_of(value: Json) -> list[tuple[str | int, Json]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _with(value: Json, steps: Steps, new: Json) -> Json:
    """Return a copy of a value in which the part at a path is replaced."""
    if not steps:
        return new
    step, *rest = steps
    inner = _with(_at(value, step), tuple(rest), new)
    if isinstance(value, dict) and isinstance(step, str):
        return {**value, step: inner}
    if isinstance(value, list) and isinstance(step, int):
        return [*value[:step], inner, *value[step + 1 :]]
    return value


_Part: TypeAlias = Any  # type: ignore[explicit-any]  # its type depends on the schema


def plain_copy(value: object, at: Steps = (), depth: int = VALUE_DEPTH) -> Json:
    """Return a copy of a value, with plain objects and lists for live ones.

    Args:
        value: Any value.
        at: Path of the copy in the object, for the error and the depth.
        depth: Levels of nesting that are allowed.

    Raises:
        SchemaError: The value, or a part of it, is not JSON, or is nested too deep.
        ObjectError: 410: a live part was removed from its object.
    """
    try:
        return as_json(value, at, to_plain, depth)
    except NotJsonError as exc:
        raise SchemaError(exc.flaw.path, exc.flaw.why) from exc


def to_plain(value: object) -> object:
    """Return the plain value of a live value, and any other value unchanged."""
    return value.__place__.now if isinstance(value, _Live) else value


def _live(place: Place, key: str | int, value: Json) -> "Json | LiveObject | LiveList":
    """Return the value at a key; an object or list is returned as a live value."""
    match value:
        case dict():
            return LiveObject(place.below(key))
        case list():
            return LiveList(place.below(key))
        case _:
            return value


class _Live:
    """Base of the live object and the live list: a view of one part of the value."""

    __slots__ = ("__place__",)
    __place__: Place
    __hash__ = None  # type: ignore[assignment]  # it is mutable

    def __init__(self, place: Place) -> None:
        object.__setattr__(self, "__place__", place)

    def __len__(self) -> int:
        return len(self.__place__.now)

    @override
    def __eq__(self, other: object) -> bool:
        plain = to_plain(other)
        return isinstance(plain, dict | list) and same(self.__place__.now, plain)

    @override
    def __repr__(self) -> str:
        return repr(self.__place__.now)

    def __copy__(self) -> Json:
        return plain_copy(self)

    def __deepcopy__(self, memo: object) -> Json:
        return plain_copy(self)


class LiveObject(_Live):
    """An object in the value; an attribute is an item, unless its name is of the form `__name__`.

    Raises:
        AttributeError: There is no such attribute.
        KeyError: There is no such item.
        SchemaError: The schema does not allow the write, or the value is not JSON; nothing has
            changed.
        ObjectError: 410: the object is no part of the value any more; 503: too many writes wait; or
            the code with which an earlier write failed.
    """

    __slots__ = ()

    # ---- reading

    def __getattr__(self, name: str) -> _Part:
        inside = {} if _is_reserved(name) else _inside(self)
        if name not in inside:
            raise AttributeError(_no_attribute(self, name))
        return _live(self.__place__, name, inside[name])

    def __getitem__(self, name: str) -> _Part:
        return _live(self.__place__, name, _inside(self)[name])

    def __iter__(self) -> Iterator[str]:
        return iter(_inside(self))

    def __contains__(self, name: object) -> bool:
        return name in _inside(self)

    @override
    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *(name for name in self if name.isidentifier())]

    # ---- writing

    @override
    def __setattr__(self, name: str, value: object) -> None:
        if _is_reserved(name):
            raise AttributeError(f"{name} is Python's own name: write data[{name!r}]")
        self[name] = value

    @override
    def __delattr__(self, name: str) -> None:
        if _is_reserved(name) or name not in self:
            raise AttributeError(_no_attribute(self, name))
        del self[name]

    def __setitem__(self, name: str, value: object) -> None:
        place = self.__place__
        new = plain_copy({name: value}, place.steps)
        if isinstance(new, dict):
            place.become({**_inside(self), **new})

    def __delitem__(self, name: str) -> None:
        inside = dict(_inside(self))
        del inside[name]
        self.__place__.become(inside)


def _is_reserved(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _inside(part: LiveObject) -> JsonObject:
    value = part.__place__.now
    return value if isinstance(value, dict) else {}


def _no_attribute(part: LiveObject, name: str) -> str:
    where = dotted_path(part.__place__.steps)
    return f"the value has no {f'{where}.' if where else ''}{name}"


class LiveList(_Live, MutableSequence[_Part]):
    """A list in the value; each call of a method is one write, for any number of changes.

    Raises:
        IndexError: There is no such element.
        ValueError: `remove` or `index`: there is no equal element.
        SchemaError: As of `LiveObject`.
        ObjectError: As of `LiveObject`.
    """

    __slots__ = ()

    # ---- reading

    @overload
    def __getitem__(self, index: int) -> _Part: ...
    @overload
    def __getitem__(self, index: slice) -> list[_Part]: ...  # type: ignore[explicit-any]
    @override
    def __getitem__(self, index: int | slice) -> _Part:  # type: ignore[explicit-any]
        elements = _elements(self)
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(elements)))]
        number = range(len(elements))[index]
        return _live(self.__place__, number, elements[number])

    @override
    def index(self, value: object, start: int = 0, stop: int | None = None) -> int:
        elements, wanted = _elements(self), plain_copy(value)
        for number in range(*slice(start, stop).indices(len(elements))):
            if same(elements[number], wanted):
                return number
        raise ValueError(f"{value!r} is not in the list")

    @override
    def count(self, value: object) -> int:
        wanted = plain_copy(value)
        return sum(same(each, wanted) for each in _elements(self))

    @override
    def __contains__(self, value: object) -> bool:
        return self.count(value) > 0

    # ---- writing

    @overload
    def __setitem__(self, index: int, value: object) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[object]) -> None: ...  # type: ignore[explicit-any]
    @override
    def __setitem__(self, index: int | slice, value: object) -> None:  # type: ignore[explicit-any]
        elements = list(_elements(self))
        if isinstance(index, slice):
            if not isinstance(value, Iterable):
                raise TypeError("several elements can only be replaced by a list")
            elements[index] = _copies(self, value)
        else:
            number = range(len(elements))[index]
            elements[number] = plain_copy(value, (*self.__place__.steps, number))
        self.__place__.become(elements)

    @override
    def __delitem__(self, index: int | slice) -> None:  # type: ignore[explicit-any]
        elements = list(_elements(self))
        del elements[index]
        self.__place__.become(elements)

    @override
    def insert(self, index: int, value: object) -> None:
        elements = list(_elements(self))
        elements[index:index] = _copies(self, [value])
        self.__place__.become(elements)

    @override
    def extend(self, values: Iterable[object]) -> None:
        self.__place__.become([*_elements(self), *_copies(self, values)])

    @override
    def pop(self, index: int = -1) -> Json:
        gone = plain_copy(self[index])
        del self[index]
        return gone

    @override
    def clear(self) -> None:
        self.__place__.become([])

    @override
    def reverse(self) -> None:
        self.__place__.become(_elements(self)[::-1])

    def sort(self, *, key: Callable[[_Part], _Part] | None = None, reverse: bool = False) -> None:
        """Sort the elements, in one write, as `list.sort` does.

        Args:
            key: Returns the sort key of an element; None: the element itself.
            reverse: Sort in descending order.

        Raises:
            TypeError: The elements or keys cannot be compared.
            SchemaError: As of `LiveObject`.
            ObjectError: As of `LiveObject`.
        """
        elements = _elements(self)
        keys = [each if key is None else key(each) for each in self]
        order = sorted(range(len(elements)), key=keys.__getitem__, reverse=reverse)
        self.__place__.become([elements[number] for number in order])


def _elements(part: LiveList) -> list[Json]:
    value = part.__place__.now
    return value if isinstance(value, list) else []


def _copies(part: LiveList, values: Iterable[object]) -> list[Json]:
    """Return copies of values for a list."""
    steps, end = part.__place__.steps, len(part)
    return [plain_copy(each, (*steps, end + number)) for number, each in enumerate(values)]


# ---- the writes of a reporter: checked at once, published one after the other


class Writes:
    """The unpublished and published writes to one data object, and the value after them.

    Args:
        participant: The hyperty.
        url: Address of the object.
        data: The published value.
        version: Version of the published value.
        schema: Schema that each value must obey; None: each value is accepted.

    Attributes:
        live: The value, which the program reads and writes.
    """

    def __init__(
        self,
        participant: Participant,
        url: str,
        data: JsonObject,
        version: int,
        schema: ObjectSchema | None,
    ) -> None:
        self.url = url
        self._participant = participant
        self._core = WritesCore(url, data, version, schema)
        self._top = Place(self)
        self.live: Final = LiveObject(self._top)
        # By number of a write whose task waits: its version, or why it failed; None: unknown.
        self._waits: dict[int, int | Unpublished | None] = {}
        # By waiting call of `flush`: the failed write, if any.
        self._flushes: dict[object, Unpublished | None] = {}
        self._moved = trio.lowlevel.ParkingLot()

    @property
    def version(self) -> int:
        """The last published version."""
        return self._core.version

    @property
    def now(self) -> JsonObject:
        """The value after all writes, whether they were published or not."""
        return self._core.value

    def become(self, new: JsonObject) -> None:
        """Replace the whole value; the new value is published in the background.

        Raises:
            SchemaError: The schema does not allow the value; nothing has changed.
            ObjectError: Too many writes wait, or an earlier write failed; nothing has changed.
        """
        self._accept(self._core.become(new))

    async def publish(self, change: ChangeObject) -> int:
        """Write one change, wait for its publication, and return its version.

        If cancelled while too many writes wait, nothing was written; later, the change is published
        all the same.

        Raises:
            SchemaError: The schema does not allow the change; nothing has changed.
            ObjectError: This write or an earlier one was not published.
        """
        while self._core.is_full:
            await self._moved.park()
        old = self._core.value
        number = self._accept(self._core.make(change))
        self._top.follow(old, self._core.value, _path_of(change))
        self._waits[number] = None
        try:
            while (result := self._waits[number]) is None:
                await self._moved.park()
        finally:
            del self._waits[number]
        if isinstance(result, Unpublished):
            raise self._error(result)
        return result

    async def flush(self) -> int:
        """Wait until all writes so far are published, and return the published version.

        If cancelled, only the wait ends; the next `flush` raises the error.

        Raises:
            ObjectError: A write since the last `flush` was not published; all waiting tasks get the
                error.
        """
        number, flush = self._core.number, object()
        self._flushes[flush] = None
        try:
            while not self._core.is_over(number):
                await self._moved.park()
        finally:
            failure = self._flushes.pop(flush)
        failure = self._core.flushed() or failure
        if failure is not None:
            raise self._error(failure)
        return self.version

    def _accept(self, verdict: Verdict) -> int:
        """Add a write to the queue of unpublished ones; return its number."""
        match verdict:
            case int():
                self._moved.unpark_all()
                return verdict
            case Flaw(path, why):
                raise SchemaError(path, why)
            case Unpublished():
                raise self._error(verdict)
            case _:
                assert_never(verdict)

    def _error(self, failure: Unpublished) -> ObjectError:
        return ObjectError(self.url, failure.code, failure.why)

    # ---- publishing

    @asynccontextmanager
    async def publishing(self) -> AsyncIterator[None]:
        """Publish writes while the context is open, and the remaining ones when it is left.

        The remaining writes have `GOODBYE_TIMEOUT` seconds, also if cancelled; later ones are
        lost, and their errors are not raised.
        """
        hold = trio.CancelScope(shield=True)
        async with open_background() as nursery:
            nursery.start_soon(self._run, hold)
            try:
                yield
            finally:
                # Nobody awaits these writes, so their errors are not raised.
                with suppress(ObjectError), trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                    await self.flush()
                self._fail(Unpublished(Code.NOT_FOUND, "it is reported no more"))
                self._moved.unpark_all()
                hold.cancel()

    async def _run(self, hold: trio.CancelScope) -> None:
        """Publish the writes in order, until `hold` is cancelled."""
        with hold:
            while True:
                change = self._core.next()
                if change is None:
                    await self._moved.park()
                else:
                    await self._publish(change)
                    self._moved.unpark_all()

    async def _publish(self, change: ChangeObject) -> None:
        body = write_body(change)
        try:
            answer = await self._participant.ask_manager(MessageType.UPDATE, body, self.url)
            version = answer.body.get("version")
        except ObjectError as exc:
            version = await self._managed_version() if exc.code == Code.TIMEOUT else self.version
            if version == self.version:
                self._fail(Unpublished(exc.code, exc.why))
                return
        number = self._core.published(version if isinstance(version, int) else self.version + 1)
        if number in self._waits:
            self._waits[number] = self.version

    async def _managed_version(self) -> Json:
        """Return the version published by the sync manager, which may wait for the disk first."""
        undecided = {Code.TIMEOUT, Code.UNAVAILABLE}
        with suppress(ActorStoppedError):
            answer = await self._participant.ask(self.url, MessageType.READ, {})
            while answer.code in undecided:
                await trio.sleep(READ_PAUSE)
                answer = await self._participant.ask(self.url, MessageType.READ, {})
            value = answer.body.get("value")
            if answer.code <= LAST_SUCCESS and isinstance(value, dict):
                return value.get("version")
        return self.version

    def _fail(self, failure: Unpublished) -> None:
        unreported = self._core.failed(failure, frozenset(self._waits))
        self._flushes = {each: unreported or before for each, before in self._flushes.items()}
        self._waits = {number: known or failure for number, known in self._waits.items()}
        self._top.forget()


def _path_of(change: ChangeObject) -> tuple[str, ...]:
    """Return the path to the object or list with a change."""
    steps = () if change.attribute is None else tuple(change.attribute.split("."))
    return steps if change.operation is not None else steps[:-1]
