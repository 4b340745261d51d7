"""Each way a message can fail is answered with a code, or counted (MN-25, MN-27, OBS-06).

One row is where a message goes, or how it is sent; reported what a request hears and what is
counted for an event and for an answer that go the same way.
"""

from contextlib import asynccontextmanager

from actors.node.policy_hook import Asker, Policy
from actors.policy.engine import Decision, Ruling
from fsm.registry.node_rights import Observation
from specs.message import Message
from specs.reply_code import DropReason
from tests.support.node.node_peer import MN, RA, RB, RX, SM, open_world

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
