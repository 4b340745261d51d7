"""Golden scenarios as they look from a node's links; the fixture is the oracle."""

import trio
import trio.testing

from specs.limits.protocol import SESSION_IDLE
from tests.actors.node.golden import Score
from tests.support.node.node_peer import ALLOCATION, RA, open_world

OBJ = "comm://a.ex/o1"
HA, HB = "hyperty://a.ex/ha", "hyperty://b.ex/hb"
RUNTIME_B, RUNTIME_A = "hyperty-runtime://b.ex/rb", "hyperty-runtime://a.ex/ra"


def steps_of(score, world, machine):
    reported = [(key.rpartition("|")[2], old, new) for key, old, new in world.steps(machine)]
    return [tuple(one) for one in score.reported(reported)]


async def reopen(world, peer):
    again = await world.outsider(peer.runtime)
    await again.control("re-open", runtimeURL=peer.runtime, token=peer.token)
    return again


async def test_sc07_link_loss_keeps_routing_state_and_close_releases_it(autojump_clock):
    score = Score("SC-07")
    async with open_world() as world:
        reporter, ra = await world.peer("hyperty-runtime://a.ex/rz"), await world.peer(RA)
        (score.names[OBJ],) = await reporter.allocate("comm")
        await score.sends(ra, 8)
        await score.hears(ra, 10)
        await ra.link.aclose()
        await trio.testing.wait_all_tasks_blocked()
        await score.sends(reporter, 15)
        await trio.testing.wait_all_tasks_blocked()

        again = await reopen(world, ra)

        await score.hears(again, 19)
        await again.control("close")
        golden = score.states("session")
        assert [one for one in steps_of(score, world, "session") if one[0] == RA] == golden
        subs = [f for f in world.tracer.facts if f.table == "subs"]
        assert [(f.op, score.reported(f.key), f.val) for f in subs] == [
            (score.steps[n]["op"], score.steps[n]["key"], score.steps[n]["val"]) for n in (9, 21)
        ]


async def test_sc08_a_silent_session_is_collected(autojump_clock):
    score = Score("SC-08")
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RUNTIME_B)
        (score.names[HA],) = await ra.allocate()
        await ra.link.aclose()
        await rb.silence(SESSION_IDLE + 1)

        await score.sends(rb, 10)
        await score.hears(rb, 11)
        again = await world.outsider(RA)
        score.names["t1"] = ra.token
        await score.sends(again, 12)
        await score.hears(again, 13)

        ours = [one for one in steps_of(score, world, "session") if one[0] == RA]
        assert ours == score.states("session")
        assert steps_of(score, world, "address") == score.states("alloc")


async def test_sc09_addresses_are_allocated_and_freed(autojump_clock):
    score = Score("SC-09")
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RUNTIME_B)

        async def allocates(request, answer):
            await score.sends(ra, request)
            heard = await ra.hear()
            golden = score.steps[answer]["msg"]["body"]["value"]["allocated"]
            score.names.update(zip(golden, heard.body["value"]["allocated"], strict=True))
            ra.heard.insert(0, heard)
            await score.hears(ra, answer)

        await allocates(1, 3)
        await allocates(4, 7)
        for request, answer in ((8, 11), (12, 14), (15, 16)):
            await score.sends(ra, request)
            await score.hears(ra, answer)
        assert steps_of(score, world, "address") == score.states("alloc")

        (score.names["hyperty://a.ex/owned-by-ra"],) = await ra.allocate()
        await score.sends(rb, 17)
        await score.hears(rb, 18)
        await score.sends(ra, 19)
        answer = await ra.hear()
        assert (answer.code, answer.from_) == (400, ALLOCATION)
        assert score.steps[20]["msg"]["body"]["description"] in answer.body["description"]


async def test_sc11_a_hyperty_is_registered_with_its_p2p_fields(autojump_clock):
    score = Score("SC-11")
    async with open_world(domain="b.ex") as world:
        rb = await world.peer(RUNTIME_B)
        (score.names[HB],) = await rb.allocate()

        await score.sends(rb, 1)
        await score.hears(rb, 4)

        assert steps_of(score, world, "registration") == score.states("registration")


async def test_sc12_status_is_subscribed_updated_and_notified(autojump_clock):
    score = Score("SC-12")
    async with open_world(domain="b.ex") as world:
        ra, rb = await world.peer(RUNTIME_A), await world.peer(RUNTIME_B)
        (score.names[HB],) = await rb.allocate()
        register = Score("SC-11")
        register.names = score.names
        await register.sends(rb, 1)
        await rb.hear()
        away = {"resource": score.names[HB], "attribute": "status", "value": "disconnected"}
        await rb.ask("update", f"{RUNTIME_B}/registry", "domain://registry.b.ex", **away)

        await score.sends(ra, 1)
        await score.hears(ra, 3)
        for request, answer in ((4, 6), (8, 9), (10, 12)):
            await score.sends(rb, request)
            await score.hears(rb, answer)

        for n in (7, 13):
            notification = score.steps[n]["msg"]
            heard = await ra.hear()
            assert score.reported(heard.body) == notification["body"]
            assert (heard.from_, score.reported(heard.to)) == (
                notification["from"],
                notification["to"],
            )
        golden = score.states("registration")
        assert steps_of(score, world, "registration")[-len(golden) :] == golden
