"""The order of the steps of a scenario, where the protocol fixes it.

A scenario is one order of a run; other orders are as good where nothing forbids
them. Two steps must be seen in the order of the scenario only if

- both are steps of one entity of one machine, or of one row of one table (two changes
  of a row may be one);
- both are messages from one sender to one receiver, as far as the scenario follows them from the
  same place or to the same place (I-B7);
- one answers the other: a provisional answer, too, comes before what follows it;
- the later is a row that the earlier, a message, asks for where it arrives, or the row of
  a P2P connection in the registry of a runtime, which learns of its steps by events;
- the later is a later hop of the earlier, followed from where that ended;
- the later is the status event of the step of a stub or P2P connection (I-S2, I-P2);
- the earlier is the ruling on a message, the later its next hop, or its refusal;
- the earlier is the route that a message takes, the later that message's hop;
- a fault, or time that passes, lies between them.

It is a relation between steps, not a list of positions: steps that it does not relate
may be seen in any order. A scenario with two steps in the reverse order of the protocol
is a run that cannot be: they are related, too, and will not be seen so.
"""

from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Final, final

import attrs

from specs.addresses.address import last_segment
from specs.message import Message, instance_id, request_id
from specs.trace import Op
from tests.conformance.play.script.addresses import texts_in
from tests.conformance.play.script.hop import GAP
from tests.conformance.play.script.steps import (
    AuthzStep,
    FaultStep,
    MessageStep,
    ResolveStep,
    Scenario,
    StateStep,
    Step,
    TableStep,
    TimeStep,
)

_STUB: Final = "stub_connection"
_DEPLOYMENT: Final = "stub_deployment"
_P2P: Final = "p2p"
_REGISTRY: Final = "registry"
_P2P_MACHINE: Final = "p2p_connection"


@final
@attrs.frozen
class Match:
    """The records that are a step: numbers of the first and the last of them."""

    first: int
    last: int


class Precedence(Enum):
    """The relation of two steps: which part of the earlier precedes which of the later."""

    END_BEFORE_START = auto()
    END_NOT_AFTER_END = auto()
    START_BEFORE_START = auto()
    END_BEFORE_END = auto()

    def holds(self, earlier: Match, later: Match) -> bool:
        """Return whether two steps were seen so.

        Args:
            earlier: Match of the earlier step.
            later: Match of the later step.
        """
        match self:
            case Precedence.END_BEFORE_START:
                return earlier.last < later.first
            case Precedence.END_NOT_AFTER_END:
                return earlier.last <= later.last
            case Precedence.START_BEFORE_START:
                return earlier.first < later.first
            case Precedence.END_BEFORE_END:
                return earlier.last < later.last


@final
class Order:
    """The relation of one scenario's steps."""

    def __init__(self, scenario: Scenario) -> None:
        self._before: dict[int, list[tuple[int, Precedence]]] = {}
        self._after: dict[int, list[tuple[int, Precedence]]] = {}
        for place, later in enumerate(scenario.steps):
            for earlier in scenario.steps[:place]:
                for how in _precedences(scenario, earlier, later):
                    self._before.setdefault(later.number, []).append((earlier.number, how))
                    self._after.setdefault(earlier.number, []).append((later.number, how))

    def before(self, number: int) -> tuple[tuple[int, Precedence], ...]:
        """Return what must be seen before a step."""
        return tuple(self._before.get(number, ()))

    def conflict(self, number: int, match: Match, matches: Mapping[int, Match]) -> int | None:
        """Return a step that was seen on the wrong side of this one, if there is any.

        Args:
            number: Number of the step.
            match: The match.
            matches: Matches by number of the step.
        """
        for other, how in self._before.get(number, ()):
            if other in matches and not how.holds(matches[other], match):
                return other
        for other, how in self._after.get(number, ()):
            if other in matches and not how.holds(match, matches[other]):
                return other
        return None


def _precedences(scenario: Scenario, earlier: Step, later: Step) -> Iterator[Precedence]:
    """Yield the relations of two steps that the scenario has in this order."""
    related = list(_related(scenario, earlier, later))
    yield from related
    if not related and any(_related(scenario, later, earlier)):
        yield Precedence.END_BEFORE_START


def _related(scenario: Scenario, earlier: Step, later: Step) -> Iterator[Precedence]:
    match earlier:
        case FaultStep() | TimeStep() if earlier.number < later.number:
            yield Precedence.END_BEFORE_START
        case AuthzStep(ref=ref) if isinstance(later, MessageStep):
            ruled = scenario.step(ref)
            if isinstance(ruled, MessageStep):
                yield from _after_ruling(ruled.message, later)
        case _:
            yield from _relations(earlier, later)


def _relations(earlier: Step, later: Step) -> Iterator[Precedence]:
    match later:
        case MessageStep():
            yield from _before_message(earlier, later)
        case StateStep(machine=machine, key=key) if isinstance(earlier, StateStep):
            if (earlier.machine, earlier.key) == (machine, key):
                yield Precedence.END_BEFORE_START
        case TableStep():
            yield from _before_row(earlier, later)
        case _:
            return


def _before_row(earlier: Step, later: TableStep) -> Iterator[Precedence]:
    match earlier:
        case TableStep() if _row(earlier) == _row(later):
            is_one = earlier.op is later.op is Op.UPD
            yield Precedence.END_NOT_AFTER_END if is_one else Precedence.END_BEFORE_END
        case MessageStep(hop=hop, message=message) if message.is_request:
            is_there = hop.last[0].text == later.at.text
            if is_there and later.key in texts_in(message.body):
                yield Precedence.END_BEFORE_END
        case StateStep(machine=machine, key=(own, remote, *_)):
            is_link = later.table == _P2P and later.at.part == _REGISTRY
            if is_link and machine == _P2P_MACHINE and remote == later.key:
                # At whose registry it is, the key says only from the other side.
                yield from () if own == later.key else (Precedence.END_BEFORE_END,)
        case _:
            return


def _row(step: TableStep) -> tuple[str, str, str]:
    return step.table, step.at.text, step.key


def _before_message(earlier: Step, later: MessageStep) -> Iterator[Precedence]:
    match earlier:
        case MessageStep():
            yield from _between_messages(earlier, later)
        case StateStep() if _is_reported_by(earlier, later):
            yield Precedence.END_BEFORE_START
        case ResolveStep():
            yield from _after_route(earlier, later)
        case _:
            return


def _between_messages(earlier: MessageStep, later: MessageStep) -> Iterator[Precedence]:
    one, two = earlier.message, later.message
    if instance_id(one) == instance_id(two):
        if earlier.hop.last[0].text == later.hop.first.text or len(earlier.hop.stations) == 1:
            yield Precedence.END_NOT_AFTER_END
        elif _is_first_hop(earlier, later):
            yield Precedence.START_BEFORE_START
        return
    if two.is_response and not one.is_response and request_id(two) == instance_id(one):
        is_there = earlier.hop.last[0].text == later.hop.first.text
        yield Precedence.END_BEFORE_START if is_there else Precedence.START_BEFORE_START
    elif (one.from_, one.to, one.is_response) == (two.from_, two.to, two.is_response):
        if GAP != earlier.hop.first == later.hop.first:
            yield Precedence.START_BEFORE_START
        if earlier.hop.last[0].text == later.hop.last[0].text:
            yield Precedence.END_BEFORE_END


def _is_first_hop(earlier: MessageStep, later: MessageStep) -> bool:
    return later.dup and not earlier.dup


def _is_reported_by(step: StateStep, event: MessageStep) -> bool:
    """Return whether a message is the status event of a step of its sender."""
    message = event.message
    if last_segment(message.to) != "status" or message.body.get("value") != step.new:
        return False
    if step.machine in {_STUB, _DEPLOYMENT}:
        return step.key[0] == message.from_
    if step.machine != _P2P_MACHINE or len(step.key) < 2:
        return False
    own, remote = step.key[0], step.key[1]
    return message.from_.startswith(f"{own}/") and message.body.get("resource") == remote


def _after_route(earlier: ResolveStep, later: MessageStep) -> Iterator[Precedence]:
    if later.dup and later.message.to == earlier.to:
        yield Precedence.END_NOT_AFTER_END


def _after_ruling(ruled: Message, later: MessageStep) -> Iterator[Precedence]:
    message = later.message
    is_hop = later.dup and instance_id(message) == instance_id(ruled)
    is_refusal = message.is_response and request_id(message) == instance_id(ruled)
    if is_hop or is_refusal:
        yield Precedence.END_BEFORE_END
