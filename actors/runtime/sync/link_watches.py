"""What the sync manager hears of links: by which one an entity is reached now (P2P-30)."""

from functools import partial
from typing import Final, final

import attrs
import trio

from actors.kit.errors import ActorStoppedError
from actors.kit.supervision.actor import ActorRef, Reply
from actors.runtime.registry.link_routes import LinkAwaited, LinkWitnessed, WaysWanted
from actors.runtime.sync.context import Spawn
from actors.runtime.sync.messages import LinkIs, Tell
from specs.limits.sync import WITNESS_TIMEOUT

__all__ = ["LinkWatches"]

_UNKNOWN: Final = ""
"""No link's address: any link that leads there is another one."""


@final
@attrs.frozen
class _Watch:
    """One entity whose link is watched."""

    entity: str
    known: str | None
    is_wanted: bool
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    def question(self, known: str | None, reply: Reply[str | None]) -> LinkAwaited:
        """Ask for another link than that."""
        return LinkAwaited(self.entity, known, self.is_wanted, reply)


@final
class LinkWatches:
    """Asks the registry about links, and tells `LinkIs` for each that changes.

    One question per watched entity waits at the registry.
    """

    def __init__(self, registry: ActorRef[WaysWanted], spawn: Spawn, tell: Tell) -> None:
        self._registry = registry
        self._spawn = spawn
        self._tell = tell
        self._watched: dict[str, trio.CancelScope] = {}

    def watched(self) -> tuple[str, ...]:
        """Return whose links are watched."""
        return tuple(self._watched)

    async def link_to(self, entity: str) -> str | None:
        """Return the live link that leads to an entity now; None: none does."""
        return await self._registry.ask(
            lambda reply: LinkAwaited(entity, _UNKNOWN, is_wanted=False, reply=reply)
        )

    async def speaks_for(self, link: str, part: str, entity: str) -> bool:
        """Say whether a part of the runtime at a link's other end speaks for an entity.

        It does not if that cannot be found out in time.
        """
        with trio.move_on_after(WITNESS_TIMEOUT):
            return await self._registry.ask(lambda reply: LinkWitnessed(link, part, entity, reply))
        return False

    def watch(self, entity: str, known: str | None, *, is_wanted: bool = False) -> None:
        """Tell of each other link that leads to an entity from now on; repeated is fine.

        Args:
            entity: A runtime, or what lives in one.
            known: The link that is known to lead there.
            is_wanted: Whether a link may be set up for that.
        """
        if entity not in self._watched:
            watch = _Watch(entity, known, is_wanted)
            self._watched[entity] = watch.scope
            self._spawn(partial(self._watch, watch))

    def unwatch(self, entity: str) -> None:
        """End it; repeated is fine."""
        scope = self._watched.pop(entity, None)
        if scope is not None:
            scope.cancel()

    async def _watch(self, one: _Watch) -> None:
        known = one.known
        with one.scope:
            while True:
                try:
                    known = await self._registry.ask(partial(one.question, known))
                except ActorStoppedError:
                    return
                await self._tell(LinkIs(one.entity, known))
