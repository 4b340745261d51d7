"""A reporter hears who observes its object: each that comes, each that leaves (SYN-23, M-53)."""

import trio

from actors import ObserverJoined, ObserverLeft
from specs.message import Message, MessageType
from tests.support.report_world import Closed, Open, world
from tests.support.runtime.parties import neighbour, parties

READ, UPDATE = MessageType.READ, MessageType.UPDATE


async def follow(thing, seen, *, task_status=trio.TASK_STATUS_IGNORED):
    moves = thing.observer_changes()
    task_status.started()
    async for move in moves:
        seen.append(move)
    seen.append("over")


async def test_each_that_comes_and_each_that_leaves_is_reported_until_the_end(autojump_clock):
    async with world() as w, trio.open_nursery() as nursery:
        room = await w.here.deploy(Open)
        one, two = await w.there.deploy(Closed), await w.here.deploy(Closed)
        seen = []
        async with room.report("comm", {}) as thing:
            await nursery.start(follow, thing, seen)
            async with one.observe(thing.url):
                async with two.observe(thing.url):
                    await trio.sleep(1)
                    assert thing.observers == (one.url, two.url)
                await trio.sleep(1)
                assert thing.observers == (one.url,)
                await thing.expel(one.url)
            await trio.sleep(1)
        await trio.sleep(1)
        assert seen == [
            ObserverJoined(one.url),
            ObserverJoined(two.url),
            ObserverLeft(two.url),
            ObserverLeft(one.url),
            "over",
        ]


async def test_a_hyperty_that_reports_by_itself_knows_its_observers_too(autojump_clock):
    async with world() as w:
        reported = []

        class Room(Open):
            async def started(self):
                self.spawn(self.live)

            async def live(self):
                async with self.report("comm", {}) as self.thing:
                    reported.extend([move async for move in self.thing.observer_changes()])

        rooms = [room := Room()]
        await w.here.deploy(lambda: rooms[0])
        guest = await w.there.deploy(Closed)
        await trio.sleep(1)
        async with guest.observe(room.thing.url):
            await trio.sleep(1)
        await trio.sleep(1)
        assert room.thing.observers == ()
        await room.thing.delete()
        room.thing._participant.end_report(room.thing.url)
        await trio.sleep(1)
        assert reported == [ObserverJoined(guest.url), ObserverLeft(guest.url)]


async def test_missed_reports_are_read(autojump_clock):
    """The mailbox was full, say: the next word shows that one is missing."""
    async with world() as w:
        room, guest = await w.here.deploy(Open), await w.there.deploy(Closed)
        other = await w.there.deploy(Closed)
        async with room.report("comm", {}) as thing:
            observers = thing._observers
            hear, observers.changed = observers.changed, lambda _change: []
            async with guest.observe(thing.url):
                await trio.sleep(1)
                observers.changed = hear
                assert thing.observers == ()
                async with other.observe(thing.url):
                    await trio.sleep(1)
                    assert thing.observers == (guest.url, other.url)


# --- attacks ----------------------------------------------------------------------------------


async def test_reports_of_observers_by_other_components_are_ignored(autojump_clock):
    """M-53, forged: in its own name, or in that of the object."""
    async with parties() as (alice, bob):
        room = alice.member.hyperty
        async with room.report("comm", {}) as thing:
            beside, to = await neighbour(alice, "beside"), f"{thing.url}/observers"
            body = {"value": [bob.url], "operation": "add", "version": 1}
            for outsider in (beside, bob):
                context = outsider.member.hyperty._participant
                for from_ in (context.url, thing.url):
                    number = context.ids.next(context.url)
                    await context.port.post(Message(number, UPDATE, from_, to, body))
            await trio.sleep(1)
            assert thing.observers == ()
            await alice.invite(thing.url, bob)
            await bob.observe(thing.url)
            await trio.sleep(1)
            assert thing.observers == (bob.url,)
