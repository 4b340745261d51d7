"""An observer that left and observes again keeps its new subscription (M-36, M-42, SYN-20)."""

import trio

from actors.runtime.p2p.link import P2PLink
from specs.message import MessageType
from tests.actors.runtime.sync.observer.test_consent import linked
from tests.support.runtime.domain import P2P_PLACES
from tests.support.runtime.parties import heard
from transports.link import Kind

UNSUBSCRIBE = MessageType.UNSUBSCRIBE


async def test_a_leave_without_an_answer_by_the_link_takes_no_newer_subscription_back(
    monkeypatch, autojump_clock
):
    """The leave is repeated by the node only while its observer is away."""
    send, lost = P2PLink.send, []

    def losing(link, message):
        if lost and message.is_response and message.from_ == lost[0]:
            lost.append(message)
            return True
        return send(link, message)

    monkeypatch.setattr(P2PLink, "send", losing)
    async with linked() as (domain, alice, bob):
        url = await alice.create(t=1)
        assert (await bob.observe(url)).code == 200
        await trio.sleep(2)
        lost.append(f"{url}/subscription")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: bob.ask(UNSUBSCRIBE, resource=url))
            await trio.sleep(1)
            assert len(lost) == 2
            for place in P2P_PLACES:
                domain.network.refuse(place)
            domain.cut_links(Kind.TCP)
            await trio.sleep(1)
            assert (await bob.observe(url)).code == 200
        await trio.sleep(30)
        await alice.change(url, "t", 2)
        await trio.sleep(1)

        assert heard(bob) == [2]
