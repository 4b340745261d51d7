"""What a node checks before it routes, and whom it answers (MN-03, MN-25, I-B9, I-B10)."""

import pytest
import trio

from actors.node.policy_hook import Policy
from actors.policy.engine import Decision, Ruling
from specs.limits.protocol import HOP_LIMIT
from specs.reply_code import DropReason
from tests.support.node.node_peer import DR, MN, RA, RB, RX, SM, open_world


class NoChatting(Policy):
    """Refuses whatever is created."""

    def judge(self, message, asker):
        if message.type == "create":
            return Ruling(Decision.DENY, "no-chatting", "chatting is not permitted")
        return Ruling(Decision.PERMIT, "no-chatting")


async def test_a_request_goes_to_the_owner_and_its_answer_back(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        (ha,), (hb,) = await ra.allocate(), await rb.allocate()
        request = await ra.post("create", ha, hb, value="hello")

        assert await rb.hear() == request
        await rb.raw(b'{"id":1,"type":"response","from":"%s","to":"%s","body":{"code":200}}'
                     % (hb.encode(), ha.encode()))  # fmt: skip

        assert (await ra.hear()).code == 200


@pytest.mark.parametrize(
    "forged",
    [
        f"{RB}/ua",
        RB,
        f"{RA}2/ua",
        "hyperty://a.ex/never-allocated",
        f"{MN}/sm",
        DR,
        "hyperty-runtime://b.ex/rb/ua",
        "global://registry",
    ],
)
async def test_a_source_the_session_does_not_own_gets_401_and_goes_nowhere(forged, autojump_clock):
    """SEC-01."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)

        answer = await ra.ask("create", forged, f"{RB}/ua", value=1)

        assert answer.code == 401
        assert await rb.silence()
        assert world.ops(from_=forged, type="create") == ["rcv", "deny"]
        assert world.ops(to=forged, type="response") == ["synth", "xmit"]


async def test_an_address_of_another_session_is_refused_as_source(autojump_clock):
    """SEC-01."""
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        (hb,) = await rb.allocate()

        assert (await ra.ask("create", hb, f"{RB}/ua", value=1)).code == 401
        assert (await ra.ask("create", f"{hb}/subscription", f"{RB}/ua", value=1)).code == 401
        assert await rb.silence()


async def test_a_forged_body_source_gets_401(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)
        await world.peer(RB)

        answer = await ra.ask("create", f"{RA}/ua", f"{RB}/ua", source=f"{RB}/ua")

        assert answer.code == 401


async def test_a_released_address_is_no_source_any_more(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)
        (ha,) = await ra.allocate()
        await ra.ask("delete", f"{RA}/ua", f"{MN}/address-allocation", childrenResources=[ha])

        assert (await ra.ask("create", ha, RB, value=1)).code == 401


async def test_an_address_of_another_domain_is_bound_to_its_first_user(autojump_clock):
    async with open_world() as world:
        rx, ra, rb = await world.peer(RX), await world.peer(RA), await world.peer(RB)
        hx = "hyperty://b.ex/hx"
        request = await rx.post("create", hx, f"{RB}/ua", value=1)

        assert await rb.hear() == request
        assert (await ra.ask("create", hx, f"{RB}/ua", value=1)).code == 401
        back = await rb.post("create", f"{RB}/ua", hx, value=2)
        assert await rx.hear() == back


async def test_a_message_in_a_circle_is_dropped(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        stub = f"{RA}/protostub/1"
        await ra.post("create", f"{RA}/ua", f"{RB}/ua", via=[stub, stub])
        hops = [f"{RA}/protostub/{n}" for n in range(HOP_LIMIT + 1)]
        await ra.post("create", f"{RA}/ua", f"{RB}/ua", via=hops)

        assert await rb.silence()
        assert world.node.counters.drops[DropReason.LOOP] == 2


async def test_via_is_passed_on_untouched(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        request = await ra.post("create", f"{RA}/ua", f"{RB}/ua", via=[f"{RA}/protostub/1"])

        assert (await rb.hear()).via == request.via


async def test_a_denied_request_has_no_effect_and_gets_403(autojump_clock):
    async with open_world(policy=NoChatting()) as world:
        ra, rb = await world.peer(RA), await world.peer(RB)

        answer = await ra.ask("create", f"{RA}/ua", f"{RB}/ua", value=1)

        assert (answer.code, answer.body["description"]) == (403, "chatting is not permitted")
        assert await rb.silence()
        assert world.steps("address") == []


async def test_policy_is_asked_once_per_message(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)
        await world.peer(RB)
        request = await ra.post("read", f"{RA}/ua", f"{RB}/ua")
        await trio.testing.wait_all_tasks_blocked()

        asked = [
            f for f in world.tracer.facts if f.k == "authz" and f.mid == f"{RA}/ua#{request.id}"
        ]
        assert [fact.decision for fact in asked] == ["permit"]


@pytest.mark.parametrize(
    "nobody",
    [f"{RB}/ua", "hyperty://a.ex/nobody", "hyperty://c.ex/nobody", "global://registry", RA],
)
async def test_a_request_to_an_unknown_address_gets_404(nobody, autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)

        assert (await ra.ask("read", f"{RA}/ua", nobody)).code == 404


async def test_events_and_answers_to_unknown_addresses_are_counted(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)
        await ra.post("update", f"{RA}/ua", f"{RA}/ua/status", value="live")
        await ra.post("response", f"{RA}/ua", f"{RB}/ua", code=200)
        await ra.post("response", f"{RA}/ua", SM, code=200)

        assert await ra.silence()
        assert world.node.counters.drops[DropReason.NO_TARGET] == 2
        assert world.node.counters.drops[DropReason.UNMATCHED] == 1


async def test_a_bad_line_with_a_sender_is_answered_and_other_lines_are_unaffected(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        bad = b'{"id":7,"type":"dance","from":"%s/ua","to":"%s/ua","body":{}}'
        good = b'{"id":8,"type":"read","from":"%s/ua","to":"%s/ua","body":{}}'
        await ra.raw(b"{not json\n" + (bad + b"\n" + good) % ((RA.encode(), RB.encode()) * 2))

        assert (await rb.hear()).id == 8
        answer = await ra.hear()
        assert (answer.id, answer.code) == (7, 400)
        assert world.node.counters.drops[DropReason.MALFORMED] == 2
        assert await world.states() == {RA: "open", RB: "open"}


async def test_a_bad_body_gets_400_with_a_sentence(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)

        answer = await ra.ask("subscribe", f"{RA}/sm", SM, resources=["nonsense"])

        assert answer.code == 400
        assert "nonsense" in answer.body["description"]


async def test_an_open_at_the_node_of_another_domain_is_refused_with_its_name(autojump_clock):
    async with open_world() as world:
        outsider = await world.outsider("hyperty-runtime://b.ex/r")
        elsewhere = MN.replace("a.ex", "b.ex")
        answer = await outsider.ask("execute", f"{outsider.runtime}/stub", f"{elsewhere}/session")
        assert answer.code == 401
        said = "this is the node of a.ex, and not that of b.ex"
        assert answer.body["description"] == said
        answer = await outsider.ask("execute", f"{outsider.runtime}/stub", f"{elsewhere}/sm")
        assert answer.body["description"] == "open a session first"
