"""A reporter shuts observers out, whether they react or not (SYN-20, SYN-21, M-45)."""

import pytest
import trio

import actors
from specs.message import MessageType
from tests.support.report_world import Closed, met, paths, world
from tests.support.runtime.parties import heard, neighbour, parties
from transports.link import Kind

UNSUBSCRIBE, READ = MessageType.UNSUBSCRIBE, MessageType.READ


async def test_an_expelled_observer_is_notified_by_whom_and_leaves(autojump_clock):
    async with met() as m, m.guest.observe(m.thing.url) as copy:
        await trio.sleep(1)
        assert m.thing.observers == (m.guest.url,)
        await m.thing.expel(m.guest.url)
        assert m.thing.observers == ()
        with pytest.raises(actors.ObjectError, match="its reporter has expelled") as gone:
            await copy.wait_for(lambda value: value["n"] == 1)
        assert gone.value.code == 403
        assert copy.is_gone
        await m.thing.set("n", 1)
        await trio.sleep(1)
        assert copy.value["n"] == 0
        assert paths(m.w)[-1] == "removed"
        moves = m.w.steps("object_subscription", "ra")
        assert moves[-1] == ("unsubscribe", "removed")


async def test_an_expelled_observer_may_ask_again_and_is_decided_on_anew(autojump_clock):
    async with met() as m:
        for number in range(3):
            async with m.guest.observe(m.thing.url) as copy:
                assert copy.value["n"] == number
                await m.thing.expel(m.guest.url)
                await m.thing.set("n", number + 1)
        async with m.guest.observe(m.thing.url) as copy:
            await m.thing.set("n", 99)
            await copy.wait_for(lambda value: value["n"] == 99)


async def test_an_expelled_observer_loses_its_allowance_and_may_not_read(autojump_clock):
    async with world() as w:
        room, guest = await w.here.deploy(Closed), await w.there.deploy(Closed)
        async with room.report("comm", {}, allow=(guest.url,)) as thing:
            assert (await guest.ask(thing.url, READ, {})).code == 200
            await thing.expel(guest.url)
            assert (await guest.ask(thing.url, READ, {})).code == 401
            with pytest.raises(actors.ObjectError, match="is not invited"):
                async with guest.observe(thing.url):
                    pytest.fail("it was let in")


async def test_a_public_object_asks_about_an_expelled_observer(autojump_clock):
    async with world() as w:
        room, guest = await w.here.deploy(Closed), await w.there.deploy(Closed)
        other = await w.there.deploy(Closed)
        async with room.report("comm", {}, public=True) as thing:
            async with guest.observe(thing.url), other.observe(thing.url) as copy:
                await thing.expel(guest.url)
                await thing.set("n", 1)
                await copy.wait_for(lambda value: value.get("n") == 1)
            with pytest.raises(actors.ObjectError):
                async with guest.observe(thing.url):
                    pytest.fail("it was let in")
            async with other.observe(thing.url):
                pass


async def test_a_neighbour_in_the_runtime_of_an_expelled_observer_observes_on(autojump_clock):
    async with met() as m:
        other = await m.w.there.deploy(Closed)
        async with m.guest.observe(m.thing.url) as copy, other.observe(m.thing.url) as beside:
            await m.thing.expel(m.guest.url)
            await m.thing.set("n", 1)
            await beside.wait_for(lambda value: value["n"] == 1)
            assert copy.value["n"] == 0
            assert m.thing.observers == (other.url,)


async def test_an_observer_beside_the_reporter_is_expelled_likewise(autojump_clock):
    async with met() as m:
        beside = await m.w.here.deploy(Closed)
        async with beside.observe(m.thing.url) as copy, m.guest.observe(m.thing.url) as other:
            await m.thing.expel(beside.url)
            await m.thing.set("n", 1)
            await other.wait_for(lambda value: value["n"] == 1)
            assert (copy.value["n"], copy.is_gone) == (0, True)


async def test_an_unregistered_observer_can_be_expelled_as_well(autojump_clock):
    async with met() as m:
        await m.thing.expel("hyperty://a.ex/nobody")
        assert m.thing.observers == ()


# --- who does not react -----------------------------------------------------------------------


async def expel(reporter, url, observer):
    """Have an observer shut out, and say nothing to itself."""
    return await reporter.ask(UNSUBSCRIBE, resource=url, observer=observer.url)


async def test_one_that_does_not_react_hears_nothing_more_all_the_same(autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create()
        await bob.observe(url)
        await alice.change(url, "t", 1)
        assert (await expel(alice, url, bob)).code == 200
        await alice.change(url, "t", 2)
        await trio.sleep(300)
        assert set(heard(bob)) == {2}
        assert (await bob.ask(READ, url)).code == 401


async def test_nor_the_changes_of_a_neighbour_in_the_same_runtime(autojump_clock):
    async with parties() as (alice, bob):
        carol = await neighbour(bob, "carol")
        url = await alice.create()
        for observer in (bob, carol):
            await observer.observe(url)
        await expel(alice, url, bob)
        await trio.sleep(1)  # until the sync manager of both has been notified
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        assert (heard(bob), heard(carol)) == ([], [2])
        await expel(alice, url, carol)
        await trio.sleep(1)
        await alice.change(url, "t", 2)
        await trio.sleep(300)
        assert (heard(bob), set(heard(carol))) == ([], {2})


async def test_a_runtime_that_does_as_if_it_heard_nothing_is_cut_off_by_the_node(autojump_clock):
    """Its sync manager is not notified, and another runtime is still published to."""
    async with parties("carol") as (alice, bob, carol):
        url = await alice.create()
        for observer in (bob, carol):
            await observer.observe(url)
        wire = bob.domain.network.open_wires(Kind.WEBSOCKET)[1]
        wire.acceptor.pattern = lambda _number, frame: () if b"observer" in frame else (0.0,)
        await expel(alice, url, bob)
        await trio.sleep(1)  # until the sync manager of both has been notified
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        assert (heard(bob), heard(carol)) == ([], [2])


async def test_a_repeated_request_before_an_expulsion_arrives_ends_alike_at_both_ends(
    autojump_clock,
):
    """Its new request and the word that it is out meet on their way."""
    async with parties() as (alice, bob):
        url = await alice.create()
        await bob.observe(url)
        codes = []

        async def again():
            codes.append((await bob.observe(url)).code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(again)
            await expel(alice, url, bob)
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        listed = (await alice.ask(READ, f"{url}/observers")).body["value"]["observers"]
        assert codes == [200]
        assert bool(heard(bob)) == (bob.url in listed)
