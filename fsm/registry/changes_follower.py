"""The follower of other registries: what lives in the linked runtimes (P2P-23..26, I-C3).

Each followed registry is an entity of the machine `observer_copy`. Its changes may come
before its list, which a request brings: they are kept, and applied to the list in order.
When the link is no longer live, following ends. The known entities are kept, so that after
the link has come back the new list shows which of them have gone meanwhile.
"""

from typing import Final, assert_never, final

import attrs

from fsm.engine import Entity
from fsm.machines.sync.observer_copy import OBSERVER_COPY, State, Trigger
from fsm.registry.changes_io import Ask, Effect, Listen, SnapshotRead, Told, Unlisten, registry_of
from fsm.registry.resolve.effects import LinkDown, LinkGone, LinkUp
from fsm.registry.resolve.inputs import Listed
from specs.bodies.word import Operation
from specs.limits.p2p import MAX_LINK_ENTITIES
from specs.limits.protocol import EARLY_CHANGES

__all__ = ["ChangesFollower"]

_NOTHING: Final[dict[str, None]] = {}


@attrs.define(slots=True)
class _Followed:
    """A registry that was asked for its list.

    Attributes:
        ask: The number of the question.
        early: The changes that came before the list.
    """

    entity: Entity
    link: str
    ask: int
    early: list[Told] = attrs.field(factory=list)


@final
class ChangesFollower:
    """The entities of each remote runtime, as its registry reports them."""

    def __init__(self, runtime: str) -> None:
        self._runtime = runtime
        self._followed: dict[str, _Followed] = {}
        self._known: dict[str, dict[str, None]] = {}
        self._asks = 0

    @property
    def followed(self) -> tuple[str, ...]:
        """The runtimes whose list has come, and whose registries report changes."""
        is_live = {one: each.entity.state is State.LIVE for one, each in self._followed.items()}
        return tuple(remote for remote, has_told in is_live.items() if has_told)

    def known(self, remote: str) -> tuple[str, ...]:
        """Return the entities last reported of a runtime, also of one whose link is lost."""
        return tuple(self._known.get(remote, ()))

    def feed(self, happened: LinkUp | LinkDown | LinkGone | SnapshotRead | Told) -> list[Effect]:
        """Take an input; return the effects, in order."""
        match happened:
            case LinkUp(remote, link):
                return [*self._end(remote, "another link"), *self._follow(remote, link)]
            case LinkDown(remote):
                return self._end(remote, "the link is lost")
            case LinkGone(remote):
                self._known.pop(remote, None)
                return self._end(remote, "the link is over")
            case SnapshotRead():
                return self._answered(happened)
            case Told():
                return self._told(happened)
            case _:
                assert_never(happened)

    # ---- following

    def _follow(self, remote: str, link: str) -> list[Effect]:
        self._asks += 1
        key = f"{registry_of(remote)}|{registry_of(self._runtime)}"
        followed = _Followed(Entity(OBSERVER_COPY, key), link, self._asks)
        self._followed[remote] = followed
        return [followed.entity.step(Trigger.OBSERVE), Listen(remote), Ask(remote, followed.ask)]

    def _end(self, remote: str, why: str) -> list[Effect]:
        followed = self._followed.pop(remote, None)
        if followed is None:
            return []
        return [followed.entity.step(Trigger.GIVEN_UP, why), Unlisten(remote)]

    # ---- what is told

    def _answered(self, read: SnapshotRead) -> list[Effect]:
        """Take the list; without one the changes before it cannot be relied on."""
        followed = self._followed.get(read.remote)
        if followed is None or followed.ask != read.ask:
            return []
        former = self._known.pop(read.remote, _NOTHING)
        if read.urls is None:
            return [*self._end(read.remote, read.why), *_listed(read.remote, former, _NOTHING)]
        step = followed.entity.step(Trigger.SNAPSHOT)
        known = dict.fromkeys(read.urls[:MAX_LINK_ENTITIES])
        for told in followed.early:
            _apply(told, known)
        followed.early.clear()
        self._known[read.remote] = known
        return [step, *_listed(read.remote, former, known)]

    def _told(self, told: Told) -> list[Effect]:
        followed = self._followed.get(told.remote)
        if followed is None or followed.link != told.link:
            return []
        step = followed.entity.step(Trigger.CHANGED)
        if followed.entity.state is State.LIVE:
            known = self._known[told.remote]
            former = _known_of(told.urls, known)
            _apply(told, known)
            return [step, *_listed(told.remote, former, _known_of(told.urls, known))]
        followed.early.append(told)
        if len(followed.early) > EARLY_CHANGES:
            return [step, *self._end(told.remote, "it tells too much before its list")]
        return [step]


def _known_of(urls: tuple[str, ...], known: dict[str, None]) -> dict[str, None]:
    """Return those that are known: nothing else of a long list can have changed."""
    return dict.fromkeys(url for url in urls if url in known)


def _apply(told: Told, known: dict[str, None]) -> None:
    for url in told.urls:
        if told.operation is Operation.REMOVE:
            known.pop(url, None)
        elif len(known) < MAX_LINK_ENTITIES:
            known[url] = None


def _listed(remote: str, former: dict[str, None], known: dict[str, None]) -> list[Effect]:
    gone = tuple(url for url in former if url not in known)
    there = tuple(url for url in known if url not in former)
    return [Listed(remote, there, gone)] if gone or there else []
