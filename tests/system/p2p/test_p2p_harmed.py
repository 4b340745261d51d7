"""A party of a P2P set-up is killed, or stands still, at each stage (R9, P2P-14, P2P-15, I-T3).

The stages are the states of the connection's machine. Whoever is left over answers every
request, keeps no link that is neither live nor over, and finds the way back. Every two of
kind, stage, victim and harm come together here; the whole table is for long runs.
"""

from itertools import product

import outcome
import pytest
import trio

from fsm.judge.trace_line import Verdict
from specs.reply_code import Code
from tests.support.pairs import all_pairs
from tests.system.harmed import Harm
from tests.system.overlapping import open_overlap, wanted
from tests.system.p2p.set_up import ALICE, BOB, NODE, Stage, open_set_up
from transports.link import Kind

KINDS = (Kind.UNIX, Kind.TCP, Kind.WEBSOCKET)
LINKED = {Stage.LIVE, Stage.DISCONNECTED}
TABLE = (KINDS, Stage, (ALICE, BOB, NODE), Harm)
PAIRS = frozenset(all_pairs(*TABLE))
HONEST = {Code.OK, Code.TIMEOUT, Code.NOT_FOUND, Code.UNAVAILABLE}
FORGOTTEN = {Code.UNAUTHENTICATED}
"""What a node that has begun anew says until a runtime has claimed its addresses again."""

PATIENCE = 60.0

pytestmark = pytest.mark.timeout(240)


def shown_as(case):
    kind, stage, victim, how = case
    name = f"{kind.value}-{stage.value}-{victim}-{how.name}"
    return pytest.param(case, id=name, marks=[] if case in PAIRS else [pytest.mark.soak])


async def come_to_rest_and_back(set_up, stage, how):
    await set_up.reach(stage)
    set_up.harm(how)
    for gate in set_up.gates.values():
        gate.release()
    await set_up.settle()
    if set_up.victim == NODE and stage in LINKED:
        await set_up.link_is_back()
        assert await set_up.ask() == Code.OK
    await set_up.heal(how)
    await set_up.insist()
    # The other processes do not run faster: on busy cores their answers came late for this clock.
    set_up.clock.rate = 1.0
    with trio.fail_after(PATIENCE):
        await set_up.go_live()


async def shown(case, clock):
    kind, stage, victim, how = case
    async with open_set_up(kind, victim, clock) as set_up:
        ended = await outcome.acapture(come_to_rest_and_back, set_up, stage, how)
    ended.unwrap()
    is_new_node = victim == NODE and how is Harm.KILLED
    assert set(set_up.codes) <= (HONEST | FORGOTTEN if is_new_node else HONEST)
    assert len(set_up.codes) == set_up.asked
    assert {judgement.verdict for judgement in set_up.judged()} == {Verdict.CONFORMANT}


@pytest.fixture(scope="module")
def outcomes(request):
    with open_overlap(shown, wanted(request)) as outcomes:
        yield outcomes


@pytest.mark.parametrize("case", [shown_as(case) for case in product(*TABLE)])
def test_a_link_end_whose_peer_is_killed_comes_to_rest_and_goes_by_the_node(case, outcomes):
    outcomes[case].result()
