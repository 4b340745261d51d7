"""The store of a runtime: its data objects, addresses and session tokens (RT-03, SYN-25).

With the addresses of hyperties that have stored data, and the tokens of sessions, a runtime resumes
a session that its node still has, with all paths.

The writer is the only actor that writes to the file of data objects. Changes that come while one
commit runs are committed together afterwards, so that a burst costs few syncs. Copies of observed
objects may be written a little later: each only has to be a value that the object had.

Messages about stored objects wait until their content is on disk (SYN-25, I-D2). The sync
manager notes what is to be written; when its batch of messages is done all of it is committed
together, and then the waiting messages go out in order. A store that cannot be written is tried
again; until then messages about the objects in question wait, new changes of stored objects are
refused, and everything else goes on.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, assert_never

import attrs
import trio
from typing_extensions import override

from actors.kit.errors import ActorStoppedError
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, ActorRef, Reply
from actors.kit.supervision.supervisor import ChildSpec, Supervisor
from actors.runtime.store.file import ObjectFile, StoreFileError
from fsm.sync import stored
from specs.limits.sync import COPIES_STORED, COPY_PAUSE, STORE_PAUSE
from specs.message import Message

_log = get_logger("actors.runtime")

Stored: TypeAlias = StoreFileError | None
"""Result of a commit: None if everything was written to disk; otherwise the error."""


@attrs.frozen(slots=True)
class Commit:
    """A request to make changes durable, with the reply."""

    changes: tuple[stored.Keep, ...]
    done: Reply[Stored]


StoreMessage: TypeAlias = Commit | stored.CopyKept | stored.Forgotten
"""A commit; or the newest copy of an object, to be written soon instead of earlier ones."""


class ObjectStore(Actor[StoreMessage]):
    """Writes commits and copies to the file, several together."""

    def __init__(self, file: ObjectFile) -> None:
        self._file = file
        self._commits: list[Commit] = []
        self._copies: dict[tuple[str, ...], stored.CopyKept | stored.Forgotten] = {}
        self._write_at = math.inf
        self._is_broken = False

    @override
    async def handle(self, message: StoreMessage) -> None:
        match message:
            case Commit():
                self._commits.append(message)
            case stored.CopyKept() | stored.Forgotten() as copy:
                self._copies[_key_of(copy)] = copy
                self._write_at = min(self._write_at, trio.current_time() + COPY_PAUSE)
            case _:
                assert_never(message)

    @override
    async def drained(self) -> None:
        if self._commits:
            await self._write()

    @override
    def deadline(self) -> float:
        return self._write_at

    @override
    async def timed_out(self) -> None:
        await self._write()

    @override
    async def stop(self) -> None:
        await self._write()

    async def _write(self) -> None:
        commits, self._commits = self._commits, []
        changes: list[stored.Keep] = [change for commit in commits for change in commit.changes]
        error = await self._commit([*changes, *self._copies.values()])
        self._write_at = math.inf
        if error is None:
            self._copies.clear()
        elif self._copies:
            self._write_at = trio.current_time() + STORE_PAUSE
        for commit in commits:
            commit.done.send(error)

    async def _commit(self, changes: list[stored.Keep]) -> Stored:
        try:
            await self._file.commit(changes)
        except StoreFileError as error:
            if not self._is_broken:
                _log.error("store cannot be written", path=str(error.where), why=error.reason)
            self._is_broken = True
            return error
        if self._is_broken:
            _log.warning("store is written again", path=str(self._file.path))
        self._is_broken = False
        return None


def _key_of(copy: stored.CopyKept | stored.Forgotten) -> tuple[str, ...]:
    return copy.key if isinstance(copy, stored.Forgotten) else (copy.url, copy.observer)


Act: TypeAlias = Callable[[], None]
"""A function to call once all changes are written."""


class StoreGate:
    """Delays messages of the sync manager until the changes that they report are on disk.

    Args:
        store: The writer; None: this runtime stores nothing.
        rest: The stored data, which follows the writes.

    Attributes:
        is_broken: Whether the store cannot be written now.
        stored: Addresses of the stored objects.
        dirty: Addresses of objects with unwritten changes.
        retry_at: When `settle` is due without new changes.
    """

    def __init__(
        self, store: ActorRef[StoreMessage] | None = None, rest: stored.Rest | None = None
    ) -> None:
        self.is_broken = False
        self.stored: Final[set[str]] = set()
        self._store = store
        self.rest: Final = stored.Rest() if rest is None else rest
        self._changes: list[stored.Keep] = []
        self._children: dict[str, Callable[[], stored.ChildrenKept | None]] = {}
        self.dirty: set[str] = set()
        self._held: list[Act] = []
        self.retry_at = math.inf

    @property
    def stores(self) -> bool:
        """Whether anything can be stored."""
        return self._store is not None

    def keep(self, url: str, change: stored.Keep) -> None:
        """Store a change of an object; later messages about the object wait for the write.

        Args:
            url: Address of the object; an object that is not stored is ignored.
            change: The change.
        """
        if url in self.stored:
            self._changes.append(change)
            self.dirty.add(url)

    def keep_children(self, url: str, make: Callable[[], stored.ChildrenKept | None]) -> None:
        """Store the children of an object as they are at the time of the write.

        However many changes wait for that, the children are stored once.

        Args:
            url: Address of the object; an object that is not stored is ignored.
            make: Returns the children; None: the object is gone.
        """
        if url in self.stored:
            self._children[url] = make
            self.dirty.add(url)

    def _take_children(self) -> None:
        made, self._children = self._children, {}
        if made:
            # Children that an earlier attempt could not write are older.
            self._changes = [
                change
                for change in self._changes
                if not (isinstance(change, stored.ChildrenKept) and change.url in made)
            ]
            self._changes += filter(None, [make() for make in made.values()])

    def holds(self, *messages: Message) -> bool:
        """Return whether one of the messages is about an object with unwritten changes."""
        return bool(self.dirty) and any(map(self._concerns, messages))

    def _concerns(self, message: Message) -> bool:
        resource = message.body.get("resource")
        urls = (message.from_, message.to, resource if isinstance(resource, str) else "")
        return any(each == url or each.startswith(f"{url}/") for url in self.dirty for each in urls)

    def hold(self, act: Act) -> None:
        """Call `act` once all changes are written."""
        self._held.append(act)

    async def settle(self) -> None:
        """Write all changes, and then call the functions that wait for this."""
        if self._store is None or not (self._changes or self._children):
            return
        if self.is_broken and trio.current_time() < self.retry_at:
            return
        while self._changes or self._children:
            self._take_children()
            # Tasks may add changes meanwhile, and calls that wait for them.
            changes, waiting = tuple(self._changes), len(self._held)
            error = await self._store.ask(partial(Commit, changes))
            self.is_broken = error is not None
            if self.is_broken:
                self.retry_at = trio.current_time() + STORE_PAUSE
                return
            del self._changes[: len(changes)]
            self._release(waiting)
        self.retry_at = math.inf
        self._release(len(self._held))
        self.dirty.clear()

    def _release(self, count: int) -> None:
        acts, self._held = self._held[:count], self._held[count:]
        for act in acts:
            act()


class RuntimeStore:
    """The store of one runtime, or none.

    Args:
        file: The file; None: nothing is stored.

    Attributes:
        rest: The stored data.
    """

    def __init__(self, file: ObjectFile | None) -> None:
        self.rest: Final = stored.Rest() if file is None else file.rest
        self._file = file
        self._store: ActorRef[StoreMessage] | None = None
        self._copies = {_key_of(copy) for copy in self.rest.rows(stored.CopyKept)}

    @property
    def stores(self) -> bool:
        """Whether anything can be stored."""
        return self._file is not None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is stored that a component could resume."""
        return not self.rest.rows(stored.ObjectKept) and not self._copies

    async def start(self, core: Supervisor) -> None:
        """Start the writer of the store."""
        if self._file is not None:
            make = partial(ObjectStore, self._file)
            self._store = await core.start_child(ChildSpec("store", make))

    def gate(self) -> StoreGate:
        """Return the gate for the sync manager."""
        return StoreGate(self._store, self.rest)

    async def _keep(self, change: stored.Keep) -> None:
        # The store logs failed writes; the runtime continues without them.
        if self._store is not None:
            with suppress(ActorStoppedError):
                await self._store.ask(partial(Commit, (change,)))

    # --- sessions and addresses -----------------------------------------------------------

    def session(self, domain: str) -> str | None:
        """Return the session token for a node that an earlier process of this runtime stored."""
        kept = self.rest.find(stored.SessionKept, domain)
        return None if kept is None else kept.token

    async def keep_session(self, domain: str, token: str) -> None:
        """Store a token, before the session is used.

        Args:
            domain: The domain.
            token: Session token to store.
        """
        if self.session(domain) != token:
            await self._keep(stored.SessionKept(domain, token))

    async def keep_home(self, url: str, descriptor: str | None) -> None:
        """Store the address of a hyperty that has a descriptor, so that it gets the address again.

        Args:
            url: Address of the hyperty.
            descriptor: Catalogue address of the hyperty; None: it has none.
        """
        home = None if descriptor is None else stored.HomeKept(url, descriptor)
        if home is not None and self.rest.find(stored.HomeKept, url) != home:
            await self._keep(home)

    async def forget_home(self, url: str) -> None:
        """Remove a stored address."""
        if self.rest.find(stored.HomeKept, url) is not None:
            await self._keep(stored.Forgotten(stored.HomeKept, (url,)))

    def descriptor_of(self, url: str) -> str | None:
        """Return the descriptor of a hyperty with stored data; None: it has none."""
        is_tenant = url in self.rest.tenants or any(copy[1] == url for copy in self._copies)
        home = self.rest.find(stored.HomeKept, url) if is_tenant else None
        return None if home is None else home.descriptor

    # --- copies ---------------------------------------------------------------------------

    def has_room(self, url: str, observer: str) -> bool:
        """Return whether a copy can be stored.

        Args:
            url: Address of the object.
            observer: Address of the observer.
        """
        return len(self._copies) < COPIES_STORED or (url, observer) in self._copies

    def copy(self, url: str, observer: str) -> stored.CopyKept | None:
        """Return the stored copy of an observed object; None: there is none.

        Args:
            url: Address of the object.
            observer: Address of the observer.
        """
        return self.rest.find(stored.CopyKept, url, observer)

    def store_soon(self, copy: stored.CopyKept | stored.Forgotten) -> None:
        """Store the present copy of an observed object soon."""
        keeps = isinstance(copy, stored.CopyKept)
        (self._copies.add if keeps else self._copies.discard)(_key_of(copy))
        if self._store is not None:
            # If the store is too slow, it gets a later copy.
            self._store.try_tell(copy)


@contextmanager
def open_store(path: Path | None) -> Iterator[RuntimeStore]:
    """Open the store of a runtime while the context is open.

    Raises:
        StoreFileError: The file cannot be read, has another form, or is used by another process.
    """
    if path is None:
        yield RuntimeStore(None)
        return
    file = ObjectFile(path)
    file.load()
    try:
        yield RuntimeStore(file)
    finally:
        file.close()
