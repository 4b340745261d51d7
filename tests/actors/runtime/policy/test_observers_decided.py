"""Who may observe and read: allowed, asked about, let in by everybody's right (SYN-11, SYN-18)."""

from contextlib import asynccontextmanager

import attrs
import pytest
import trio

import actors
from actors.runtime.policy import Policy
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


async def test_a_refusal_says_to_the_observer_why(autojump_clock):
    async with met() as m:
        assert await code_of(m.guest, m.thing.url) == (403, "you are not on the list")
        m.doorman.known.add(m.guest.url)
        assert await code_of(m.guest, m.thing.url) == (200, "")
        assert m.doorman.asked == [m.guest.url] * 2


async def test_a_reporter_that_crashes_on_the_question_refuses_with_other_words(autojump_clock):
    async with met() as m:
        m.doorman.known = None
        code, why = await code_of(m.guest, m.thing.url)
        assert code == 403
        assert why.startswith("the reporter did not decide: 500")


async def test_an_allowed_observer_needs_no_decision_and_may_read_at_once(autojump_clock):
    async with met() as m:
        assert [await read(one, m.thing.url) for one in (m.guest, m.other)] == [401, 401]
        await m.thing.allow(m.guest.url)
        assert [await read(one, m.thing.url) for one in (m.guest, m.other)] == [200, 401]
        assert (await code_of(m.guest, m.thing.url))[0] == 200
        assert m.doorman.asked == []
        assert (await code_of(m.other, m.thing.url))[0] == 403


async def test_an_allow_list_may_be_given_with_the_object(autojump_clock):
    async with world() as w:
        guests = [await w.there.deploy(Closed) for _ in range(2)]
        # More than fit into one message; those there are none of do no harm.
        nobodies = tuple(f"hyperty://a.ex/nobody-{number}" for number in range(300))
        room = await w.here.deploy(Closed)
        allow = (guests[0].url, *nobodies, guests[1].url)
        async with room.report("comm", {}, allow=allow) as thing:
            for guest in guests:
                assert (await code_of(guest, thing.url))[0] == 200


async def test_a_public_object_is_observed_and_read_by_all_hyperties(autojump_clock):
    async with met(public=True) as m:
        for one in (m.guest, m.other):
            assert await read(one, m.thing.url) == 200
            assert (await code_of(one, m.thing.url))[0] == 200
        assert m.doorman.asked == []


async def test_an_allowance_admits_an_observer_whose_request_is_being_decided(autojump_clock):
    async with world() as w:
        decide = trio.Event()

        class Slow(actors.Hyperty):
            async def on_subscribe(self, url, observer):
                await decide.wait()

        room, guest = await w.here.deploy(Slow), await w.there.deploy(Closed)
        async with room.report("comm", {}) as thing, trio.open_nursery() as nursery:
            codes = []

            async def enter():
                codes.append((await code_of(guest, thing.url))[0])

            nursery.start_soon(enter)
            await trio.sleep(1)
            assert codes == []
            await thing.allow(guest.url)
            await trio.sleep(1)
            assert codes == [200]
            decide.set()


async def test_a_reporter_that_says_nothing_is_a_refusal_that_says_so(autojump_clock):
    async with world() as w:

        class Silent(actors.Hyperty):
            async def on_subscribe(self, url, observer):
                await trio.sleep_forever()

        room, guest = await w.here.deploy(Silent), await w.there.deploy(Closed)
        async with room.report("comm", {}) as thing:
            assert (await code_of(guest, thing.url))[0] == 408
            await trio.sleep(1)
        assert w.steps("object_subscription", "ra") == [
            ("request", "requested"),
            ("refuse", "refused"),
        ]


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


class NoGuests(Policy):
    """Lets one hyperty subscribe to nothing."""

    def __init__(self):
        self.unwanted = None

    def refusal(self, message, by):
        is_it = message.type is MessageType.SUBSCRIBE and message.to.endswith("/subscription")
        if is_it and message.body.get("source") == self.unwanted:
            return "no business with outsiders"
        return None


async def test_the_policy_of_the_runtime_is_asked_before_the_reporter(autojump_clock):
    """SYN-11: also about who is allowed; and its words come to the observer."""
    policy = NoGuests()
    async with world(policy=policy) as w:
        doorman = Doorman()
        room, guest = await w.here.deploy(lambda: doorman), await w.there.deploy(Closed)
        policy.unwanted = guest.url
        async with room.report("comm", {}, allow=(guest.url,)) as thing:
            assert await code_of(guest, thing.url) == (403, "no business with outsiders")
            policy.unwanted = None
            assert (await code_of(guest, thing.url))[0] == 200
        assert doorman.asked == []


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
