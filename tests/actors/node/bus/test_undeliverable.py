"""Each way a message can fail is answered with a code, or counted (MN-25, MN-27, OBS-06).

One row is where a message goes, or how it is sent; reported what a request hears and what is
counted for an event and for an answer that go the same way.
"""

import json
from contextlib import asynccontextmanager

import pytest
from trio.testing import wait_all_tasks_blocked

from actors.node.policy_hook import Asker, Policy
from actors.policy.engine import Decision, Ruling
from fsm.registry.node_rights import Observation
from specs.limits.protocol import SESSION_IDLE, SESSION_QUEUE
from specs.message import Message
from specs.reply_code import DropReason
from tests.support.node.node_peer import ALLOCATION, MN, RA, RB, RX, SM, open_world

UA = f"{RA}/ua"


class NoSpam(Policy):
    """Denies what says that it is spam."""

    def judge(self, message: Message, asker: Asker) -> Ruling:
        del asker
        if message.body.get("value") == "spam":
            return Ruling(Decision.DENY, "no spam", "spam")
        return Ruling(Decision.PERMIT, "rest")


@asynccontextmanager
async def world_with_a_runtime():
    async with open_world(policy=NoSpam(), observation=Observation.OWNER) as world:
        yield world, await world.peer(RA)


# fmt: off
WAYS = {
    "an address nobody owns":       (UA, "hyperty://a.ex/nobody", {}, 404, DropReason.NO_TARGET),
    "an object nobody owns":        (UA, "comm://a.ex/none/changes", {}, 404, DropReason.NO_TARGET),
    "a runtime without a session":  (UA, f"{RB}/ua", {}, 404, DropReason.NO_TARGET),
    "a domain without a way":       (UA, "hyperty://z.ex/h", {}, 404, DropReason.NO_TARGET),
    "a node of another domain":     (UA, "domain://msg-node.z.ex", {}, 404, DropReason.NO_TARGET),
    "a part the node has not":      (UA, f"{MN}/nothing", {}, 404, DropReason.NO_TARGET),
    "back to where it came from":   (UA, f"{RA}/registry", {}, 404, DropReason.NO_TARGET),
    "a source that is foreign":     (f"{RB}/ua", f"{RA}/ua", {}, 401, DropReason.UNKNOWN_SOURCE),
    "a source that is the node's":  (SM, f"{RA}/ua", {}, 401, DropReason.UNKNOWN_SOURCE),
    "speaking for world_with_a_runtime else":   (UA, f"{MN}/x", {"source": f"{RB}/ua"}, 401,
                                     DropReason.UNKNOWN_SOURCE),
    "in a circle":                  (UA, f"{MN}/x", {"via": [UA, UA]}, None, DropReason.LOOP),
    "over too many hops":           (UA, f"{MN}/x", {"via": [f"{UA}/{n}" for n in range(9)]}, None,
                                     DropReason.LOOP),
    "what policy denies":           (UA, f"{MN}/x", {"value": "spam"}, 403, DropReason.DENIED),
}
# fmt: on


def wire(id_, type_, from_, to, body):
    return json.dumps({"id": id_, "type": type_, "from": from_, "to": to, "body": body}).encode()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_a_request_that_goes_nowhere_is_answered(way, autojump_clock):
    from_, to, body, code, reason = way
    async with world_with_a_runtime() as (world, ra):
        await ra.raw(wire(7, "read", from_, to, body))

        if code is None:
            assert await ra.silence()
            assert world.node.counters.drops == {reason: 1}
        else:
            answer = await ra.hear()
            assert (answer.code, answer.id, answer.from_, answer.to) == (code, 7, to, from_)
            assert answer.body["description"]
            assert not world.node.counters.drops


async def test_a_runtime_whose_session_is_over_is_unreachable(autojump_clock):
    """I-A7, MN-25."""
    async with world_with_a_runtime() as (world, ra):
        rb = await world.peer(RB)
        await rb.control("close")

        assert (await ra.ask("read", UA, f"{RB}/ua")).code == 404


@pytest.mark.parametrize("kind", ["event", "answer"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_an_undeliverable_event_is_counted_once_with_its_reason(way, kind, autojump_clock):
    from_, to, body, _, reason = way
    async with world_with_a_runtime() as (world, ra):
        if kind == "event":
            at = to if to.endswith("/changes") else f"{to}/changes"
            await ra.raw(wire(7, "update", from_, at, body))
        else:
            await ra.raw(wire(7, "response", from_, to, {**body, "code": 200}))

        assert await ra.silence()
        assert world.node.counters.drops == {reason: 1}


@pytest.mark.parametrize("to", [SM, ALLOCATION, "domain://registry.a.ex"])
async def test_an_answer_to_a_part_of_the_node_that_asked_nothing_is_counted(to, autojump_clock):
    async with world_with_a_runtime() as (world, ra):
        await ra.post("response", UA, to, code=200)

        assert await ra.silence()
        assert world.node.counters.drops == {DropReason.UNMATCHED: 1}


async def test_without_a_session_a_request_gets_401_and_the_rest_is_counted(autojump_clock):
    async with world_with_a_runtime() as (world, _):
        outsider = await world.outsider(RB)
        assert (await outsider.ask("read", f"{RB}/ua", f"{MN}/x")).code == 401
        await outsider.post("response", f"{RB}/ua", UA, code=200)
        await outsider.post("update", f"{RB}/ua", f"{RB}/ua/status", value="live")

        assert await outsider.silence()
        assert world.node.counters.drops == {DropReason.SESSION_GONE: 2}


async def test_an_event_that_only_its_sender_or_held_paths_would_get_is_counted(autojump_clock):
    async with world_with_a_runtime() as (world, ra):
        (obj,) = await ra.allocate("comm")
        rx = await world.peer(RX)
        for peer in (ra, rx):
            path = [f"{obj}/changes"]
            assert (
                await peer.ask("subscribe", f"{peer.runtime}/sm", SM, resources=path)
            ).code == 200
        await ra.post("update", obj, f"{obj}/changes", version=2)

        assert await rx.silence()
        assert world.node.counters.drops == {DropReason.NO_TARGET: 1}


async def test_messages_for_a_detached_owner_overflow_with_503_or_a_count(autojump_clock):
    async with world_with_a_runtime() as (world, ra):
        rb = await world.peer(RB)
        await rb.link.aclose()
        await wait_all_tasks_blocked()
        for _ in range(SESSION_QUEUE):
            await ra.post("update", UA, f"{RB}/ua/x")
        await ra.post("response", UA, f"{RB}/ua", code=200)
        answer = await ra.ask("read", UA, f"{RB}/ua")

        assert (answer.code, answer.body["retryAfter"]) == (503, 1.0)
        assert world.node.counters.drops == {DropReason.OVERFLOW: 1}


async def test_messages_for_an_owner_that_did_not_return_are_reported_then(autojump_clock):
    async with world_with_a_runtime() as (world, ra):
        rb = await world.peer(RB)
        await rb.link.aclose()
        await wait_all_tasks_blocked()
        request = await ra.post("read", UA, f"{RB}/ua")
        await ra.post("response", UA, f"{RB}/ua", code=200)
        assert await ra.silence(SESSION_IDLE - 1)

        answer = await ra.hear()
        assert (answer.id, answer.code) == (request.id, 404)
        assert world.node.counters.drops == {DropReason.SESSION_GONE: 1}


async def test_an_answer_to_a_requester_that_has_left_is_counted(autojump_clock):
    async with world_with_a_runtime() as (world, ra):
        rb = await world.peer(RB)
        request = await rb.post("read", f"{RB}/ua", UA)
        assert await ra.hear() == request
        await rb.control("close")
        await ra.post_answer(request, 200)

        assert await ra.silence()
        assert world.node.counters.drops == {DropReason.NO_TARGET: 1}


async def test_the_address_of_another_domain_that_another_session_uses_gets_401(autojump_clock):
    """MN-13."""
    async with world_with_a_runtime() as (world, ra):
        rx = await world.peer(RX)
        shared = "hyperty://b.ex/h"
        assert (await rx.ask("read", shared, f"{MN}/x")).code == 404

        assert (await ra.ask("read", shared, f"{MN}/x")).code == 401
        await ra.post("update", shared, f"{shared}/changes", value=1)
        assert await rx.silence()
        assert world.node.counters.drops == {DropReason.UNKNOWN_SOURCE: 1}


@pytest.mark.parametrize("text", [b"nonsense", b'{"id":1}'])
async def test_an_invalid_message_is_counted(text, autojump_clock):
    async with world_with_a_runtime() as (world, ra):
        await ra.raw(text)

        assert await ra.silence()
        assert world.node.counters.drops == {DropReason.MALFORMED: 1}


async def test_what_takes_the_place_of_a_malformed_answer_comes_from_who_may_answer(autojump_clock):
    async with world_with_a_runtime() as (world, ra):
        await ra.raw(b'{"id":1,"type":"response","from":"x://a.ex/1","to":"x://a.ex/2"}')

        assert await ra.silence()
        drops = {DropReason.MALFORMED: 1, DropReason.UNKNOWN_SOURCE: 1}
        assert world.node.counters.drops == drops


async def test_every_reason_a_node_knows_is_shown_here():
    """What only a runtime can say is left out: a node has no transactions, stages or links."""
    runtimes = {
        DropReason.LATE_RESPONSE, DropReason.FORGED_STATUS, DropReason.UNSUBSCRIBED,
        DropReason.DUPLICATE, DropReason.CRASHED, DropReason.OVERTAKEN,
    }  # fmt: skip
    shown = {row[-1] for row in WAYS.values()} | {
        DropReason.UNMATCHED, DropReason.SESSION_GONE, DropReason.OVERFLOW, DropReason.MALFORMED,
    }  # fmt: skip
    assert shown | runtimes == set(DropReason)
