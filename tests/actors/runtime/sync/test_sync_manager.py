"""The sync manager between whole runtimes: create, invite, observe, change, delete (SYN-01..22)."""

from functools import partial

import trio

from specs.message import MessageType
from specs.trace import Op
from tests.support.runtime.parties import parties


async def test_an_invited_observer_gets_the_object_and_then_its_changes_in_order(autojump_clock):
    """SYN-13: as they were published."""
    async with parties() as (alice, bob):
        url = await alice.create(t=0)
        assert (await alice.invite(url, bob)).code == 200
        await alice.change(url, "t", 1)
        snapshot = (await bob.observe(url)).body["value"]
        assert (snapshot["version"], snapshot["data"]) == (2, {"t": 1})
        for number in (2, 3, 4):
            await alice.change(url, "t", number)
        await trio.sleep(1)
        reported = [
            (each.body["version"], each.body["value"]) for each in bob.member.hyperty.events
        ]
        assert reported == [(3, 2), (4, 3), (5, 4)]


async def test_the_lists_of_children_are_reported_before_the_object_comes(autojump_clock):
    """SYN-07, C-51: so that nothing is missed that is created meanwhile."""
    async with parties() as (alice, bob):
        url = await alice.create()
        assert (await alice.invite(url, bob)).code == 200
        assert (await bob.observe(url)).code == 200
        manager = f"{bob.member.runtime.url}/sm"
        codes = [
            fact.code
            for fact in bob.member.facts(Op.CALLBACK)
            if (fact.from_, fact.to) == (manager, bob.url)
        ]
    assert codes == [100, 200]


async def test_observers_read_and_outsiders_do_not(autojump_clock):
    """SYN-18, SYN-19."""
    async with parties() as (alice, bob):
        url = await alice.create(t=1)
        assert (await bob.ask(MessageType.READ, url)).code == 401
        await bob.observe(url)
        assert (await bob.ask(MessageType.READ, url)).body["value"]["data"] == {"t": 1}


async def test_a_deleted_attribute_is_deleted_for_all_observers(autojump_clock):
    """MSG-13, M-46: by its reporter, as an ordered change; the object stays."""
    async with parties() as (alice, bob):
        url = await alice.create(t=1, u=2)
        await bob.observe(url)
        gone = partial(alice.ask, MessageType.DELETE, resource=url, attribute="t")
        assert (await gone()).body == {"code": 200, "version": 2}
        assert (await gone()).body == {"code": 200}
        assert (await bob.ask(MessageType.READ, url)).body["value"]["data"] == {"u": 2}
        await trio.sleep(1)
        (event,) = bob.member.hyperty.events
        assert (event.body["version"], event.body["attribute"]) == (2, "t")
        assert "value" not in event.body
