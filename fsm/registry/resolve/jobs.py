"""The registry's open searches, one per key, and messages that wait for a direct link.

A search that has ended is forgotten; the next one begins under its key (RES-13, I-R6, I-R7).

While a link is being set up, only the question for a route waits here (RES-09, I-R9). The
messages wait at the component that asked, in order, so that none is lost or doubled
for any answer.
"""

import math
from collections.abc import Callable, Iterable
from typing import Final

import attrs

from fsm.effects import Intent
from fsm.engine import Entity
from fsm.limits.timers import Alarms
from fsm.machines.resolve_job import RESOLVE_JOB, State, Trigger
from fsm.registry.resolve.port import RoutesPort
from specs.limits.protocol import P2P_TIMEOUT


@attrs.frozen(slots=True)
class WaitingAsk:
    """A question for a route that waits for a link to an entity."""

    to: str
    intent: Intent
    entity: str


class LinkQueue:
    """The questions that wait for links, and their deadlines."""

    def __init__(self) -> None:
        self._asks: dict[tuple[str, Intent], WaitingAsk] = {}
        self._until: dict[str, float] = {}

    def wait(self, ask: WaitingAsk, now: float) -> bool:
        """Let a question wait; False: the link has been waited for long enough."""
        if now >= self._until.setdefault(ask.entity, now + P2P_TIMEOUT):
            return False
        self._asks[ask.to, ask.intent] = ask
        return True

    def deadline(self) -> float:
        """Return when the wait of the first question ends."""
        waiting = {ask.entity for ask in self._asks.values()}
        return min((self._until[entity] for entity in waiting), default=math.inf)

    def done(self, is_settled: Callable[[str], bool], now: float) -> list[WaitingAsk]:
        """Take out the questions whose link is settled, or whose time is over."""
        settled = {entity for entity in self._until if is_settled(entity)}
        for entity in settled:
            # The next set-up of a link to it may be waited for anew.
            del self._until[entity]
        over = [ask for ask in self._asks.values() if self._until.get(ask.entity, 0.0) <= now]
        for ask in over:
            del self._asks[ask.to, ask.intent]
        return over


_LINK: Final = "link|"
_LOOKING: Final = (State.LOOKUP, State.QUERY)
_WAITING: Final = (State.ATTACHED, State.WAIT)


def node_key(domain: str) -> str:
    """Return the key of the search for the stub of a domain's node."""
    return f"node|{domain}"


def link_key(entity: str) -> str:
    """Return the key of the search for a direct link to an entity."""
    return f"{_LINK}{entity}"


class ResolveJobs:
    """The open searches; the only place that steps their entities."""

    def __init__(self, port: RoutesPort) -> None:
        self._port = port
        self._open: dict[str, Entity] = {}
        self._alarms = Alarms[str]()

    def __len__(self) -> int:
        return len(self._open)

    def is_open(self, key: str) -> bool:
        """Return whether a search is under way."""
        return key in self._open

    def begin(self, key: str) -> None:
        """Begin a search.

        Raises:
            UndeclaredTransitionError: It is under way; ask `is_open` first.
        """
        job = self._open.setdefault(key, Entity(RESOLVE_JOB, key))
        self._port.step(job.step(Trigger.ASKED))

    def answer(self, key: str, why: str) -> None:
        """Begin and end a search whose result is there already; an open search goes on as it is."""
        if key not in self._open:
            self.begin(key)
            self.decide(key, Trigger.ATTACH, why)
            self.settle([key], Trigger.FOUND)

    def query(self, key: str, now: float) -> None:
        """Note that an open search waits for a record, for a limited time."""
        self.decide(key, Trigger.QUERIED)
        self._alarms.set(key, now + self._open[key].patience)

    def decide(self, key: str, trigger: Trigger, why: str = "") -> None:
        """Step a search by the result of a look-up; a search that is further stays."""
        job = self._open.get(key)
        if job is not None and job.state in _LOOKING:
            self._move(job, trigger, why)

    def settle(self, keys: Iterable[str], trigger: Trigger, why: str = "") -> None:
        """End those of some searches that wait for a stub or link."""
        for key in keys:
            job = self._open.get(key)
            if job is not None and job.state in _WAITING:
                self._move(job, trigger, why)

    def deadline(self) -> float:
        """Return when the first record must have come."""
        return self._alarms.deadline()

    def late(self, now: float) -> list[str]:
        """Take out the entities whose record has not come in time."""
        return [key.removeprefix(_LINK) for key in self._alarms.due(now)]

    def end_links(self, why: str) -> None:
        """End every search for a link: no link is set up any more."""
        self._end([job for key, job in self._open.items() if key.startswith(_LINK)], why)

    def end(self, why: str) -> None:
        """End every search."""
        self._end(list(self._open.values()), why)

    def _end(self, jobs: list[Entity], why: str) -> None:
        for job in jobs:
            self._move(job, Trigger.NONE, why)

    def _move(self, job: Entity, trigger: Trigger, why: str) -> None:
        step = job.step(trigger, why)
        self._alarms.set(job.key, float("inf"))
        if job.may_end:
            del self._open[job.key]
        self._port.step(step)
