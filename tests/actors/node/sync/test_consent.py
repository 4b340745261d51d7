"""Nobody is delivered what an owner did not consent to (S3, T4, SC-30, M-37..M-45, I-M5..I-M7)."""

from contextlib import asynccontextmanager

import pytest
from trio.testing import wait_all_tasks_blocked

from fsm.registry.node_rights import Observation
from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import Message, MessageType
from tests.support.node.legacy_peer import OLD, plain_peer, session_peer
from tests.support.node.node_peer import MN, RA, RB, RX, SM, open_world
from transports.codec import encode

HB, HB2 = f"{RB}/hb", f"{RB}/hb2"
MANAGER = f"{RB}/sm"


@asynccontextmanager
async def watched(**config):
    """An object of one runtime, and another runtime that has set its path on it."""
    async with open_world(observation=Observation.OWNER, **config) as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        (obj,) = await ra.allocate("comm")
        answer = await rb.ask("subscribe", MANAGER, SM, resources=[f"{obj}/changes"], source=RB)
        assert answer.code == 200
        yield world, ra, rb, obj


async def answered(parties, code=200, *, type_="subscribe", source=HB):
    """Let an observer ask, and its owner answer."""
    owner, observer, obj = parties
    to = obj if type_ == "read" else f"{obj}/subscription"
    asked = await observer.post(type_, source if type_ == "read" else MANAGER, to, source=source)
    heard = await owner.hear()
    assert (heard.type, heard.to) == (type_, to)
    given = {} if type_ == "unsubscribe" or code >= 300 else {"value": {"version": 1}}
    await owner.post_answer(heard, code, **given)
    assert (await observer.hear()).id == asked.id


async def hears(owner, observer, obj, part="changes"):
    """Say whether an observer is delivered what its owner publishes."""
    await owner.post("update", obj, f"{obj}/{part}", version=2)
    await wait_all_tasks_blocked()
    return not await observer.silence() and bool(observer.heard.pop())


async def test_the_path_is_set_and_nothing_comes_by_it(autojump_clock):
    async with watched() as (world, ra, rb, obj):
        assert not await hears(ra, rb, obj)
        assert [view.paths for view in await world.node.sessions()] == [(), (f"{obj}/changes",)]
        assert world.steps("node_subscription") == [(f"{obj}/changes|{RB}", "[*]", "held")]


@pytest.mark.parametrize("type_", ["subscribe", "read"])
async def test_with_the_owners_yes_it_comes(type_, autojump_clock):
    async with watched() as (world, ra, rb, obj):
        await answered((ra, rb, obj), type_=type_)

        assert await hears(ra, rb, obj)
        assert [new for *_, new in world.steps("node_subscription")] == ["held", "active"]


@pytest.mark.parametrize("part", ["changes", "children/chat", "observers"])
async def test_every_part_that_is_observed_waits_for_it(part, autojump_clock):
    async with watched() as (_, ra, rb, obj):
        await rb.ask("subscribe", MANAGER, SM, resources=[f"{obj}/{part}"])
        assert not await hears(ra, rb, obj, part)
        await answered((ra, rb, obj))

        assert await hears(ra, rb, obj, part)


async def test_a_path_that_is_set_after_the_yes_is_active_at_once(autojump_clock):
    async with watched() as (_, ra, rb, obj):
        await answered((ra, rb, obj))
        await rb.ask("subscribe", MANAGER, SM, resources=[f"{obj}/children/chat"])

        assert await hears(ra, rb, obj, "children/chat")


async def test_a_refusal_removes_the_path_and_a_later_yes_lets_in_again(autojump_clock):
    async with watched() as (world, ra, rb, obj):
        await answered((ra, rb, obj), 403)
        assert [view.paths for view in await world.node.sessions()] == [(), ()]

        await rb.ask("subscribe", MANAGER, SM, resources=[f"{obj}/changes"])
        assert not await hears(ra, rb, obj)
        await answered((ra, rb, obj))
        assert await hears(ra, rb, obj)


async def test_an_observer_that_left_receives_nothing_although_its_path_remains(autojump_clock):
    """M-43 withdraws; and the answer to it is no consent."""
    async with watched() as (_, ra, rb, obj):
        await answered((ra, rb, obj))
        await answered((ra, rb, obj), type_="unsubscribe")

        assert not await hears(ra, rb, obj)


async def test_an_expelled_observer_receives_no_more_changes(autojump_clock):
    async with watched() as (_, ra, rb, obj):
        await answered((ra, rb, obj))
        await ra.post("unsubscribe", f"{RA}/ha", HB, resource=obj)
        assert (await rb.hear()).type == "unsubscribe"

        assert not await hears(ra, rb, obj)


@pytest.mark.parametrize("type_", ["unsubscribe", "refused"])
async def test_a_leaving_or_refused_neighbour_affects_no_other_observer(type_, autojump_clock):
    async with watched() as (_, ra, rb, obj):
        await answered((ra, rb, obj))
        if type_ == "refused":
            await answered((ra, rb, obj), 403, source=HB2)
        else:
            await answered((ra, rb, obj), source=HB2)
            await answered((ra, rb, obj), type_="unsubscribe", source=HB2)

        assert await hears(ra, rb, obj)


async def test_only_the_owner_can_consent(autojump_clock):
    async with watched() as (world, ra, rb, obj):
        rx = await world.peer(RX)
        asked = await rb.post("subscribe", MANAGER, f"{obj}/subscription", source=HB)
        await ra.hear()
        for forger in (rx, rb):
            await forger.post_answer(asked, 200, value={})
        await wait_all_tasks_blocked()

        assert not await hears(ra, rb, obj)


async def test_a_yes_that_comes_too_late_is_none(autojump_clock):
    async with watched() as (_, ra, rb, obj):
        await rb.post("subscribe", MANAGER, f"{obj}/subscription", source=HB)
        asked = await ra.hear()
        assert await rb.silence(REPLY_TIMEOUT + 1)
        await ra.post_answer(asked, 200, value={})
        await rb.hear()

        assert not await hears(ra, rb, obj)


@pytest.mark.parametrize("first", ["unsubscribe", "subscribe"])
async def test_an_answer_to_an_unsubscription_of_the_same_id_is_no_consent(first, autojump_clock):
    """An owner's runtime answers the first of two requests that share an id, and only that."""
    async with watched() as (_, ra, rb, obj):
        to, types = f"{obj}/subscription", sorted(["subscribe", "unsubscribe"])
        for type_ in types if first == "subscribe" else types[::-1]:
            await rb.raw(encode(Message(77, MessageType(type_), MANAGER, to, {"source": HB})))
        asked = await ra.hear()
        assert asked.type == first
        await ra.post_answer(asked, 200)
        await rb.hear()

        assert not await hears(ra, rb, obj)


async def test_consent_for_one_runtime_is_no_consent_for_another(autojump_clock):
    async with watched() as (world, ra, rb, obj):
        rx = await world.peer(RX)
        await rx.ask("subscribe", f"{RX}/sm", SM, resources=[f"{obj}/changes"])
        await answered((ra, rb, obj))

        assert await hears(ra, rb, obj)
        assert await rx.silence()


async def test_consent_goes_with_the_session_that_was_granted_it(autojump_clock):
    async with watched() as (world, ra, rb, obj):
        await answered((ra, rb, obj))
        await rb.control("close")
        again = await world.peer(RB)
        await again.ask("subscribe", MANAGER, SM, resources=[f"{obj}/changes"])

        assert not await hears(ra, again, obj)


async def test_a_yes_to_a_session_that_is_over_is_none_for_the_next(autojump_clock):
    async with watched() as (world, ra, rb, obj):
        await rb.post("subscribe", MANAGER, f"{obj}/subscription", source=HB)
        asked = await ra.hear()
        await rb.control("close")
        again = await world.peer(RB)
        await again.ask("subscribe", MANAGER, SM, resources=[f"{obj}/changes"])
        await ra.post_answer(asked, 200, value={"version": 1})
        await again.silence()
        again.heard.clear()

        assert not await hears(ra, again, obj)


async def test_a_lost_link_takes_no_consent_along(autojump_clock):
    """I-M3: what comes meanwhile waits."""
    async with watched() as (world, ra, rb, obj):
        await answered((ra, rb, obj))
        await rb.link.aclose()
        await wait_all_tasks_blocked()
        update = await ra.post("update", obj, f"{obj}/changes", version=2)
        await ra.silence()
        back = await world.outsider(RB)
        await back.control("re-open", runtimeURL=RB, token=rb.token)

        assert await back.hear() == update


async def test_the_registration_of_an_object_is_public(autojump_clock):
    async with watched() as (world, _, rb, obj):
        await rb.ask("subscribe", MANAGER, SM, resources=[f"{obj}/registration"])

        assert world.steps("node_subscription")[-1][-1] == "active"


@pytest.mark.parametrize("peer", [plain_peer, session_peer])
async def test_objects_of_upstreams_peers_are_open(peer, autojump_clock):
    """They know no consent; a path that waited for nobody's object is served, too."""
    async with open_world(observation=Observation.OWNER, allow_legacy=True) as world:
        old, rb = await peer(world), await world.peer(RB)
        obj = "comm://a.ex/made-by-old"
        await rb.ask("subscribe", MANAGER, SM, resources=[f"{obj}/changes"])
        assert world.steps("node_subscription")[-1][-1] == "held"
        claim = {"resources": [obj, f"{obj}/subscription"]}
        assert (await old.ask(id=1, type="subscribe", from_=f"{OLD}/sm", to=SM, body=claim))[
            "body"
        ]["code"] == 200
        await rb.ask("subscribe", MANAGER, SM, resources=[f"{obj}/children/chat"])

        for part in ("changes", "children/chat"):
            await old.say(
                id=2, type="update", from_=obj, to=f"{obj}/{part}", body={"value": part}
            )  # fmt: skip
            assert (await rb.hear()).body["value"] == part


async def test_an_upstream_peer_needs_consent_for_ours(autojump_clock):
    async with open_world(observation=Observation.OWNER, allow_legacy=True) as world:
        ra, old = await world.peer(RA), await plain_peer(world)
        (obj,) = await ra.allocate("comm")
        path = {"resources": [f"{obj}/changes"]}
        await old.ask(id=1, type="subscribe", from_=f"{OLD}/sm", to=SM, body=path)
        await ra.post("update", obj, f"{obj}/changes", version=2)
        assert await old.silence()

        await old.say(
            id=2, type="subscribe", from_=f"{OLD}/sm", to=f"{obj}/subscription",
            body={"source": f"{OLD}/hb"},
        )  # fmt: skip
        await ra.post_answer(await ra.hear(), 200, value={})
        assert (await old.hear())["body"]["code"] == 200
        await ra.post("update", obj, f"{obj}/changes", version=3)
        assert (await old.hear())["body"]["version"] == 3


async def test_these_are_all_paths_of_a_held_path(autojump_clock):
    async with watched() as (world, ra, rb, obj):
        changes, chat = f"{obj}/changes", f"{obj}/children/chat"
        await answered((ra, rb, obj))
        await answered((ra, rb, obj), type_="unsubscribe")
        await answered((ra, rb, obj), 403)
        await rb.ask("subscribe", MANAGER, SM, resources=[changes, chat])
        await rb.ask("unsubscribe", MANAGER, SM, resources=[chat])
        await ra.ask("delete", f"{RA}/ua", f"{MN}/address-allocation", resource=obj)
        await rb.ask("subscribe", MANAGER, SM, resources=["comm://a.ex/later/changes"])
        await rb.control("close")
        await ra.silence()

        path, other = f"{changes}|{RB}", f"{chat}|{RB}"
        later = f"comm://a.ex/later/changes|{RB}"
        assert world.steps("node_subscription") == [
            (path, "[*]", "held"), (path, "held", "active"), (path, "active", "held"),
            (path, "held", "removed"), (path, "[*]", "held"), (other, "[*]", "held"),
            (other, "held", "removed"), (path, "held", "removed"),
            (later, "[*]", "held"), (later, "held", "removed"),
        ]  # fmt: skip
