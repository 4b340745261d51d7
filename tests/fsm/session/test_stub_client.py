"""A node stub's decisions (STB-03..09, STB-17, I-S1, I-S8..I-S10)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.engine import Step
from fsm.limits.rates import Rate
from fsm.machines.stub_connection import NODE_LINK, State
from fsm.session.stub_client import SessionAnswered, StubClientCore, StubPort
from specs.bodies.word import SessionMethod
from specs.limits.protocol import (
    GOODBYE_TIMEOUT,
    OPEN_TIMEOUT,
    OUTBOX_MESSAGES,
    PING_PERIOD,
    PONG_TIMEOUT,
    RECONNECT_TRIES,
    RENEW_TIMEOUT,
    RETRY_AFTER,
    STUB_QUEUE,
)
from specs.message import Message, MessageType
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


def test_the_first_message_connects_and_goes_when_the_session_is_open():
    stub = Stub()
    assert stub.feed(tell.send(ask(1)))[-1] == asks.dial()
    assert stub.feed(tell.dialled()) == [asks.ask(SessionMethod.OPEN)]
    assert stub.feed(OPENED)[1:] == [asks.released(ask(1)), asks.write(ask(1))]
    assert stub.steps() == ["created", "in-progress", "live"]


def test_messages_that_wait_share_one_connect_and_keep_their_order():
    stub = Stub()
    stub.feed(*(tell.send(ask(n)) for n in (1, 2, 3)), tell.dialled(), OPENED)
    assert stub.effects.count(asks.dial()) == 1
    written = [e.message.id for e in stub.effects if is_asked(e, "write")]
    assert written == [1, 2, 3]


def test_while_live_messages_go_at_once():
    assert live().feed(tell.send(ask(2))) == [asks.write(ask(2))]


def test_a_lost_link_is_dialled_again_at_once_and_reopened_with_the_token():
    stub = lost()
    assert stub.wait() == [asks.dial()]
    assert stub.now == 0.0
    assert stub.feed(tell.dialled()) == [asks.ask(SessionMethod.REOPEN, "token-1")]
    stub.feed(REOPENED)
    assert stub.steps()[-2:] == ["disconnected", "live"]
    assert stub.core.sessions == 1


def test_unsent_messages_of_a_link_go_first_on_the_next():
    stub = live()
    stub.feed(tell.note_written(1), tell.send(ask(2)), tell.lose_link("cut"), tell.send(ask(3)))
    stub.wait()
    effects = stub.feed(tell.dialled(), REOPENED)
    assert [e.message.id for e in effects if is_asked(e, "write")] == [2, 3]


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


def test_pauses_between_attempts_grow():
    stub, pauses = lost(), []
    for _ in range(RECONNECT_TRIES + 1):
        before = stub.now
        stub.wait()
        pauses.append(stub.now - before)
        stub.feed(tell.lose_link("nobody there"))
    assert pauses == [0.0, 0.25, 0.5, 1.0, 2.0, 4.0]


def test_when_the_tries_are_over_everything_that_waits_is_refused_once():
    stub = lost()
    stub.feed(tell.send(ask(2)), tell.send(event(3)))
    for _ in range(RECONNECT_TRIES):
        stub.wait()
        stub.feed(tell.lose_link("nobody there"))
    assert [e.message for e in stub.effects if is_asked(e, "refuse")] == [ask(2)]
    assert asks.drop(event(3), DropReason.SESSION_GONE) in stub.effects
    assert stub.core.queued == 0


def test_after_the_tries_a_later_message_tries_once_more():
    stub = lost()
    for _ in range(RECONNECT_TRIES):
        stub.wait()
        stub.feed(tell.lose_link("nobody there"))
    (refused,) = stub.feed(tell.send(ask(2)))
    assert refused.code is Code.UNAVAILABLE
    stub.now += 1.0
    assert stub.feed(tell.send(ask(3)))[-1] == asks.dial()


def test_a_node_that_forgot_the_session_gets_a_new_one():
    stub = lost()
    stub.wait()
    stub.feed(tell.dialled())
    assert stub.feed(answered(SessionMethod.REOPEN, 410)) == [asks.ask(SessionMethod.OPEN)]
    stub.feed(OPENED)
    assert stub.core.sessions == 2
    assert stub.steps()[-1] == "live"


def test_the_first_connect_gives_up_in_time_and_answers_all_that_wait():
    stub = Stub()
    stub.feed(tell.send(ask(1)), tell.send(ask(2)))
    stub.feed(tell.lose_link("nobody there"))
    while stub.core.state is not State.FAILED:
        stub.wait()
        stub.feed(tell.lose_link("nobody there"))
    refused = [e.message.id for e in stub.effects if is_asked(e, "refuse")]
    assert refused == [1, 2]
    assert stub.now <= OPEN_TIMEOUT
    assert stub.steps() == ["created", "in-progress", "failed"]


def test_a_stub_that_runs_out_of_time_says_why_its_last_attempt_failed():
    stub = Stub()
    stub.feed(tell.send(ask(1)), tell.lose_link("the endpoint answers with status 500"))
    while stub.core.state is not State.FAILED:
        stub.wait()

    assert [one.why for one in stub.effects if is_asked(one, "refuse")] == [
        "the endpoint answers with status 500"
    ]


def test_a_node_that_never_answers_the_open_fails_the_stub():
    stub = connecting()
    effects = stub.wait()
    assert stub.now == OPEN_TIMEOUT
    assert effects[0] == asks.hang_up()
    assert stub.core.state is State.FAILED


def test_a_refused_open_is_final():
    stub = connecting()
    stub.feed(answered(SessionMethod.OPEN, 401, why="bad token"))
    assert stub.core.state is State.FAILED
    assert [e.why for e in stub.effects if is_asked(e, "refuse")] == ["bad token"]


def test_a_conflict_is_tried_again():
    stub = connecting()
    effects = stub.feed(answered(SessionMethod.OPEN, 409))
    assert effects == [asks.hang_up()]
    assert stub.wait() == [asks.dial()]


def test_a_first_login_that_is_refused_for_a_while_is_tried_again():
    """The token is not good yet: the clock of the node is behind."""
    stub = Stub()
    later = answered(SessionMethod.OPEN, 401, why="not yet", is_passing=True)
    stub.feed(tell.send(ask(1)), tell.dialled(), later)
    assert stub.core.state is State.IN_PROGRESS
    stub.wait()
    stub.feed(tell.dialled(), OPENED)
    assert stub.core.state is State.LIVE


def test_a_lasting_conflict_is_final():
    stub = connecting()
    stub.feed(answered(SessionMethod.OPEN, 409, why="taken", is_lasting=True))
    assert stub.core.state is State.FAILED
    assert [(e.code, e.why) for e in stub.effects if is_asked(e, "refuse")] == [(409, "taken")]


def test_a_failed_stub_refuses_what_comes():
    stub = connecting()
    stub.feed(answered(SessionMethod.OPEN, 401))
    (refused,) = stub.feed(tell.send(ask(2)))
    assert refused.code is Code.UNAVAILABLE


def test_the_newest_is_refused_when_the_queue_is_full():
    stub = Stub()
    stub.feed(*(tell.send(ask(n)) for n in range(1, STUB_QUEUE + 1)))
    (refused,) = stub.feed(tell.send(ask(STUB_QUEUE + 1)))
    assert (refused.code, refused.retry_after) == (Code.UNAVAILABLE, RETRY_AFTER)
    assert stub.feed(tell.send(event(9))) == [asks.drop(event(9), DropReason.OVERFLOW)]


def test_a_link_that_does_not_write_is_given_only_so_much():
    stub = live()
    stub.feed(*(tell.send(ask(n)) for n in range(2, OUTBOX_MESSAGES + 1)))
    (refused,) = stub.feed(tell.send(ask(OUTBOX_MESSAGES + 1)))
    assert (refused.code, refused.retry_after) == (Code.UNAVAILABLE, RETRY_AFTER)
    assert stub.feed(tell.note_written(1), tell.send(ask(9000))) == [asks.write(ask(9000))]


def test_messages_above_the_rate_of_the_node_wait_in_order():
    """The burst leaves at once, the rest as the node accepts it, and nothing is refused."""
    stub = connecting()
    granted = answered(SessionMethod.OPEN, 200, "token-1", pace=Rate(100, 20))
    stub.feed(granted, *(tell.send(ask(n)) for n in range(2, 101)))
    assert len([one for one in stub.effects if is_asked(one, "write")]) == 19
    while stub.core.queued:
        stub.wait()
    written = [one.message.id for one in stub.effects if is_asked(one, "write")]
    assert written == list(range(1, 101))
    assert stub.now == pytest.approx(81 / 95, abs=0.05)
    assert not [one for one in stub.effects if is_asked(one, "refuse")]


def test_a_node_without_a_rate_gets_messages_at_once():
    stub = live()
    assert stub.feed(*(tell.send(ask(n)) for n in (2, 3))) == [
        asks.write(ask(2)),
        asks.write(ask(3)),
    ]


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


def test_silence_is_pinged_and_an_answer_is_life():
    stub = live()
    assert stub.wait() == [asks.ask(SessionMethod.PING)]
    assert stub.now == PING_PERIOD
    stub.feed(tell.note_life(), answered(SessionMethod.PING, 200))
    assert stub.core.deadline() == stub.now + PING_PERIOD


@pytest.mark.parametrize(
    "sign", [tell.note_life(), answered(SessionMethod.PING, 200)], ids=["a frame", "the answer"]
)
def test_an_idle_session_whose_pings_are_answered_stays(sign):
    """R8: the ping that was answered is over, so the next deadline is another ping."""
    stub = live()
    for _ in range(30):
        assert stub.wait() == [asks.ask(SessionMethod.PING)]
        assert stub.feed(sign) == []
    assert stub.now == 30 * PING_PERIOD == 600.0
    assert stub.core.state is State.LIVE


def test_an_unanswered_ping_is_a_lost_link():
    stub = live()
    stub.wait()
    assert stub.wait()[0] == asks.hang_up()
    assert stub.now == PING_PERIOD + PONG_TIMEOUT
    assert stub.core.state is State.DISCONNECTED


def test_disconnect_closes_the_session_and_stays():
    stub = live()
    assert stub.feed(tell.disconnect()) == [asks.ask(SessionMethod.CLOSE)]
    effects = stub.feed(answered(SessionMethod.CLOSE, 200))
    assert effects[-1] == asks.ended()
    assert stub.core.deadline() == math.inf
    (refused,) = stub.feed(tell.send(ask(2)))
    assert refused.code is Code.UNAVAILABLE
    assert asks.dial() not in stub.feed(tell.connect(), tell.lose_link("gone"))


def test_disconnect_does_not_wait_for_a_silent_node():
    stub = live()
    stub.feed(tell.disconnect(), tell.disconnect())
    assert stub.wait()[-1] == asks.ended()
    assert stub.now == GOODBYE_TIMEOUT


@pytest.mark.parametrize(
    ("make", "last"),
    [(Stub, "failed"), (connecting, "failed"), (live, "disconnected"), (lost, "disconnected")],
)
def test_disconnect_brings_every_state_to_rest(make, last):
    stub = make()
    stub.feed(tell.disconnect(), tell.lose_link("gone"))
    assert stub.steps()[-1] == last
    assert stub.effects[-1] == asks.ended()


def test_a_link_that_comes_too_late_is_hung_up():
    stub = live()
    assert stub.feed(tell.dialled()) == [asks.hang_up()]


_anything = st.sampled_from(
    [
        tell.send(ask(1)),
        tell.send(event(2)),
        tell.connect(),
        tell.dialled(),
        tell.lose_link("no"),
        tell.lose_link("cut"),
        OPENED,
        REOPENED,
        answered(SessionMethod.REOPEN, 410),
        answered(SessionMethod.OPEN, 409),
        answered(SessionMethod.PING, 200),
        tell.note_life(),
        tell.note_written(1),
        tell.time_over(),
        tell.disconnect(),
    ]
)


@given(st.lists(st.tuples(_anything, st.floats(0, 5)), max_size=40))
def test_for_any_events_each_message_ends_once_and_only_live_links_write(history):
    stub = Stub()
    for happened, pause in history:
        stub.now += pause
        was_live = stub.core.state is State.LIVE
        effects = stub.feed(happened)
        writes = [effect for effect in effects if is_asked(effect, "write")]
        assert not writes or was_live or stub.core.state is State.LIVE
    stub.feed(tell.disconnect(), tell.lose_link("end"))
    assert stub.core.queued == 0
    assert stub.core.state in {State.FAILED, State.DISCONNECTED}


def test_a_stub_whose_logins_are_refused_for_long_ends_also_if_they_repeat():
    stub = Stub(may_end=True)
    stub.feed(tell.send(ask(1)), tell.dialled(), OPENED, tell.lose_link("cut"))
    for login in "abcde" * 6:
        stub.wait()
        refusal = answered(SessionMethod.OPEN, 401, login=login)
        stub.feed(tell.dialled(), answered(SessionMethod.REOPEN, 410), refusal)
    assert stub.links()[-1] == "ended"


def test_a_session_that_never_lasts_is_no_success():
    stub, pauses = lost(), []
    for _ in range(RECONNECT_TRIES):
        before = stub.now
        stub.wait()
        pauses.append(stub.now - before)
        stub.feed(tell.dialled(), REOPENED, tell.lose_link("shown out"))
    assert pauses == [0.0, 0.25, 0.5, 1.0, 2.0]
    (refused,) = stub.feed(tell.send(ask(7)))
    assert refused.code is Code.UNAVAILABLE


def test_a_session_that_lasted_is_come_back_to_at_once():
    stub = lost()
    for _ in range(RECONNECT_TRIES):
        stub.wait()
        stub.feed(tell.dialled(), REOPENED)
        stub.now += 1.0
        stub.feed(tell.lose_link("cut"))
        assert stub.core.deadline() == stub.now


def test_a_node_that_takes_an_open_back_is_a_lost_link():
    stub = live()
    effects = stub.feed(answered(SessionMethod.OPEN, 409, why="somebody has it"))
    assert effects[0] == asks.hang_up()
    assert [(step.new, step.why) for step in effects if isinstance(step, Step)] == [
        ("disconnected", "somebody has it")
    ]


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


def test_wherever_a_link_is_it_can_be_lost_or_left():
    idle, dialling, opening, pinging, silent = Stub(), Stub(), connecting(), live(), live()
    dialling.feed(tell.connect())
    opening.feed(tell.lose_link("cut"))
    pinging.wait()
    silent.wait()
    silent.feed(tell.lose_link("cut"))
    for stub in (idle, dialling, opening, pinging, silent):
        stub.feed(tell.disconnect())
    ends = [" ".join(stub.links()[-2:]) for stub in (idle, dialling, opening, pinging, silent)]
    assert ends == [
        "ended", "dialling ended", "paused ended", "pinging closing", "paused ended",
    ]  # fmt: skip


def test_a_stub_that_never_dialled_ends_once():
    stub = Stub()
    stub.feed(tell.disconnect(), tell.disconnect())
    assert stub.links() == ["ended"]


def test_a_stub_that_checks_too_late_itself_waits_longer():
    stub = live()
    stub.wait()
    stub.now = stub.core.deadline() + 3.0
    assert stub.feed(tell.time_over()) == []
    assert stub.core.deadline() == stub.now + 3.0
    stub.feed(answered(SessionMethod.PING, 200))
    assert stub.core.deadline() == stub.now + PING_PERIOD


def test_a_stub_that_waited_longer_without_a_frame_gives_up():
    stub = live()
    stub.wait()
    stub.now = stub.core.deadline() + 3.0
    stub.feed(tell.time_over())
    assert stub.wait()[0] == asks.hang_up()


# ---- a node that has forgotten what the session had

OWNER = "hyperty-runtime://a.ex/ra"
PATHS = "domain://msg-node.a.ex/sm"


def claim(number, source=OWNER, to=PATHS, kind=MessageType.SUBSCRIBE):
    return Message(number, kind, f"{OWNER}/registry", to, {"source": source})


def emptied():
    stub = Stub(OWNER)
    stub.feed(
        tell.send(ask(1)), tell.dialled(), OPENED, tell.note_written(1), tell.lose_link("cut")
    )
    stub.feed(tell.send(ask(2)))
    stub.wait()
    stub.feed(tell.dialled(), answered(SessionMethod.REOPEN, 200, "token-1", is_emptied=True))
    return stub


def test_a_session_that_was_emptied_carries_only_renewals_until_everything_is_had_again():
    stub = emptied()
    assert stub.links()[-1] == "renewing"
    assert stub.feed(tell.send(claim(3))) == [asks.write(claim(3))]
    assert stub.feed(tell.send(ask(4))) == [asks.queued(ask(4))]
    written = [e.message.id for e in stub.feed(tell.end_renewal(2)) if is_asked(e, "write")]
    assert written == [2, 4]
    assert stub.links()[-1] == "open"


@pytest.mark.parametrize(("is_again", "first"), [(False, "open"), (True, "renewing")])
def test_the_new_session_of_a_stub_in_place_of_another_carries_only_renewals(is_again, first):
    """Its runtime had something at the session of the earlier stub."""
    stub = Stub(OWNER, is_again=is_again)
    stub.feed(tell.send(ask(1)), tell.dialled(), OPENED)
    assert stub.links()[-1] == first
    assert (asks.write(ask(1)) in stub.effects) is (first == "open")
    stub.feed(tell.end_renewal(1))
    assert stub.links()[-1] == "open"
    assert asks.write(ask(1)) in stub.effects


def test_a_stub_in_place_of_another_whose_session_the_node_still_has_renews_nothing():
    stub = Stub(OWNER, is_again=True, token=OPENED.answer.token)
    stub.feed(tell.send(ask(1)), tell.dialled(), REOPENED)
    assert stub.links()[-1] == "open"


@pytest.mark.parametrize("message", [
    claim(3, source="hyperty://a.ex/1"),
    claim(3, to="domain://registry.b.ex"),
    claim(3, to="hyperty://a.ex/1"),
    claim(3, kind=MessageType.READ),
    Message(3, MessageType.SUBSCRIBE, "hyperty://a.ex/1", PATHS),
])  # fmt: skip
def test_what_renews_nothing_waits(message):
    assert emptied().feed(tell.send(message)) == [asks.queued(message)]


def test_what_waits_for_too_long_is_refused_for_now():
    stub = emptied()
    assert stub.wait() == [asks.released(ask(2)), stub.effects[-1]]
    refused = stub.effects[-1]
    assert (refused.code, refused.retry_after) == (Code.UNAVAILABLE, RETRY_AFTER)
    assert stub.now == RENEW_TIMEOUT
    [late] = stub.feed(tell.send(ask(3)))
    assert (late.message, late.code) == (ask(3), Code.UNAVAILABLE)
    assert stub.feed(tell.send(claim(4))) == [asks.write(claim(4))]


def test_messages_held_back_leave_room_for_what_they_wait_for():
    stub = emptied()
    stub.feed(*(tell.send(ask(n)) for n in range(10, 10 + STUB_QUEUE)))
    assert stub.core.held == 0
    assert stub.core.queued == STUB_QUEUE
    assert stub.feed(tell.send(claim(3))) == [asks.write(claim(3))]


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


def test_what_waited_for_renewals_leaves_by_the_next_link_if_they_are_done():
    stub = emptied()
    stub.feed(tell.lose_link("cut"), tell.end_renewal(2))
    stub.wait()
    assert asks.write(ask(2)) in stub.feed(tell.dialled(), REOPENED)


def test_an_emptied_session_can_be_lost_or_left_before_everything_is_had_again():
    lost, left = emptied(), emptied()
    lost.feed(tell.lose_link("cut"))
    left.feed(tell.disconnect())
    assert (lost.links()[-1], left.links()[-1]) == ("paused", "closing")


def test_a_node_that_is_silent_while_it_is_asked_for_everything_is_given_up():
    stub = emptied()
    stub.wait()
    stub.wait()
    assert stub.links()[-1] == "paused"
    assert stub.now == PONG_TIMEOUT
