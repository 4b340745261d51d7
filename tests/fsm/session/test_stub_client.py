"""A node stub's decisions (STB-03..09, STB-17, I-S1, I-S8..I-S10)."""

from fsm.engine import Step
from fsm.limits.rates import Rate
from fsm.machines.stub_connection import NODE_LINK
from fsm.session.stub_client import SessionAnswered, StubClientCore, StubPort
from specs.bodies.word import SessionMethod
from specs.limits.protocol import PING_PERIOD, RECONNECT_TRIES, STUB_QUEUE
from specs.reply_code import Code, DropReason
from tests.support.link_calls import Calls, RecordingPort, is_asked, make
from tests.support.wire.wire import ask, event

tell, asks = Calls(StubClientCore), Calls(StubPort)


def answered(*about, **more):
    return tell.take_answer(SessionAnswered(*about, **more))


OPENED = answered(SessionMethod.OPEN, 200, "token-1")
REOPENED = answered(SessionMethod.REOPEN, 200, "token-1")


class Stub:
    """A core with a clock that remembers all that it asked for."""

    def __init__(self, owner=None, **more):
        self._port = RecordingPort(StubPort)
        self.core = StubClientCore("S", self._port, lambda: 0.0, owner=owner, **more)
        self.now = 0.0
        self.core.begin()
        self.effects = self._port.take()

    def feed(self, *calls):
        """Return what is to be done; the steps of the link are kept for `links`."""
        for call in calls:
            make(call, self.core, self.now)
        effects = self._port.take()
        self.effects += effects
        return [one for one in effects if not is_link_step(one)]

    def wait(self):
        """Let the time pass until the next deadline."""
        self.now = max(self.now, self.core.deadline())
        return self.feed(tell.time_over())

    def steps(self):
        steps = [one for one in self.effects if isinstance(one, Step) and not is_link_step(one)]
        return [step.new for step in steps]

    def links(self):
        return [one.new for one in self.effects if is_link_step(one)]


def is_link_step(effect):
    return isinstance(effect, Step) and effect.machine == NODE_LINK.name


def connecting():
    stub = Stub()
    stub.feed(tell.send(ask(1)), tell.dialled())
    return stub


def live():
    stub = connecting()
    stub.feed(OPENED)
    return stub


def lost():
    stub = live()
    stub.feed(tell.note_written(1), tell.lose_link("cut"))
    return stub


def test_what_a_second_link_has_sent_is_not_sent_by_a_third():
    stub = live()
    for _ in range(2):
        stub.feed(tell.lose_link("cut"))
        stub.wait()
        effects = stub.feed(tell.dialled(), REOPENED, tell.note_written(1))
    assert [e.message.id for e in effects if is_asked(e, "write")] == []


def test_unsent_messages_of_a_link_go_before_those_that_wait_for_the_rate():
    stub = connecting()
    granted = answered(SessionMethod.OPEN, 200, "token-1", pace=Rate(100, 1))
    stub.feed(granted, tell.send(ask(2)), tell.lose_link("cut"))
    stub.wait()
    effects = stub.feed(tell.dialled(), REOPENED)
    assert [e.message.id for e in effects if is_asked(e, "write")] == [1, 2]


def test_after_the_tries_a_later_message_tries_once_more():
    stub = lost()
    for _ in range(RECONNECT_TRIES):
        stub.wait()
        stub.feed(tell.lose_link("nobody there"))
    (refused,) = stub.feed(tell.send(ask(2)))
    assert refused.code is Code.UNAVAILABLE
    stub.now += 1.0
    assert stub.feed(tell.send(ask(3)))[-1] == asks.dial()


def test_a_conflict_is_tried_again():
    stub = connecting()
    effects = stub.feed(answered(SessionMethod.OPEN, 409))
    assert effects == [asks.hang_up()]
    assert stub.wait() == [asks.dial()]


def test_a_refusal_for_a_full_queue_says_when_there_is_space():
    stub = connecting()
    stub.feed(answered(SessionMethod.OPEN, 200, "token-1", pace=Rate(100, 1)))
    stub.feed(*(tell.send(ask(n)) for n in range(2, STUB_QUEUE + 2)))
    (refused,) = stub.feed(tell.send(ask(9000)))
    assert (refused.code, refused.retry_after) == (Code.UNAVAILABLE, STUB_QUEUE / 100)
    assert stub.feed(tell.send(event(9001))) == [asks.drop(event(9001), DropReason.OVERFLOW)]


def test_a_message_that_no_link_can_send_is_not_kept():
    stub = live()
    stub.feed(tell.forget(ask(1)), tell.lose_link("cut"))
    assert stub.core.queued == 0


def test_a_stub_whose_logins_are_refused_for_long_ends_also_if_they_repeat():
    stub = Stub(may_end=True)
    stub.feed(tell.send(ask(1)), tell.dialled(), OPENED, tell.lose_link("cut"))
    for login in "abcde" * 6:
        stub.wait()
        refusal = answered(SessionMethod.OPEN, 401, login=login)
        stub.feed(tell.dialled(), answered(SessionMethod.REOPEN, 410), refusal)
    assert stub.links()[-1] == "ended"


def test_the_progress_on_the_link_is_reported_step_by_step():
    stub = lost()
    stub.wait()
    stub.feed(tell.dialled(), REOPENED)
    stub.wait()
    stub.feed(tell.note_life(), tell.note_life(), tell.disconnect(), tell.lose_link("gone"))
    stub.feed(tell.disconnect())
    assert " ".join(stub.links()) == (
        "dialling opening open paused dialling opening open pinging open closing ended"
    )


def test_a_stub_that_checks_too_late_itself_waits_longer():
    stub = live()
    stub.wait()
    stub.now = stub.core.deadline() + 3.0
    assert stub.feed(tell.time_over()) == []
    assert stub.core.deadline() == stub.now + 3.0
    stub.feed(answered(SessionMethod.PING, 200))
    assert stub.core.deadline() == stub.now + PING_PERIOD


# ---- a node that has forgotten what the session had

OWNER = "hyperty-runtime://a.ex/ra"


def emptied():
    stub = Stub(OWNER)
    stub.feed(
        tell.send(ask(1)), tell.dialled(), OPENED, tell.note_written(1), tell.lose_link("cut")
    )
    stub.feed(tell.send(ask(2)))
    stub.wait()
    stub.feed(tell.dialled(), answered(SessionMethod.REOPEN, 200, "token-1", is_emptied=True))
    return stub


def test_a_session_that_is_lost_before_everything_is_had_again_still_owes_it():
    stub = emptied()
    stub.feed(tell.lose_link("cut"))
    stub.wait()
    stub.feed(tell.dialled(), REOPENED)
    assert stub.links()[-1] == "renewing"
    stub.feed(tell.end_renewal(1))
    assert stub.links()[-1] == "renewing"
    stub.feed(tell.end_renewal(2), tell.lose_link("cut"))
    stub.wait()
    stub.feed(tell.dialled(), REOPENED)
    assert stub.links()[-1] == "open"
