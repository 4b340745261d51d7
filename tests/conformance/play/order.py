"""The order of the steps of a scenario, where the protocol fixes it.

A scenario is one order of a run; other orders are as good where nothing forbids them. Two steps
must be seen in the order of the scenario only if

- both are steps of one entity of one machine, or of one row of one table (two changes of a row
  may be one);
- both are messages from one sender to one receiver, as far as the scenario follows them from the
  same place or to the same place (I-B7);
- one answers the other: a provisional answer, too, comes before what follows it;
- the later is a row that the earlier, a message, asks for where it arrives, or the row of a P2P
  connection in the registry of a runtime, which learns of its steps by events;
- the later is a later hop of the earlier, followed from where that ended;
- the later is the status event of the step of a stub or P2P connection (I-S2, I-P2);
- the earlier is the ruling on a message, the later its next hop, or its refusal;
- the earlier is the route that a message takes, the later that message's hop;
- a fault, or time that passes, lies between them.

A scenario with two steps in the reverse order of the protocol is a run that cannot be: they are
related, too, and will not be seen so.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from specs.addresses.address import last_segment
from specs.jsonvalue import Json
from specs.message import instance_id, request_id
from tests.conformance.play.route import Match
from tests.conformance.play.script import GAP, Line, Scenario

Precedence: TypeAlias = Callable[[Match, Match], bool]
"""Whether two steps were seen so: which part of the earlier precedes which of the later."""


def end_before_start(earlier: Match, later: Match) -> bool:
    return earlier.last < later.first


def end_not_after_end(earlier: Match, later: Match) -> bool:
    return earlier.last <= later.last


def start_before_start(earlier: Match, later: Match) -> bool:
    return earlier.first < later.first


def end_before_end(earlier: Match, later: Match) -> bool:
    return earlier.last < later.last


_STUBS: Final = frozenset({"stub_connection", "stub_deployment"})
_P2P: Final = "p2p_connection"


class Order:
    """The relation of one scenario's steps."""

    def __init__(self, scenario: Scenario) -> None:
        self._pairs: list[tuple[int, int, Precedence]] = []
        for place, later in enumerate(scenario.steps):
            for earlier in scenario.steps[:place]:
                related = list(_related(scenario, earlier, later))
                if not related and any(_related(scenario, later, earlier)):
                    related = [end_before_start]
                self._pairs += [(earlier.n, later.n, how) for how in related]

    def before(self, number: int) -> set[int]:
        """Return the steps that must be seen before a step."""
        return {earlier for earlier, later, _ in self._pairs if later == number}

    def conflict(self, number: int, match: Match, matches: Mapping[int, Match]) -> int | None:
        """Return a step that was seen on the wrong side of this one, if there is any."""
        seen = {**matches, number: match}
        for earlier, later, how in self._pairs:
            is_about = number in {earlier, later} and {earlier, later} <= seen.keys()
            if is_about and not how(seen[earlier], seen[later]):
                return earlier if later == number else later
        return None


def _related(scenario: Scenario, earlier: Line, later: Line) -> Iterator[Precedence]:
    match earlier.word, later.word:
        case (("fault" | "time"), _) if earlier.n < later.n:
            yield end_before_start
        case "authz", "msg":
            ruled = scenario.step(earlier.ref)
            mid, message = instance_id(ruled.msg), later.msg
            is_refusal = message.is_response and request_id(message) == mid
            if is_refusal or (later.dup and instance_id(message) == mid):
                yield end_before_end
        case "msg", "msg":
            yield from _between_messages(earlier, later)
        case "state", "msg" if _is_reported_by(earlier, later):
            yield end_before_start
        case "resolve", "msg" if later.dup and later.msg.to == earlier.to:
            yield end_not_after_end
        case "state", "state" if (earlier.machine, earlier.key) == (later.machine, later.key):
            yield end_before_start
        case _, "table":
            yield from _before_row(earlier, later)


def _before_row(earlier: Line, later: Line) -> Iterator[Precedence]:
    match earlier.word:
        case "table" if _row(earlier) == _row(later):
            yield end_not_after_end if earlier.op == later.op == "upd" else end_before_end
        case "msg" if earlier.msg.is_request:
            is_there = earlier.hop.last.text == later.at.text
            if is_there and later.key in _texts_in(earlier.msg.body):
                yield end_before_end
        case "state" if later.table == "p2p" and later.at.part == "registry":
            # At whose registry it is, the key says only from the other side.
            own, remote, *_ = (*earlier.key, "", "")
            if earlier.machine == _P2P and remote == later.key != own:
                yield end_before_end


def _row(step: Line) -> tuple[str, str, str]:
    return step.table, step.at.text, step.key


def _between_messages(earlier: Line, later: Line) -> Iterator[Precedence]:
    one, two = earlier.msg, later.msg
    is_followed = earlier.hop.last.text == later.hop.first.text
    if instance_id(one) == instance_id(two):
        if is_followed or len(earlier.hop.stations) == 1:
            yield end_not_after_end
        elif later.dup and not earlier.dup:
            yield start_before_start
    elif two.is_response and not one.is_response and request_id(two) == instance_id(one):
        yield end_before_start if is_followed else start_before_start
    elif (one.from_, one.to, one.is_response) == (two.from_, two.to, two.is_response):
        if GAP != earlier.hop.first == later.hop.first:
            yield start_before_start
        if earlier.hop.last.text == later.hop.last.text:
            yield end_before_end


def _is_reported_by(step: Line, event: Line) -> bool:
    """Return whether a message is the status event of a step of its sender."""
    message = event.msg
    if last_segment(message.to) != "status" or message.body.get("value") != step.new:
        return False
    if step.machine in _STUBS:
        return step.key[0] == message.from_
    own, remote, *_ = (*step.key, "", "")
    is_link = step.machine == _P2P and message.from_.startswith(f"{own}/")
    return is_link and message.body.get("resource") == remote


def _texts_in(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from _texts_in(one)
        case dict():
            yield from _texts_in([*value.values()])
