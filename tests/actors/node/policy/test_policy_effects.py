"""What a denial leaves undone: everything (S8, I-B8, I-B9, I-M8, C-62, C-63)."""

import pytest

from fsm.policy.terms import Result
from tests.support.node.node_peer import MN, RA, RB, open_world
from tests.support.node.policing import one_policy, policed, rule, rulings

LATE = one_policy(rule("late", 'effect = "deny"\ncondition = { msgId = { moreThan = 100 } }'))
"""What a peer sends with an id above 100 is denied; so a test can set the stage first."""


@pytest.mark.parametrize(
    ("to", "way"), [(f"{RB}/ua", "in"), ("hyperty://c.ex/x", "out"), (f"{MN}/sm", "in")]
)
async def test_the_trace_has_direction_rule_and_version_of_a_decision(
    to, way, tmp_path, autojump_clock
):
    """POL-17, I-K1, I-K2."""
    async with open_world(**policed(tmp_path, LATE)) as world:
        ra = await world.peer(RA)
        ra._id = 100
        await ra.ask("create", f"{RA}/ua", to)

        ruling = rulings(world)[-1]
        assert (ruling.policy, ruling.direction, ruling.version) == ("s/p/late", way, 1)


async def test_nothing_applicable_is_what_the_node_was_reported(tmp_path, autojump_clock):
    """POL-15."""
    only = one_policy(rule("open", 'effect = "permit"\ntarget.actionType.equals = "open"'))
    async with open_world(**policed(tmp_path, only, default=Result.DENY)) as world:
        ra = await world.peer(RA)

        assert (await ra.ask("create", f"{RA}/ua", f"{RB}/ua")).code == 403
        assert rulings(world)[-1].policy == "default"


async def test_a_denied_open_gives_no_session(tmp_path, autojump_clock):
    """POL-18."""
    text = one_policy(
        rule("guests", 'effect = "deny"\ntarget = { actionType = { equals = "open" } }\n'
             f'condition = {{ resource = {{ equals = "{RB}" }} }}\nreason = "not you"')
    )  # fmt: skip
    async with open_world(**policed(tmp_path, text)) as world:
        await world.peer(RA)
        answer = await (await world.outsider(RB)).control("open", runtimeURL=RB)

        assert (answer.code, answer.body["description"]) == (403, "not you")
        assert await world.states() == {RA: "open"}
