"""The golden scenarios, all of them, against the real actors."""

import pytest

from tests.conformance.play.player import play
from tests.support.trace.recorded import NAMES, lines_of, scenario_of

PENDING = {"SC-16": 42}
"""The scenario contradicts itself in the way of changes; see the last test."""


@pytest.mark.parametrize("name", NAMES)
async def test_a_golden_scenario_passes(autojump_clock, name):
    """OBS-03."""
    difference = await play(scenario_of(lines_of(name)))
    assert (None if difference is None else difference.number) == PENDING.get(name)


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
    assert await play(scenario_of(reported)) is None
