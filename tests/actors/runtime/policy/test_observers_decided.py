"""Who may observe and read: allowed, asked about, let in by everybody's right (SYN-11, SYN-18)."""

from contextlib import asynccontextmanager

import attrs
import pytest
import trio

import actors
from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import MessageType
from tests.support.report_world import Closed, Open, world


class Doorman(actors.Hyperty):
    """Lets in whom it knows, and says why not."""

    def __init__(self):
        self.known = set()
        self.asked = []

    async def on_subscribe(self, url, observer):
        self.asked.append(observer)
        if observer not in self.known:
            raise actors.Refused(actors.Code.FORBIDDEN, "you are not on the list")


@asynccontextmanager
async def met(**wanted):
    """A doorman that reports an object, and two guests of another runtime."""
    async with world() as w:
        doorman = Doorman()
        room = await w.here.deploy(lambda: doorman)
        guest, other = await w.there.deploy(Closed), await w.there.deploy(Closed)
        async with room.report("comm", {"n": 0}, **wanted) as thing:
            yield attrs.make_class("Met", ["w", "doorman", "room", "guest", "other", "thing"])(
                w, doorman, room, guest, other, thing
            )


async def code_of(guest, url):
    """What comes of an attempt to observe, and why."""
    try:
        async with guest.observe(url):
            return 200, ""
    except actors.ObjectError as refused:
        return refused.code, refused.why


async def read(guest, url):
    return (await guest.ask(url, MessageType.READ, {})).code


async def test_without_an_answer_the_path_goes_and_the_observer_is_reported(autojump_clock):
    """SYN-10: 408."""
    async with met(public=True) as m:
        m.w.slow_down(2 * REPLY_TIMEOUT)
        assert (await code_of(m.guest, m.thing.url))[0] == 408
        await trio.sleep(3 * REPLY_TIMEOUT)
        paths = [
            line.new
            for line in m.w.recorder.lines
            if line.is_step and line.machine == "node_subscription" and "/changes|" in line.key
        ]
        assert paths[-1] == "removed"
        m.w.slow_down(0.0)
        await trio.sleep(3 * REPLY_TIMEOUT)
        assert m.thing.observers == ()


# --- invitations ----------------------------------------------------------------------------


async def test_an_invited_hyperty_may_observe_for_any_answer(autojump_clock):
    """SYN-04, SYN-05: the answer is the reporter's to see."""
    async with met() as m:
        with pytest.raises(actors.ObjectError) as declined:
            await m.thing.invite(m.guest.url)
        assert declined.value.code == 400
        assert (await code_of(m.guest, m.thing.url))[0] == 200


async def test_an_unanswered_invitation_ends_in_time(autojump_clock):
    """SYN-05: 408, tagged with whose silence it is."""
    async with world() as w:

        class Deaf(actors.Hyperty):
            async def on_invited(self, invited):
                await trio.sleep_forever()

        room, guest = await w.here.deploy(Open), await w.there.deploy(Deaf)
        async with room.report("comm", {}) as thing:
            with pytest.raises(actors.ObjectError) as silence:
                await thing.invite(guest.url)
            assert silence.value.code == 408
