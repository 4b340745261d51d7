"""The golden scenarios, all of them, against the real actors."""

from enum import StrEnum

import attrs
import pytest

from tests.conformance.play.player import play
from tests.support.trace.recorded import NAMES, lines_of, scenario_of


class Road(StrEnum):
    """What has to come first."""

    NODE = "step 3: the message node, whole"
    OBJECTS = "step 5: reporters and observers"
    CONTRADICTION = "the file contradicts itself"


@attrs.frozen
class Pending:
    """A scenario that does not pass yet.

    Attributes:
        at: The first step that goes otherwise.
        why: What is missing.
    """

    road: Road
    at: int
    why: str


PENDING = {
    "SC-16": Pending(Road.CONTRADICTION, 42, "the way of changes; see the test below"),
}


def _listed(name):
    pending = PENDING.get(name)
    if pending is None:
        return name
    reason = f"{pending.road}: {pending.why}"
    return pytest.param(name, marks=pytest.mark.xfail(reason=reason, strict=True))


def test_all_34_scenarios_are_listed():
    assert len(NAMES) == 34
    assert PENDING.keys() <= set(NAMES)


@pytest.mark.parametrize("name", [_listed(name) for name in NAMES])
async def test_a_golden_scenario_passes(autojump_clock, name):
    """OBS-03."""
    outcome = await play(scenario_of(lines_of(name)))
    assert outcome.difference is None


@pytest.mark.parametrize("name", PENDING)
async def test_a_pending_scenario_goes_otherwise_where_it_is_known_to(autojump_clock, name):
    """A later step that gets further moves the number, and says so."""
    outcome = await play(scenario_of(lines_of(name)))
    assert outcome.difference is not None
    assert outcome.difference.number == PENDING[name].at


async def test_a_link_is_set_up_as_reported_except_the_path_of_changes(autojump_clock):
    """SC-16, with steps 42 and 43 as SC-31 has them.

    The file lets changes of C1 (of a.ex) go by the node of b.ex, the observer's. There
    nobody subscribed them; an observer subscribes at the reporter's node (SYN-09, SC-30
    steps 4 and 5), a target is served by the node of its own domain (RES-15), and so
    SC-31 has its changes go.
    """
    lines = lines_of("SC-16")
    ways = {
        42: "C1 reporter>RA.bus>SA~wire~MN.a~wire~SBA>RB.bus>PH",
        43: "C2 reporter>RB.bus>SB~wire~MN.b~wire~SAB>RA.bus>PQ",
    }
    changed = [line | {"hop": ways.get(line.get("n"), line.get("hop"))} for line in lines]
    reported = [
        {key: value for key, value in line.items() if value or key != "hop"} for line in changed
    ]
    outcome = await play(scenario_of(reported))
    assert outcome.difference is None
