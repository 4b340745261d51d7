"""What is done along with decisions: POL-13, POL-14, POL-15, I-K3, I-K4."""

import pytest
import trio.testing

from actors.policy.engine import Decision, Ruling, Tasks
from fsm.policy.attributes import Place, Request
from fsm.policy.model import Task
from fsm.policy.terms import Moment
from specs.limits.node import MAX_POLICY_COUNTERS
from specs.message import Message, MessageType
from tests.support.log import captured_log
from tests.support.node.issuer import Issuer
from tests.support.node.node_peer import RA, RB, open_world
from tests.support.node.policing import (
    logged_in,
    one_policy,
    optional_login,
    policed,
    rule,
    rulings,
)

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


async def test_a_log_line_names_the_user(tmp_path, autojump_clock):
    issuer = Issuer()
    reported = {**policed(tmp_path, duty("deny", LOG)), **optional_login(issuer)}
    with captured_log() as logs:
        async with open_world(**reported) as world:
            peer = await logged_in(world, issuer)
            await peer.ask("create", f"{RA}/ua", f"{RB}/ua")
    assert [one["user"] for one in logs if one["event"] == "policy"] == ["user://idp.ex/alice"]


async def test_a_counter_counts_each_message_once(tmp_path, autojump_clock):
    text = duty("deny", '{ do = "count", name = "blocked" }')
    async with open_world(**policed(tmp_path, text)) as world:
        ra = await world.peer(RA)
        await ra.ask("create", f"{RA}/ua", RB, resource="comm://a.ex/1")
        await ra.ask("create", f"{RA}/ua", RB, resources=["comm://a.ex/1", "comm://a.ex/2"])
        assert world.node._policing.tasks.counts == {"blocked": 2}


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


async def test_a_policy_that_keeps_messages_believes_no_stamp(tmp_path, autojump_clock):
    text = one_policy(
        rule("r", 'effect = "permit"\ntarget.actionType.equals = "delete"\n'
             'obligations.permit = [{ do = "stamp" }]'),
        rule("s", 'effect = "permit"\nobligations.permit = [{ do = "durable" }]'),
    )  # fmt: skip
    async with open_world(**policed(tmp_path, text)) as world:
        assert (await tell(world, auth=True)).body["auth"] is False


@pytest.mark.parametrize(("said", "heard"), [(True, False), ("yes", False), (False, False)])
async def test_a_sender_cannot_stamp_its_own_message(said, heard, tmp_path, autojump_clock):
    """POL-15: false says that no policy permitted."""
    text = one_policy(
        rule("r", 'effect = "permit"\ntarget.actionType.equals = "delete"\n'
             'obligations.permit = [{ do = "stamp" }]')
    )  # fmt: skip
    async with open_world(**policed(tmp_path, text)) as world:
        assert (await tell(world, auth=said)).body["auth"] is heard


async def test_where_nothing_is_stamped_bodies_are_left_alone(tmp_path, autojump_clock):
    async with open_world(**policed(tmp_path, one_policy())) as world:
        assert (await tell(world, auth=True)).body["auth"] is True


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


async def test_a_denial_stays_a_denial_for_any_obligations(tmp_path, autojump_clock):
    async with open_world(**policed(tmp_path, duty("deny", UNKNOWN, LOG))) as world:
        assert (await tell(world)).code == 403


async def test_an_obligation_after_a_permission_follows_the_message(tmp_path, autojump_clock):
    late = '{ do = "count", name = "late", when = "after" }'
    early = '{ do = "count", name = "early" }'
    async with open_world(**policed(tmp_path, duty("permit", late, early))) as world:
        order = watched(world)
        await tell(world)
        assert rulings(world)[-1].obligations == "count:late@after,count:early"
    assert order == ["early", "xmit", "late"]


async def test_an_obligation_after_a_denial_follows_its_answer(tmp_path, autojump_clock):
    late = '{ do = "count", name = "late", when = "after" }'
    async with open_world(**policed(tmp_path, duty("deny", late))) as world:
        order = watched(world)
        await tell(world)
    assert order == ["xmit", "late"]


async def test_an_obligation_after_an_open_by_login_does_not_wait_for_another_message(
    tmp_path, autojump_clock
):
    late = 'obligations.permit = [{ do = "count", name = "late", when = "after" }]\n'
    text = one_policy(rule("r", f'effect = "permit"\n{late}'))
    issuer = Issuer()
    async with open_world(**policed(tmp_path, text), **optional_login(issuer)) as world:
        order = watched(world)
        await logged_in(world, issuer)
        await trio.testing.wait_all_tasks_blocked()
        assert order == ["late"]


def watched(world) -> list[str]:
    """Note, in order, when counters count and when the create or its refusal leaves."""
    order: list[str] = []
    tasks, tracer = world.node._policing.tasks, world.tracer
    count, record = tasks._count, tracer.record

    def counted(name: str) -> bool:
        order.append(name)
        return count(name)

    def recorded(actor, fact) -> None:
        if fact.op == "xmit" and "ua#" in fact.mid:
            order.append("xmit")
        record(actor, fact)

    tasks._count, tracer.record = counted, recorded
    return order


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
