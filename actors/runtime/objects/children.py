"""The children of a data object, for the hyperties that create and change them (SYN-24)."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, final

import attrs
import trio
from typing_extensions import override

from actors.kit.arguments import check_text
from actors.kit.errors import ActorStoppedError
from actors.runtime.objects.live_value import to_plain
from actors.runtime.objects.participant import CoreTimer, ObjectError, Participant
from actors.runtime.sync.children import child_message, read_op, read_report
from fsm.sync.children import ChildOp, ChildrenCopyCore, Kept, whole_in
from fsm.sync.value.json import as_json
from fsm.sync.value.value import check_path, without_attribute
from specs.bodies.object import (
    ChildrenEnded,
    ChildrenSign,
    ChildWindow,
    EndReport,
    ReadChildren,
)
from specs.child import RESOURCES, child_name, children_addresses
from specs.errors import BadMessageError
from specs.jsonvalue import ABSENT, Json, JsonInput, JsonObject, value_at
from specs.limits.sync import BUSY_PAUSE, CHILD_ATTEMPTS, CHILD_TRIES, WINDOW_PAGES
from specs.message import Message, MessageType, reason_in, reply_to
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body, write_body
from transports.sockets import open_background

_UNDECIDED: Final = frozenset({Code.TIMEOUT, Code.UNAVAILABLE})
"""Codes of routers after which a new child may exist although the creator got an error."""


@final
@attrs.frozen
class ChildChange:
    """A change of one child.

    Attributes:
        id: Name of the child.
        old: Its value before; None: it did not exist.
        new: Its value after; None: it was deleted, or has left the window of the object.
        missed: Number of other children that were created and left the window before this change,
            while the object was out of reach.
    """

    id: str
    old: Json
    new: Json
    missed: int = 0


class ChildChanges:
    """An async iterator over the changes of children."""

    def __init__(self, children: "Children") -> None:
        self._children = children
        self._missed = children.missed
        self._seen = {name: kept for name in children if (kept := children.find(name))}

    def __aiter__(self) -> "ChildChanges":
        return self

    async def __anext__(self) -> ChildChange:
        await trio.lowlevel.checkpoint()
        while (change := self._next()) is None:
            if not await self._children.wait_for_change():
                raise StopAsyncIteration
        missed, self._missed = self._children.missed - self._missed, self._children.missed
        return attrs.evolve(change, missed=missed) if missed else change

    def _next(self) -> ChildChange | None:
        for name, seen in self._seen.items():
            if self._children.find(name) is None:
                del self._seen[name]
                return ChildChange(name, seen.value, None)
        for name in self._children:
            kept, before = self._children.find(name), self._seen.get(name)
            if kept is not None and (before is None or before.version != kept.version):
                self._seen[name] = kept
                return ChildChange(name, None if before is None else before.value, kept.value)
        return None


@final
@attrs.frozen
class Child:
    """A child of a data object, which only its creator changes, and which the reporter may delete.

    Attributes:
        id: Name of the child: the address of its creator, `#`, and a number.
    """

    id: str
    _children: "Children" = attrs.field(repr=False)

    @property
    def creator(self) -> str:
        """Address of the hyperty that created the child."""
        return self.id.rpartition("#")[0]

    @property
    def value(self) -> Json:
        """The present value, immutable on every level; None: the child was deleted."""
        kept = self._children.find(self.id)
        return None if kept is None else kept.value

    async def update(self, value: JsonInput) -> None:
        """Replace the value, and notify all observers of the object.

        Args:
            value: The new value; any JSON but None.

        If cancelled while it waits for other operations on children of the object, nothing has
        changed; later, the local copy has the new value, and the observers get the value when
        the runtime next finds the difference.

        Raises:
            ObjectError: 400: the value is None; 403: another hyperty created the child; 404: it
                was deleted; 410: the object is gone or left, or the runtime has closed; 413: no
                room for the value.
            NotJsonError: The value is not JSON; nothing was sent.
        """
        await self._children.change(MessageType.UPDATE, self.id, value)

    async def remove(self, path: str) -> None:
        """Delete one attribute or element of the value, and notify all observers of the object.

        An absent attribute or element is no error.

        Args:
            path: Dotted path, as for `ReportedObject.set`.

        If cancelled, as of `update`.

        Raises:
            TypeError: The path is not a text.
            ObjectError: 400: the path has an empty segment, or too many segments; 403, 404 and 410:
                as of `update`.
        """
        await self._children.remove(self.id, path)

    async def delete(self) -> None:
        """Delete the child, and notify all observers of the object.

        The reporter of the object may delete any child, whose creator cannot create it again; if
        cancelled, the child may have been deleted or not.

        If cancelled while it waits for other operations on children of the object, nothing has
        changed; later, the child is deleted in the local copy, and the observers are notified
        when the runtime next finds the difference.

        Raises:
            ObjectError: 403: another hyperty created the child; 404: it was deleted before;
                410: the object is gone or left, or the runtime has closed. By the reporter of a
                stored object also 408 and 503: the store cannot be written, and the child may be
                deleted later.
        """
        await self._children.change(MessageType.DELETE, self.id)


def _checked_child(name: str, value: JsonInput) -> Json:
    """Return a copy of a value that a child may have.

    Args:
        name: Name of the child, for the error.
        value: The value.

    Raises:
        ObjectError: 400: the value is None.
        NotJsonError: The value is not JSON, or is nested too deep.
    """
    if value is None:
        raise ObjectError(name, Code.MALFORMED, "a child has a value")
    return as_json(value, (), to_plain)


@final
class Children(Mapping[str, Child]):
    """All children of a data object, by name, the oldest first.

    The reporter and each observer of the object may create children. Children exist as long as
    the object, also after their creator has left. Lost notices are detected, and repaired by
    reading the object, within some seconds.

    If the object has a window (`ChildWindow`), its oldest children leave for newer ones, for all
    observers alike. Shortly after newer ones have come, there may be some more than the window has.
    """

    @classmethod
    def of(cls, participant: Participant, url: str) -> "Children":
        """Return the children of an object: one instance for its reporter and an observer here.

        Args:
            participant: The hyperty.
            url: Address of the object.
        """
        present = participant.children.get(url)
        return present if isinstance(present, Children) else cls(participant, url)

    def __init__(self, participant: Participant, url: str) -> None:
        self._participant = participant
        self._url = url
        self._core = ChildrenCopyCore(participant.url, self)
        self._turn = trio.Lock()
        self._open: list[trio.Nursery] = []
        self._is_begun = self._is_over = False
        self._moved = trio.lowlevel.ParkingLot()
        self._timer = CoreTimer(self._core.deadline)
        self._tell = self._timer.tell
        participant.children[url] = self

    # --- the present children --------------------------------------------------------------------

    @override
    def __getitem__(self, name: str) -> Child:
        if self.find(name) is None:
            raise KeyError(name)
        return Child(name, self)

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._core.children)

    @override
    def __len__(self) -> int:
        return len(self._core.children)

    def find(self, name: str) -> Kept | None:
        """Return version and value of a child; None: there is no child of this name."""
        return self._core.children.find(name)

    @property
    def missed(self) -> int:
        """Number of children that left the window before they could be read, while observing.

        It rises if the object was out of reach for longer than its window goes back. Children that
        their creators deleted in that time may be counted, too.
        """
        return self._core.missed

    def changes(self) -> ChildChanges:
        """Iterate over the changes of children from now on: `async for change in ...`.

        A slow task gets the present value of a child, and misses earlier ones. The
        iteration ends when the object is gone or left. If the iterating task is cancelled, no
        change is lost for the same iterator.
        """
        return ChildChanges(self)

    # --- operations of the hyperty ------------------------------------------------------------

    async def create(self, value: JsonInput) -> Child:
        """Create a child, and wait until the sync manager of the reporter has it.

        Operations of a hyperty on its children of one object run one after the other.

        Args:
            value: The value of the child; any JSON but None.

        Returns:
            The child, with its new name.

        If cancelled, the child may have been created; if so, it appears among the children.

        Raises:
            ObjectError: 400: the value is None; 401: the hyperty is undeployed; 403: it does
                not observe the object; 408: no answer, the child may have been created; 410:
                the object is gone or left, or the runtime has closed; 413: no room for it; 503:
                its reporter could not be reached for several seconds, the child may have been
                created.
            NotJsonError: The value is not JSON; nothing was sent.
        """
        async with self._turn:
            name = child_name(self._participant.url, version := self._next_version())
            op = self._op(MessageType.CREATE, name, version, value)
            is_decided = False
            try:
                op, answer = await self._create(op)
                is_decided = answer.code not in _UNDECIDED
            finally:
                if not is_decided:
                    self._tell(self._core.doubt)
            if answer.code > LAST_SUCCESS:
                raise ObjectError(self._url, answer.code, reason_in(answer))
            self._tell(partial(self._core.take, op))
            return Child(name, self)

    async def _create(self, op: ChildOp) -> tuple[ChildOp, Message]:
        """Send a new child, repeatedly under the same name, as an attempt may have succeeded.

        Returns:
            The last attempt, and its answer.
        """
        answer = await self._insist(op)
        for _ in range(CHILD_TRIES - 1):
            if answer.code != Code.UNAVAILABLE:
                break
            # The store of the reporter cannot be written now, or the path has changed.
            await trio.sleep(BUSY_PAUSE)
            op = attrs.evolve(op, version=self._next_version())
            answer = await self._insist(op)
        return op, answer

    async def change(self, act: MessageType, name: str, value: JsonInput = None) -> None:
        """Change or delete a child; `Child.update` and `Child.delete` call it.

        Args:
            act: `MessageType.UPDATE` or `MessageType.DELETE`.
            name: Name of the child.
            value: The new value of an update.

        If cancelled, the change may have been made here, and not be sent yet.

        Raises:
            ObjectError: 400: the value is None; 403: another hyperty created the child; 404: it
                was deleted; 410: the object is gone or left, or the runtime has closed; 413: no
                room for the value.
            NotJsonError: The value is not JSON; nothing was sent.
        """
        is_own = name.rpartition("#")[0] == self._participant.url
        if act is MessageType.DELETE and not is_own and self._url in self._participant.reported:
            await self._end(name)
            return
        async with self._own(name):
            await self._post_change(act, name, value)

    async def _end(self, name: str) -> None:
        """Delete a child of any creator, as the reporter."""
        if self.find(name) is None:
            raise ObjectError(name, Code.NOT_FOUND, "the child is deleted")
        body = write_body(EndReport(self._url, child=name))
        await self._participant.ask_manager(MessageType.DELETE, body, name)
        self._core.end(name)

    async def remove(self, name: str, path: str) -> None:
        """Delete one attribute of a child; `Child.remove` calls it.

        Args:
            name: Name of the child.
            path: Dotted path of the attribute.

        If cancelled, the attribute may be deleted here, and the message not be sent yet.

        Raises:
            TypeError: The path is not a text.
            ObjectError: 400: the path has an empty segment, or too many segments; 403: another
                hyperty created the child; 404: it was deleted; 410: the object is gone or left,
                or the runtime has closed.
        """
        check_text(path, "path")
        try:
            check_path(path)
        except BadMessageError as exc:
            raise ObjectError(name, exc.code, exc.reason) from exc
        if "" in path.split("."):
            raise ObjectError(name, Code.MALFORMED, "a path has no empty parts")
        async with self._own(name) as kept:
            if value_at(kept.value, path) is not ABSENT:
                remaining = without_attribute(kept.value, path)
                op = self._op(MessageType.UPDATE, name, self._next_version(), remaining)
                await self._send(attrs.evolve(op, value=None, removes=path, base=kept.version))

    @asynccontextmanager
    async def _own(self, name: str) -> AsyncIterator[Kept]:
        """Yield a child of the hyperty; other tasks of the hyperty wait to change it meanwhile."""
        if name.rpartition("#")[0] != self._participant.url and name in self:
            raise ObjectError(name, Code.FORBIDDEN, "only its creator changes a child")
        async with self._turn:
            kept = self.find(name)
            if kept is None:
                raise ObjectError(name, Code.NOT_FOUND, "the child is deleted")
            yield kept

    async def _post_change(self, act: MessageType, name: str, value: JsonInput) -> None:
        """Change the local copy of a child, and send the change to all observers."""
        await self._send(self._op(act, name, self._next_version(), value))

    async def _send(self, op: ChildOp) -> None:
        self._tell(partial(self._core.take, op))
        try:
            await self._participant.port.post(self._message(op))
        except ActorStoppedError as exc:
            raise _gone_error(self._url) from exc

    async def _insist(self, op: ChildOp) -> Message:
        try:
            return await self._participant.port.insist(self._message(op), CHILD_ATTEMPTS)
        except ActorStoppedError as exc:
            raise _gone_error(self._url) from exc

    def _next_version(self) -> int:
        return self._participant.ids.next(self._participant.url)

    def _op(self, act: MessageType, name: str, version: int, value: JsonInput) -> ChildOp:
        """Return the operation (create, change, delete) if it is valid, or raise ObjectError."""
        if self._is_over:
            raise ObjectError(self._url, Code.GONE, "the object is gone, or left")
        checked = None if act is MessageType.DELETE else _checked_child(name, value)
        creator, _, number = name.rpartition("#")
        op = ChildOp(act, name, creator, int(number), version, checked)
        refusal = self._core.children.refusal(op)
        if refusal is not None:
            raise ObjectError(name, refusal.code, refusal.why)
        return op

    def _message(self, op: ChildOp) -> Message:
        (to,) = children_addresses(self._url)
        return child_message(op, to)

    # --- messages of others -------------------------------------------------------------------

    def take_notice(self, message: Message) -> Message | None:
        if message.from_ == self._participant.url:
            # The own operation of the hyperty, which comes back.
            return None
        try:
            if message.from_ != self._url:
                return self._on_creator(message, read_op(message))
            if "ended" in message.body:
                self._tell(partial(self._core.take_ended, read_body(message, ChildrenEnded)))
            elif "resource" in message.body:
                self._tell(partial(self._core.take, read_report(message), is_reported=True))
            else:
                self._tell(partial(self._core.hear_sign, read_body(message, ChildrenSign)))
        except BadMessageError:
            # The message is about no child, and no digest.
            pass
        return None

    def _on_creator(self, message: Message, op: ChildOp) -> Message | None:
        if self._url not in self._participant.reported:
            self._tell(partial(self._core.take, op))
            return None
        # The sync manager of the reporter has accepted the operation before.
        self._tell(partial(self._core.take, op, is_reported=True))
        return (
            reply_to(message, Code.OK, {"source": self._participant.url})
            if message.is_request
            else None
        )

    def begin(self, listed: Json, window: ChildWindow | None = None) -> None:
        """Take the first list of children from the answer that also has the whole object.

        Args:
            listed: The children by name; any other value: there are none.
            window: The window of the object, if it has one.
        """
        self._core.children.window = window
        if self._is_begun:
            # Notices have come since the list was made, but maybe not all: read the object.
            self._tell(self._core.doubt)
        else:
            self._is_begun = True
            self._tell(partial(self._core.become, listed if isinstance(listed, dict) else None))

    def check(self) -> None:
        """Read the children of an object with a window again: the oldest may be gone soon."""
        if self._core.children.window is not None:
            self._tell(self._core.doubt)

    # --- the port of the copy -------------------------------------------------------------

    def changed(self, name: str) -> None:  # noqa: ARG002 - any change wakes all readers
        self._moved.unpark_all()

    def read(self, number: int) -> None:
        self._begin(partial(self._read, number))

    def say_again(self, act: MessageType, name: str) -> None:
        """Send the last operation on a child again because it was lost; called by the copy.

        Args:
            act: The type of the operation.
            name: Name of the child.
        """
        self._begin(partial(self._say_again, act, name))

    def _begin(self, job: Callable[[], Awaitable[None]]) -> None:
        if self._open:
            self._open[-1].start_soon(job)

    async def _read(self, number: int) -> None:
        """Read the whole object; if it has a window, all pages of its children."""
        is_paged, entries, after = self._core.children.window is not None, JsonObject(), 0
        listed: Json = None
        for _ in range(WINDOW_PAGES):
            part = ReadChildren(after) if is_paged else None
            answer = await self._participant.read(self._url, part)
            value = answer.body.get("value")
            if answer.code > LAST_SUCCESS or not isinstance(value, dict):
                self._tell(partial(self._core.read_failed, number))
                return
            listed = value.get("childrenObjects")
            if not is_paged or not isinstance(listed, dict):
                break
            page, former = listed.get(RESOURCES), after
            entries |= page if isinstance(page, dict) else {}
            listed = {**listed, RESOURCES: entries}
            after = whole_in(listed.get("window"), "next")
            if after <= former:
                break
        self._tell(partial(self._core.become, listed if isinstance(listed, dict) else None))

    async def _say_again(self, act: MessageType, name: str) -> None:
        async with self._turn:
            kept = self.find(name)
            if kept is not None or act is MessageType.DELETE:
                await self._post_change(act, name, None if kept is None else kept.value)

    # --- the open context -----------------------------------------------------------------

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep the copy of the children complete while the context is open.

        Several contexts may be open; when the last one is left, iterations end and the hyperty
        gets no notices of children any more. If cancelled, the same.
        """
        async with open_background() as nursery:
            # Another context may have ended since this object was made.
            self._is_over, self._participant.children[self._url] = False, self
            self._open.append(nursery)
            nursery.start_soon(self._run)
            try:
                yield
            finally:
                self.end()
                self._open.remove(nursery)
                self.forget()

    def forget(self) -> None:
        """Stop the notices of children, unless a context of `open` still needs them."""
        if not self._open:
            self._participant.children.pop(self._url, None)

    def end(self) -> None:
        """End all iterations, as no change will follow, unless another context is open."""
        if len(self._open) <= 1:
            self._is_over = True
            self._moved.unpark_all()

    async def _run(self) -> None:
        while True:
            if await self._timer.is_over():
                self._tell(self._core.time_over)

    async def wait_for_change(self) -> bool:
        """Wait for the next change of any child.

        If cancelled, only the wait ends.

        Returns:
            Whether further changes can come.
        """
        if self._is_over:
            await trio.lowlevel.checkpoint()
        else:
            await self._moved.park()
        return not self._is_over


def _gone_error(url: str) -> ObjectError:
    return ObjectError(url, Code.GONE, "the hyperty was undeployed")
