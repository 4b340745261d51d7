"""What a denial leaves undone: everything (S8, I-B8, I-B9, I-M8, C-62, C-63)."""

import pytest

from fsm.policy.terms import Result
from specs.reply_code import DropReason
from tests.support.node.legacy_peer import plain_peer
from tests.support.node.node_peer import ALLOCATION, DOMAIN, DR, MN, RA, RB, SM, open_world
from tests.support.node.policing import POLICY, one_policy, policed, rule, rulings

LATE = one_policy(rule("late", 'effect = "deny"\ncondition = { msgId = { moreThan = 100 } }'))
"""What a peer sends with an id above 100 is denied; so a test can set the stage first."""

RECORD = {"url": "hyperty://a.ex/h", "runtime": RA, "user": "user://idp.ex/alice"}

DENIED = [
    ("desk: allocation", "create", ALLOCATION, {"scheme": "hyperty", "value": {"number": 1}}),
    ("desk: paths", "subscribe", SM, {"resources": [f"{RA}/x"], "source": f"{RA}/sm"}),
    ("desk: paths, gone", "unsubscribe", SM, {"resources": [f"{RA}/kept"], "source": f"{RA}/sm"}),
    ("desk: policies", "read", POLICY, {}),
    ("component: registry", "create", DR, {"value": RECORD}),
    ("component: nobody", "read", f"domain://qos.{DOMAIN}", {}),
    ("session of a runtime", "create", f"{RB}/ua", {"value": 1}),
    ("event", "update", f"{RB}/status", {"value": "live"}),
    ("nobody", "create", "hyperty://a.ex/nobody", {}),
    ("another domain", "create", "hyperty://c.ex/nobody", {}),
]


@pytest.mark.parametrize("denied", DENIED, ids=[one[0] for one in DENIED])
async def test_a_denied_message_has_no_effect(denied, tmp_path, autojump_clock):
    _, type_, to, body = denied
    async with open_world(**policed(tmp_path, LATE)) as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        await ra.ask("subscribe", f"{RA}/sm", SM, resources=[f"{RA}/kept"], source=f"{RA}/sm")
        before, ra._id = await world.node.sessions(), 100
        world.tracer.records.clear()
        message = await ra.post(type_, f"{RA}/ua", to, **body)

        answer = None if message.is_event else await ra.hear()
        assert await rb.silence()
        assert await world.node.sessions() == before
        if answer is not None:
            assert (answer.code, answer.id) == (403, 101)
            assert answer.body["description"]
        seen = [(str(fact.k), str(fact.op or fact.decision)) for fact in world.tracer.facts]
        reported = [("msg", "synth"), ("msg", "xmit")] if answer else [("msg", "drop")]
        assert seen == [("msg", "rcv"), ("authz", "deny"), ("msg", "deny"), *reported]


async def test_a_denied_registration_is_not_found(tmp_path, autojump_clock):
    async with open_world(**policed(tmp_path, LATE)) as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        ra._id = 100
        assert (await ra.ask("create", f"{RA}/registry", DR, value=RECORD)).code == 403

        found = await rb.ask("read", f"{RB}/registry", DR, resource=RECORD["url"])
        assert found.code == 404


async def observed(ra, rb) -> str:
    """An object that one reports and the other observes."""
    (url,) = await ra.allocate("comm")
    answer = await rb.ask("subscribe", f"{RB}/sm", SM, resources=[f"{url}/changes"])
    assert answer.code == 200, answer.body
    return url


async def change(peer, url: str) -> None:
    await peer.post("update", url, f"{url}/changes", version=2, attribute="x", value=1)


async def test_a_denied_event_is_not_fanned_out_not_answered_and_counted(tmp_path, autojump_clock):
    async with open_world(**policed(tmp_path, LATE)) as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        url = await observed(ra, rb)
        await change(ra, url)
        assert (await rb.hear()).to == f"{url}/changes"
        ra._id = 100
        await change(ra, url)

        assert await ra.silence()
        assert await rb.silence()
        assert world.node.counters.drops[DropReason.DENIED] == 1


async def code_from_elsewhere(peer, number: int) -> int:
    """Speak from an address of another domain, as only upstream's forms may."""
    to = f"{RA}/absent"
    answer = await peer.ask(id=number, type="create", from_="hyperty://b.ex/hx", to=to, body={})
    return answer["body"]["code"]


async def test_a_denied_message_binds_no_address_of_another_domain(tmp_path, autojump_clock):
    """MN-13: who may not speak does not get hold of the name it would have spoken by."""
    async with open_world(allow_legacy=True, **policed(tmp_path, LATE)) as world:
        denied, other = [
            await plain_peer(world, f"hyperty-runtime://b.ex/{name}") for name in ("x", "y")
        ]

        assert await code_from_elsewhere(denied, 101) == 403
        assert await code_from_elsewhere(other, 1) == 404


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


async def test_each_message_is_judged_exactly_once(tmp_path, autojump_clock):
    """I-M8, C-62: whatever it is for, and whoever answers it."""
    async with open_world(**policed(tmp_path, LATE)) as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        await change(ra, await observed(ra, rb))
        await rb.hear()
        await ra.ask("read", f"{RA}/registry", DR, resource=RECORD["url"])
        await ra.ask("create", f"{RA}/ua", "hyperty://a.ex/nobody")
        await ra.control("ping")
        await ra.post("create", f"{RA}/ua", f"{RB}/ua", value=1)
        asked = await rb.hear()
        back = asked.id, asked.to, asked.from_
        await rb.raw(b'{"id":%d,"type":"response","from":"%s","to":"%s","body":{"code":200}}'
                     % (back[0], back[1].encode(), back[2].encode()))  # fmt: skip
        await ra.hear()
        ra._id = 100
        await ra.ask("create", f"{RA}/ua", f"{RB}/ua", value=1)

        seen = [fact.mid for fact in rulings(world)]
        assert len(seen) == len(set(seen))
        received = [fact.mid for fact in world.tracer.facts if fact.op == "rcv"]
        assert set(received) <= set(seen)
        assert {fact.decision for fact in rulings(world)} == {"permit", "deny"}


async def test_a_message_refused_earlier_is_not_judged(tmp_path, autojump_clock):
    """MN-03: source and circle come first."""
    async with open_world(**policed(tmp_path, LATE)) as world:
        ra = await world.peer(RA)
        before = len(rulings(world))
        assert (await ra.ask("create", f"{RB}/ua", f"{RA}/ua")).code == 401

        assert len(rulings(world)) == before


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


async def test_without_policies_management_is_answered_404(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)
        assert (await ra.ask("read", f"{RA}/ua", POLICY)).code == 404
