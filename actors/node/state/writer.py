"""The writer of the state file: what comes in during one commit is the next one."""

import math
from typing import Final, Protocol, final

import attrs
import trio
from typing_extensions import override

from actors.kit.counters import Counters, Timing
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, ActorRef
from actors.node.errors import StateFileError
from actors.node.state.file import Change, StateFile, key_of
from specs.limits.node import STORE_RETRY

_log = get_logger("actors.node")


class HeldLink(Protocol):
    """A link whose answer waits for the disk."""

    def hold(self) -> None:
        """Write nothing until `release`."""

    def release(self) -> None:
        """Write what waits. Idempotent."""


@final
@attrs.frozen
class Store:
    """Make changes durable, then let the answers go."""

    changes: tuple[Change, ...]
    links: tuple[HeldLink, ...]


@final
class StateChanges:
    """The changes that are not with the writer yet; part of the bus's task.

    At most one change for each session, and for each name, waits: the last one.

    Args:
        writer: The writer; None: nothing is stored.
    """

    def __init__(self, writer: ActorRef[Store] | None) -> None:
        self._writer = writer
        self._changes: dict[tuple[bool, str], Change] = {}
        self._links: list[HeldLink] = []

    @property
    def is_settled(self) -> bool:
        """True if the writer has all changes."""
        return not self._changes

    def note(self, change: Change, link: HeldLink | None = None) -> None:
        """Have a change stored.

        Args:
            change: The change.
            link: A link that is written to only when it is stored; None: none.
        """
        if self._writer is None:
            return
        _replace(self._changes, change)
        if link is not None:
            link.hold()
            self._links.append(link)

    def settle(self) -> None:
        """Give the changes to the writer, if it has room."""
        if self._writer is None or not self._changes:
            return
        if self._writer.try_tell(Store(tuple(self._changes.values()), tuple(self._links))):
            self._changes, self._links = {}, []


def _replace(changes: dict[tuple[bool, str], Change], change: Change) -> None:
    """Have a change written instead of an earlier one of the same, in its order."""
    key = key_of(change)
    changes.pop(key, None)
    changes[key] = change


@final
class StateWriter(Actor[Store]):
    """Writes all that has come since the last commit in one.

    If the file cannot be written, the answers go all the same, and the changes are written when
    it can be: sessions go on, and a restart before that loses them. Nobody logs in meanwhile, as
    used tokens are in the same file.
    """

    def __init__(self, file: StateFile, counters: Counters) -> None:
        self._file: Final = file
        self._counters: Final = counters
        self._changes: dict[tuple[bool, str], Change] = {}
        self._links: list[HeldLink] = []
        self._retry_at = math.inf

    @override
    async def handle(self, message: Store) -> None:
        for change in message.changes:
            _replace(self._changes, change)
        self._links += message.links

    @override
    async def drained(self) -> None:
        links, self._links = self._links, []
        try:
            if math.isinf(self._retry_at):
                await self._write()
        finally:
            for link in links:
                link.release()

    @override
    def deadline(self) -> float:
        return self._retry_at

    @override
    async def timed_out(self) -> None:
        await self._write()

    @override
    async def stop(self) -> None:
        """Write what could not be written before."""
        await self._write()

    async def _write(self) -> None:
        if not self._changes:
            return
        begun = trio.current_time()
        try:
            await trio.to_thread.run_sync(self._file.write, tuple(self._changes.values()))
        except StateFileError as exc:
            if math.isinf(self._retry_at):
                _log.error("state file cannot be written", path=str(exc.where), why=exc.reason)
            self._retry_at = trio.current_time() + STORE_RETRY
            return
        if math.isfinite(self._retry_at):
            _log.warning("state file is written again")
        self._retry_at = math.inf
        self._changes = {}
        self._counters.took(Timing.COMMIT, trio.current_time() - begun)
