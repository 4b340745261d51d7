"""Nobody is delivered what an owner did not consent to (S3, T4, SC-30, M-37..M-45, I-M5..I-M7)."""

from contextlib import asynccontextmanager

from fsm.registry.node_rights import Observation
from tests.support.node.node_peer import MN, RA, RB, SM, open_world

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
