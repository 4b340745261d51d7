"""Who is nobody's reporter expels nobody, lets nobody in and speaks for nobody (SYN-21, M-45)."""

import pytest
import trio

import actors
from specs.message import MessageType
from tests.support.report_world import Closed, met, paths, world
from tests.support.runtime.parties import parties

UNSUBSCRIBE, READ = MessageType.UNSUBSCRIBE, MessageType.READ


async def test_an_outsider_cannot_expel_an_observer(autojump_clock):
    async with met() as m, m.guest.observe(m.thing.url) as copy:
        beside, far = await m.w.here.deploy(Closed), await m.w.there.deploy(Closed)
        sm = m.w.here.url + "/sm"
        reported = {"resource": m.thing.url, "observer": m.guest.url}
        for outsider in (beside, far, m.guest):
            assert (await outsider.ask(sm, UNSUBSCRIBE, reported)).code == 403
        await m.thing.set("n", 1)
        await copy.wait_for(lambda value: value["n"] == 1)


async def test_an_outsider_cannot_admit_an_observer(autojump_clock):
    async with world() as w:
        room, guest = await w.here.deploy(Closed), await w.there.deploy(Closed)
        beside = await w.here.deploy(Closed)
        async with room.report("comm", {}) as thing:
            sm = w.here.url + "/sm"
            for outsider in (guest, beside):
                reported = {"resource": thing.url, "observer": outsider.url}
                assert (await outsider.ask(sm, MessageType.CREATE, reported)).code == 403
                assert (await outsider.ask(thing.url, READ, {})).code == 401
                with pytest.raises(actors.ObjectError, match="is not invited"):
                    async with outsider.observe(thing.url):
                        pytest.fail("it was let in")


async def test_the_word_that_one_is_expelled_is_its_reporters(autojump_clock):
    """M-45, forged."""
    async with met() as m, m.guest.observe(m.thing.url) as copy:
        beside, far = await m.w.here.deploy(Closed), await m.w.there.deploy(Closed)
        for outsider in (beside, far):
            answer = await outsider.ask(m.guest.url, UNSUBSCRIBE, {"resource": m.thing.url})
            assert answer.code == 403
            for odd in ({"resource": []}, {"resource": {}}, {}, {"resource": "no://such/thing"}):
                assert (await outsider.ask(m.guest.url, UNSUBSCRIBE, odd)).code == 400
        await m.thing.set("n", 1)
        await copy.wait_for(lambda value: value["n"] == 1)


async def test_the_reporters_own_word_is_enough(autojump_clock):
    """SYN-20: whoever hears it unsubscribes, also if nothing was done at the object's end."""
    async with met() as m, m.guest.observe(m.thing.url) as copy:
        answer = await m.room.ask(m.guest.url, UNSUBSCRIBE, {"resource": m.thing.url})
        assert answer.code == 200
        await trio.sleep(1)
        assert copy.is_gone
        assert m.thing.observers == ()
        assert paths(m.w)[-1] == "removed"


async def test_a_report_by_another_sync_manager_names_the_object_as_sender(autojump_clock):
    async with met() as m, m.guest.observe(m.thing.url) as copy:
        sm = m.w.there.url + "/sm"
        reported = {"resource": m.thing.url, "observer": m.guest.url}
        for outsider in (m.room, await m.w.there.deploy(Closed)):
            assert (await outsider.ask(sm, UNSUBSCRIBE, reported)).code in {403, 404}
        await m.thing.set("n", 1)
        await copy.wait_for(lambda value: value["n"] == 1)


async def test_a_peer_cannot_subscribe_or_unsubscribe_another_observer(autojump_clock):
    async with met() as m, m.guest.observe(m.thing.url) as copy:
        beside, far = await m.w.here.deploy(Closed), await m.w.there.deploy(Closed)
        there = f"{m.thing.url}/subscription"
        for verb in (MessageType.SUBSCRIBE, UNSUBSCRIBE):
            for outsider in (beside, far):
                for victim in (m.guest, m.room):
                    answer = await outsider.ask(there, verb, {"source": victim.url})
                    # A node does not even listen to whoever speaks for another runtime.
                    assert answer.code == (403 if outsider is beside or victim is m.guest else 401)
        assert m.thing.observers == (m.guest.url,)
        await m.thing.set("n", 1)
        await copy.wait_for(lambda value: value["n"] == 1)


async def test_requests_for_one_decision_are_bounded(autojump_clock):
    """One observer asks again and again while the reporter decides."""
    async with parties() as (alice, bob):
        url = await alice.create()
        decide = trio.Event()

        async def on_request(_message):
            await decide.wait()

        alice.member.hyperty.on_request = on_request
        codes = []

        async def ask():
            codes.append((await bob.observe(url)).code)

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(ask)
            await trio.sleep(1)
            assert codes == [413] * 4
            decide.set()
        assert sorted(codes) == [200] * 16 + [413] * 4
