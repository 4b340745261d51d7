"""What is done along with decisions: POL-13, POL-14, POL-15, I-K3, I-K4."""

import pytest

from actors.policy.engine import Decision, Ruling, Tasks
from fsm.policy.attributes import Place, Request
from fsm.policy.model import Task
from fsm.policy.terms import Moment
from specs.limits.node import MAX_POLICY_COUNTERS
from specs.message import Message, MessageType
from tests.support.log import captured_log
from tests.support.node.node_peer import RA, RB, open_world
from tests.support.node.policing import one_policy, policed, rule, rulings

SECRET = "a-very-secret-value"  # noqa: S105 - a word to look for
CREATES = 'target.actionType.equals = "create"\n'


def duty(effect: str, *tasks: str, kind: str = "obligations") -> str:
    return one_policy(
        rule("r", f'effect = "{effect}"\n{CREATES}{kind}.{effect} = [{", ".join(tasks)}]')
    )


async def tell(world, **body: object):
    """One runtime tells another something; return what the other heard, or the refusal."""
    ra, rb = await world.peer(RA), await world.peer(RB)
    await ra.post("create", f"{RA}/ua", f"{RB}/ua", value=SECRET, **body)
    return await ra.hear() if await rb.silence() else rb.heard.pop()


LOG = '{ do = "log", text = "look" }'


@pytest.mark.parametrize("effect", ["permit", "deny"])
async def test_a_log_line_has_sender_and_message_without_body(effect, tmp_path, autojump_clock):
    with captured_log() as logs:
        async with open_world(**policed(tmp_path, duty(effect, LOG))) as world:
            await tell(world, token=SECRET)
            assert rulings(world)[-1].obligations == "log"
    (line,) = [one for one in logs if one["event"] == "policy"]
    assert (line["decision"], line["policy"], line["text"]) == (effect, "s/p/r", "look")
    assert (line["from_"], line["to"], line["type"]) == (f"{RA}/ua", f"{RB}/ua", "create")
    assert SECRET not in str(logs)


async def test_a_stamp_says_that_a_policy_permitted(tmp_path, autojump_clock):
    async with open_world(**policed(tmp_path, duty("permit", '{ do = "stamp" }'))) as world:
        heard = await tell(world)
        assert heard.body == {"value": SECRET, "auth": True}


async def test_a_policy_has_messages_kept(tmp_path, autojump_clock):
    """This node has nothing to keep them in, and says so."""
    async with open_world(**policed(tmp_path, duty("permit", '{ do = "durable" }'))) as world:
        sender, receiver = await world.peer(RA), await world.peer(RB)
        (from_,), (to,) = await sender.allocate(), await receiver.allocate()
        answer = await sender.ask("create", from_, to, value=1)
        assert (answer.code, "no engine" in answer.body["description"]) == (403, True)


UNKNOWN = '{ do = "water-the-plants" }'


async def test_a_permission_with_an_obligation_that_cannot_be_fulfilled_is_a_denial(
    tmp_path, autojump_clock
):
    for when in ("", ', when = "after"'):
        text = duty("permit", f'{{ do = "water-the-plants"{when} }}')
        async with open_world(**policed(tmp_path, text)) as world:
            answer = await tell(world)
            assert answer.code == 403
            assert rulings(world)[-1].decision == "deny"


async def test_advice_that_cannot_be_followed_is_skipped(tmp_path, autojump_clock):
    text = duty("permit", UNKNOWN, kind="advice")
    async with open_world(**policed(tmp_path, text)) as world:
        assert (await tell(world)).type == "create"


async def test_an_undecidable_message_is_denied_and_its_cause_logged(tmp_path, autojump_clock):
    """POL-14, I-K4."""
    text = one_policy(rule("r", f'effect = "permit"\n{CREATES}condition.srcIDP.equals = "x"'))
    with captured_log() as logs:
        async with open_world(**policed(tmp_path, text)) as world:
            answer = await tell(world)
            ruling = rulings(world)[-1]
    assert answer.code == 403
    assert (ruling.decision, ruling.policy) == ("deny", "s/p/r")
    (line,) = [one for one in logs if one["event"] == "policy undecided"]
    assert line["why"] == "the condition of s/p/r cannot be decided"
    assert "srcIDP (the sender has no valid login" in line["missing"]


def test_counters_have_an_end():
    tasks = Tasks()
    message = Message(1, MessageType.CREATE, RA, RB)
    request, ruling = Request(message, None, None, 0.0, Place("a.ex")), Ruling(Decision.PERMIT, "r")

    def count(number: int) -> str:
        return tasks.do((Task("count", name=f"n{number}"),), request, ruling, Moment.BEFORE)

    assert {count(number) for number in range(MAX_POLICY_COUNTERS)} == {""}
    assert count(0) == ""
    assert count(MAX_POLICY_COUNTERS) == "count"


async def test_a_counter_counts_each_message_once(tmp_path, autojump_clock):
    text = duty("deny", '{ do = "count", name = "blocked" }')
    async with open_world(**policed(tmp_path, text)) as world:
        ra = await world.peer(RA)
        await ra.ask("create", f"{RA}/ua", RB, resource="comm://a.ex/1")
        await ra.ask("create", f"{RA}/ua", RB, resources=["comm://a.ex/1", "comm://a.ex/2"])
        assert world.node._policing.tasks.counts == {"blocked": 2}
