"""What a runtime has stored, and by whom it has more stored (RT-03, SYN-25).

Beside data objects it is what they come back by: the addresses of the hyperties that have
anything stored, and the tokens of sessions, so that a node which still has one gives it back
with all paths.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, final

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.supervisor import ChildSpec, Supervisor
from actors.runtime.store.barrier import StoreGate
from actors.runtime.store.file import ObjectFile
from actors.runtime.store.writer import Commit, Later, ObjectStore, StoreMessage
from fsm.sync.stored import (
    CopyForgotten,
    CopyKept,
    HomeForgotten,
    HomeKept,
    Keep,
    Rest,
    SessionKept,
)
from specs.limits.sync import COPIES_STORED

__all__ = ["RuntimeStore", "open_store"]

_Writer: TypeAlias = ActorRef[StoreMessage]


@final
class RuntimeStore:
    """The store of one runtime, or none.

    Args:
        file: Where it is; None: nothing is stored.

    Attributes:
        rest: What is stored now.
    """

    def __init__(self, file: ObjectFile | None) -> None:
        self.rest: Final = Rest() if file is None else file.rest
        self._file = file
        self._store: _Writer | None = None
        self._copies: set[tuple[str, str]] = set(self.rest.copies)

    @property
    def stores(self) -> bool:
        """Whether anything can be stored."""
        return self._file is not None

    @property
    def is_empty(self) -> bool:
        """Whether nobody has anything to come back to."""
        return not self.rest.objects and not self._copies

    async def start(self, core: Supervisor) -> None:
        """Have the store written from now on."""
        if self._file is not None:
            make = partial(ObjectStore, self._file)
            self._store = await core.start_child(ChildSpec("store", make))

    def gate(self) -> StoreGate:
        """Make what the sync manager stores by."""
        return StoreGate(self._store, self.rest)

    async def _keep(self, change: Keep) -> None:
        # What cannot be written is logged by the store; the runtime goes on without it.
        if self._store is not None:
            with suppress(ActorStoppedError):
                await self._store.ask(partial(Commit, (change,)))

    # --- sessions and addresses -----------------------------------------------------------

    def session(self, domain: str) -> str | None:
        """Return the token of the session that an earlier process had with a node."""
        return self.rest.sessions.get(domain)

    async def keep_session(self, domain: str, token: str) -> None:
        """Store a token, before the session is used."""
        if self.rest.sessions.get(domain) != token:
            await self._keep(SessionKept(domain, token))

    async def keep_home(self, url: str, descriptor: str | None) -> None:
        """Store the address of a hyperty, if it can be known again."""
        if descriptor is not None and self.rest.homes.get(url) != descriptor:
            await self._keep(HomeKept(url, descriptor))

    async def forget_home(self, url: str) -> None:
        """Store an address no more."""
        if url in self.rest.homes:
            await self._keep(HomeForgotten(url))

    def descriptor_of(self, url: str) -> str | None:
        """Say by what a hyperty of which something is stored is known again; None: nothing is."""
        is_tenant = url in self.rest.tenants or any(who == url for _, who in self._copies)
        return self.rest.homes.get(url) if is_tenant else None

    # --- copies ---------------------------------------------------------------------------

    def has_room(self, url: str, observer: str) -> bool:
        """Say whether a copy can be stored."""
        return len(self._copies) < COPIES_STORED or (url, observer) in self._copies

    def copy(self, url: str, observer: str) -> CopyKept | None:
        """Return what an observer had of an object."""
        return self.rest.copies.get((url, observer))

    def later(self, copy: CopyKept | CopyForgotten) -> None:
        """Store what an observer has of an object now, soon."""
        at = copy.url, copy.observer
        (self._copies.add if isinstance(copy, CopyKept) else self._copies.discard)(at)
        if self._store is not None:
            # A store that does not keep up gets the next one.
            self._store.try_tell(Later(copy))


@contextmanager
def open_store(path: Path | None) -> Iterator[RuntimeStore]:
    """Keep a file open while the context is.

    Raises:
        StoreFileError: It cannot be read, or is none of ours, or another process has it.
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
