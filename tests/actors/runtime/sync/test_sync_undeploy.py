"""What a hyperty reports and observes goes with it, while its runtime stays (SYN-20, SYN-22)."""

import trio

from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import Message, MessageType
from specs.trace import Kind, Op
from tests.support.runtime.parties import SCHEMA, heard, moves, neighbour, parties, silent, slow

SUBSCRIPTION, INVITATION = "object_subscription", "invitation"


async def undeploy(party):
    await party.member.runtime.undeploy(party.url)


def node_knows(party, url):
    """Whether the node still has the address of an object."""
    states = [
        fact.new
        for fact in party.domain.node_tracer.facts
        if fact.machine == "address" and fact.key == url
    ]
    return states[-1:] == ["allocated"]


async def test_the_objects_of_a_hyperty_that_is_undeployed_are_deleted(autojump_clock):
    async with parties() as (alice, bob):
        carol = await neighbour(alice, "carol")
        url, other = await carol.create(), await alice.create()
        await bob.observe(url)
        await undeploy(carol)
        assert moves(alice, SUBSCRIPTION)[-1] == ("object-deleted", "removed")
        assert [event.type for event in bob.member.hyperty.events] == [MessageType.DELETE]
        assert (node_knows(alice, url), node_knows(alice, other)) == (False, True)
        assert (await bob.observe(url)).code == 404
        assert (await bob.observe(other)).code == 200


async def test_an_undeployed_hyperty_stops_observing(autojump_clock):
    async with parties() as (alice, bob):
        carol = await neighbour(bob, "carol")
        url = await alice.create()
        for observer in (bob, carol):
            await observer.observe(url)
        await undeploy(carol)
        assert moves(alice, SUBSCRIPTION)[-1] == ("unsubscribe", "removed")
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        assert (heard(bob), heard(carol)) == ([2], [])


async def test_the_invitations_of_a_hyperty_that_is_undeployed_end(autojump_clock):
    async with parties() as (alice, bob):
        carol = await neighbour(alice, "carol")
        url = await carol.create()
        slow(bob)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(carol.invite, url, bob)
            await trio.sleep(1)
            await undeploy(carol)
            assert moves(alice, INVITATION)[-1] == ("object-deleted", "refused")
            nursery.cancel_scope.cancel()


async def test_an_open_decision_of_an_undeployed_hyperty_is_reported(
    autojump_clock,
):
    async with parties() as (alice, bob):
        carol = await neighbour(alice, "carol")
        url = await carol.create()
        slow(carol)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bob.observe, url)
            await trio.sleep(1)
            await undeploy(carol)
            assert moves(alice, SUBSCRIPTION)[-1] == ("refuse", "refused")


async def post(party, kind, **body):
    """Say something to the own sync manager, and do not wait."""
    hyperty = party.member.hyperty
    number = hyperty._participant.ids.next(party.url)
    await hyperty._participant.port.post(Message(number, kind, party.url, party.manager, body))


async def test_an_unfinished_report_of_an_undeployed_hyperty_is_undone(autojump_clock):
    async with parties() as (alice, bob):
        carol, observed = await neighbour(alice, "carol"), await bob.create()
        value = {"reporter": carol.url, "runtime": alice.member.runtime.url, "data": {}}
        await post(carol, MessageType.CREATE, schema=SCHEMA, value=value)
        await post(carol, MessageType.SUBSCRIBE, resource=observed)
        await undeploy(carol)
        await trio.sleep(1)
        (created,) = {fact.key for fact in alice.member.facts(Op.WRITE, Kind.OBJ)}
        assert not node_knows(alice, created)
        assert [new for _, new in moves(bob, SUBSCRIPTION)][-1] in {"removed", "refused"}


async def test_an_unresponsive_observer_delays_no_other_observer(autojump_clock):
    async with parties() as (alice, bob):
        carol = await neighbour(alice, "carol")
        await bob.observe(await carol.create())
        silent(bob)
        begun = trio.current_time()
        await undeploy(carol)
        assert trio.current_time() - begun < 2 * GOODBYE_TIMEOUT
