"""What the network does to single messages of a scenario: it loses or doubles them.

A step of a message that is lost (`"drop": "lost"`) or doubled says by itself which
message is meant, and where: between a runtime and a message node. Actors are ahead of
the step that tells what they do, so the network is told before they can be: it looks out
from the last cue before such a step on. Messages alike that are told between that cue and
the step are let pass first. All others in the same frame arrive.
"""

from collections.abc import Iterator, Sequence
from typing import Final, final

import attrs

from actors.kit.trace_message import message_fact
from actors.play.atlas import Atlas
from actors.play.calls import is_remark
from actors.play.content import says_the_same
from actors.play.evidence import DOUBLED, LOST
from actors.play.hop import Ride
from actors.play.names import Names
from actors.play.observer import Observer
from actors.play.places import Places
from actors.play.script import (
    CallStep,
    FaultStep,
    Flag,
    MessageStep,
    Scenario,
    Step,
    TimeStep,
)
from specs.message import Message, instance_id
from specs.trace import Op
from transports.codec import decode_line

__all__ = ["Accidents"]

_NETWORK: Final = "network"


@final
@attrs.define(eq=False)
class _Watch:
    """Looks out for one message.

    Attributes:
        cue: Number of the step before which it begins; 0: the first.
        passing: How many messages alike pass before it.
        old: Instances that were there when it began; they are others.
        known: Instances alike since then.
    """

    step: MessageStep
    cue: int
    passing: int
    old: frozenset[str] = frozenset()
    known: dict[str, None] = attrs.field(factory=dict)


@final
class Accidents:
    """What becomes of the messages of one scenario on their way.

    Args:
        cues: The steps that the player does.
        names: What the scenario's names stand for; not changed.
        observer: Is told what is lost or doubled.
    """

    def __init__(
        self, scenario: Scenario, cues: Sequence[Step], names: Names, observer: Observer
    ) -> None:
        self._names = names
        self._observer = observer
        self._places = Places(Atlas(scenario))
        self._planned = list(_planned(scenario, cues))
        self._due: list[_Watch] = []
        self._begin(0)

    def expect(self, cue: Step) -> None:
        """Look out, from now on, for what is to happen behind a cue."""
        self._begin(cue.number)

    def _begin(self, number: int) -> None:
        due = [one for one in self._planned if one.cue == number]
        old = frozenset(seen.fact.mid for seen in self._observer.items if seen.fact.mid)
        for watch in due:
            watch.old = old
        self._due += due

    def toll(self, sender: str, receiver: str, frame: bytes) -> bytes | None:
        """Return what is left of a frame, and what is added to it; None: nothing is left."""
        if not self._due:
            return frame
        lines = frame.split(b"\n")
        left = [part for line in lines for part in self._left(sender, receiver, line)]
        return b"\n".join(left) if left else None

    def _left(self, sender: str, receiver: str, line: bytes) -> tuple[bytes, ...]:
        message = decode_line(line)
        if not isinstance(message, Message):
            return (line,)
        hits = [one for one in self._due if self._is_it(one, sender, receiver, message)]
        if not hits:
            return (line,)
        self._due.remove(hits[0])
        is_lost = hits[0].step.is_lost
        op, reason = (Op.DROP, LOST) if is_lost else (Op.XMIT, DOUBLED)
        fact = message_fact(op, message, reason=reason)
        self._observer.see(sender, _NETWORK, fact, message)
        return () if is_lost else (line, line)

    def _is_it(self, watch: _Watch, sender: str, receiver: str, message: Message) -> bool:
        mid = instance_id(message)
        if not self._goes_there(watch.step, sender, receiver):
            return False
        known = self._number(watch.step.message)
        if known is not None:
            return message.id == known and self._is_like(watch.step.message, message)
        if mid in watch.old or not self._is_like(watch.step.message, message):
            return False
        watch.known[mid] = None
        return len(watch.known) > watch.passing

    def _number(self, golden: Message) -> int | None:
        """Return the actors' id of a message, if an earlier hop of it was seen."""
        return self._names.bound.numbers.get(_counter(golden), {}).get(golden.id)

    def _is_like(self, golden: Message, message: Message) -> bool:
        trial = self._names.copy()
        return (
            (golden.type, golden.code) == (message.type, message.code)
            and trial.unify(golden.to, message.to)
            and trial.unify(golden.from_, message.from_)
            and says_the_same(golden, message, trial)
        )

    def _goes_there(self, step: MessageStep, sender: str, receiver: str) -> bool:
        """Say whether this is the part of its way on which it is to happen."""
        hop = step.hop
        rides = [carrier.ride for carrier in hop.carriers]
        # It is lost at the end of what is told of its way, and doubled where it can be first.
        places = [len(rides) - 1] if step.is_lost else range(len(rides))
        for place in places:
            if rides and rides[place] is Ride.UNSAID:
                return True
            if rides and rides[place] is Ride.WIRE:
                ends = (hop.stations[place][0], hop.stations[place + 1][0])
                told = zip(map(self._places.process, ends), (sender, receiver), strict=True)
                return all(one is None or one == other for one, other in told)
        return False


def _planned(scenario: Scenario, cues: Sequence[Step]) -> Iterator[_Watch]:
    for step in scenario.steps:
        if isinstance(step, MessageStep) and (step.is_lost or Flag.DOUBLED in step.flags):
            before = (one.number for one in cues if one.number <= step.number and _is_done(one))
            cue = max(before, default=0)
            alike = {
                instance_id(one.message)
                for one in scenario.steps
                if isinstance(one, MessageStep)
                and cue <= one.number < step.number
                and _form(one.message) == _form(step.message)
            }
            yield _Watch(step, cue, len(alike - {instance_id(step.message)}))


def _is_done(cue: Step) -> bool:
    """Say whether a cue is always done when it is told: a link may have begun before."""
    match cue:
        case CallStep():
            return not is_remark(cue)
        case MessageStep() | TimeStep() | FaultStep():
            return True
        case _:
            return False


def _form(message: Message) -> object:
    return (message.type, message.from_, message.to, message.body)


def _counter(message: Message) -> str:
    """Return whose ids a message is counted by: who asks counts."""
    return message.to if message.is_response else message.from_
