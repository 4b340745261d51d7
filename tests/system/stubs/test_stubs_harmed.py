"""A runtime or the node it reaches is killed, or stands still, at each stage of its stub.

Each stub that ships; the stages are the states of its connection (R2, R8, STB-03, STB-09, I-T3).
Every two of stub, stage, victim and harm come together here; the whole table is for long runs.
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
from tests.system.stubs.stub_set_up import FORMS, NODE, RUNTIME, Stage, open_stub_set_up

TABLE = (FORMS, Stage, (RUNTIME, NODE), Harm)
PAIRS = frozenset(all_pairs(*TABLE))
HONEST = {Code.OK, Code.TIMEOUT, Code.NOT_FOUND, Code.UNAVAILABLE}
FORGOTTEN = {Code.UNAUTHENTICATED}
"""What a node that has begun anew says until a runtime has claimed its addresses again."""

pytestmark = pytest.mark.timeout(240)


def shown_as(case):
    form, stage, victim, how = case
    name = f"{form}-{stage.value}-{victim}-{how.name}"
    return pytest.param(case, id=name, marks=[] if case in PAIRS else [pytest.mark.soak])


async def come_to_rest_and_back(set_up, stage, how):
    async with trio.open_nursery() as nursery:
        await set_up.reach(stage, nursery)
        set_up.harm(how)
        await set_up.settle()
        if set_up.victim == RUNTIME:
            assert (await set_up.carol.request(set_up.bob, "still there?")).code == Code.OK
        await set_up.heal(how)
        await set_up.insist()


async def shown(case, clock):
    form, stage, victim, how = case
    async with open_stub_set_up(form, victim, clock) as set_up:
        ended = await outcome.acapture(come_to_rest_and_back, set_up, stage, how)
    ended.unwrap()
    is_new_node = victim == NODE and how is Harm.KILLED
    assert set(set_up.codes) <= (HONEST | FORGOTTEN if is_new_node else HONEST)
    judged = {judgement.verdict for judgement in set_up.judged()}
    assert judged == {Verdict.CONFORMANT}


@pytest.fixture(scope="module")
def outcomes(request):
    with open_overlap(shown, wanted(request)) as outcomes:
        yield outcomes


@pytest.mark.parametrize("case", [shown_as(case) for case in product(*TABLE)])
def test_a_participant_whose_peer_is_killed_gives_up_and_reconnects(case, outcomes):
    outcomes[case].result()
