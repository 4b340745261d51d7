"""What the network does to single messages: it loses, doubles or delays them.

The step of such a message (`"drop": "lost"`, `"doubled": true`, `"delayed": 5`) names the
message and the place: between a runtime and a message node. Actors are ahead of the steps
that describe them, so the network looks out from the last action before such a step on.
Messages alike in steps between that action and the step pass first. A delay holds back
what follows on the same link; all other messages in the frame of a lost one arrive.
"""

from collections.abc import Iterator
from typing import Final, final

import attrs

from actors.kit.trace import message_fact
from actors.play.match.content import says_the_same
from actors.play.match.evidence import DELAYED, DOUBLED, LOST
from actors.play.match.names import Names
from actors.play.match.observer import Observer
from actors.play.script.addresses import Places
from actors.play.script.hop import Ride
from actors.play.script.steps import (
    Flag,
    MessageStep,
    Scenario,
    Step,
)
from actors.play.stage.network import Carried
from specs.message import Message, instance_id
from specs.trace import Op
from transports.codec import decode_line

__all__ = ["Disturbances"]

_NETWORK: Final = "network"


@final
@attrs.define(eq=False)
class _Watch:
    """Looks out for one message.

    Attributes:
        cue: Number of the step with whose actions it begins; 0: at once.
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
class Disturbances:
    """What becomes of the messages of one scenario on their way.

    Args:
        names: What the scenario's names stand for; not changed.
        observer: Is told what is lost or doubled.
    """

    def __init__(self, scenario: Scenario, names: Names, observer: Observer) -> None:
        self._names = names
        self._observer = observer
        self._places = Places(scenario.setting)
        self._planned = list(_planned(scenario))
        self._due: list[_Watch] = []
        self._begin(0)

    def expect(self, step: Step) -> None:
        """Look out, from now on, for what is to happen behind the actions of a step."""
        self._begin(step.number)

    def _begin(self, number: int) -> None:
        due = [one for one in self._planned if one.cue == number]
        old = frozenset(seen.fact.mid for seen in self._observer.items if seen.fact.mid)
        for watch in due:
            watch.old = old
        self._due += due

    def carried(self, sender: str, receiver: str, frame: bytes) -> Carried:
        """Return what becomes of a frame."""
        if not self._due:
            return Carried(frame)
        hits: list[MessageStep] = []
        lines = frame.split(b"\n")
        left = [part for line in lines for part in self._left(sender, receiver, line, hits)]
        delay = max((step.delay for step in hits), default=0.0)
        return Carried(b"\n".join(left) if left else None, delay)

    def _left(
        self, sender: str, receiver: str, line: bytes, hits: list[MessageStep]
    ) -> tuple[bytes, ...]:
        message = decode_line(line)
        if not isinstance(message, Message):
            return (line,)
        watch = next(
            (one for one in self._due if self._is_it(one, sender, receiver, message)), None
        )
        if watch is None:
            return (line,)
        self._due.remove(watch)
        hits.append(watch.step)
        op, reason, copies = _effect(watch.step)
        fact = message_fact(op, message, reason=reason)
        self._observer.see(sender, _NETWORK, fact, message)
        return (line,) * copies

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


def _effect(step: MessageStep) -> tuple[Op, str, int]:
    """Return what is traced of a disturbed message, why, and how often it arrives."""
    if step.is_lost:
        return Op.DROP, LOST, 0
    if Flag.DOUBLED in step.flags:
        return Op.XMIT, DOUBLED, 2
    return Op.XMIT, DELAYED, 1


def _planned(scenario: Scenario) -> Iterator[_Watch]:
    for step in scenario.steps:
        if isinstance(step, MessageStep) and step.is_disturbed:
            before = (one for one in scenario.steps if one.number <= step.number)
            cue = max((one.number for one in before if scenario.is_acted(one)), default=0)
            alike = {
                instance_id(one.message)
                for one in scenario.steps
                if isinstance(one, MessageStep)
                and cue <= one.number < step.number
                and _form(one.message) == _form(step.message)
            }
            yield _Watch(step, cue, len(alike - {instance_id(step.message)}))


def _form(message: Message) -> object:
    return (message.type, message.from_, message.to, message.body)


def _counter(message: Message) -> str:
    """Return whose ids a message is counted by: who asks counts."""
    return message.to if message.is_response else message.from_
