"""Several observers of one object, in one runtime and in several (SYN-20, SYN-22, I-D7)."""

import trio

from actors.runtime.hyperty import Refused
from specs.message import MessageType
from specs.reply_code import Code
from specs.trace import Kind, Op
from tests.support.parties import heard, moves, neighbour, parties


async def test_of_two_observers_in_one_runtime_the_one_that_left_hears_nothing_more(autojump_clock):
    async with parties() as (alice, bob):
        carol = await neighbour(bob, "carol")
        url = await alice.create()
        for observer in (bob, carol):
            await observer.observe(url)
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        assert (await bob.ask(MessageType.UNSUBSCRIBE, resource=url)).code == 200
        await alice.change(url, "t", 2)
        await trio.sleep(1)
        assert (heard(bob), heard(carol)) == ([2], [2, 3])


async def test_who_left_and_came_back_hears_the_changes_again(autojump_clock):
    async with parties() as (alice, bob):
        carol = await neighbour(bob, "carol")
        url = await alice.create()
        for observer in (bob, carol):
            await observer.observe(url)
        await bob.ask(MessageType.UNSUBSCRIBE, resource=url)
        await bob.observe(url)
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        assert heard(bob) == heard(carol) == [2]


async def test_who_was_refused_hears_nothing_of_what_its_neighbour_observes(autojump_clock):
    async with parties() as (alice, bob):
        carol = await neighbour(bob, "carol")
        url = await alice.create()
        await alice.invite(url, bob)
        await bob.observe(url)
        alice.member.hyperty.on_request = refuse
        assert (await carol.observe(url)).code == 403
        await alice.change(url, "t", 1)
        await trio.sleep(1)
        assert (heard(bob), heard(carol)) == ([2], [])


async def refuse(_message):
    raise Refused(Code.FORBIDDEN, "no")


async def test_an_observer_is_told_of_the_end_and_answers_nothing_for_its_sync_manager(
    autojump_clock,
):
    async with parties() as (alice, bob):
        url = await alice.create()
        await bob.observe(url)
        await alice.ask(MessageType.DELETE, resource=url)
        (told,) = bob.member.hyperty.events
        assert (told.type, told.from_) == (MessageType.DELETE, f"{url}/subscription")
        assert bob.member.hyperty.heard == []
        assert bob.member.facts(Op.DENY) == []
