"""The node's side of a session, without a node (I-M1..I-M4, I-M12)."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.engine import Step
from fsm.limits.timers import Alarms
from fsm.session.node_session import NodeSessionCore
from fsm.session.node_session_io import (
    Credentials,
    Granted,
    Liveness,
    OutboundMessage,
    SessionPort,
    SessionRequest,
)
from specs.limits.protocol import (
    OUTBOX_BYTES,
    PING_PERIOD,
    PONG_TIMEOUT,
    SESSION_IDLE,
    SESSION_QUEUE,
)
from specs.message import Message, MessageType
from tests.support.link_calls import Calls, Told

TOKEN = "t" * 64
R = "hyperty-runtime://a.ex/ra"

asks = Calls(SessionPort)


def lone_session(key="k"):
    return Told(SessionPort, lambda port: NodeSessionCore(key, R, port))


def asked(link, token=None, fresh=None, *more, **named):
    """Return what a link asks for."""
    return SessionRequest(link, token, fresh, *more, **named)


def kind(one):
    if isinstance(one, Granted):
        return "grant"
    return getattr(one, "name", "step")


def kinds(effects):
    """Return the names of what is asked for."""
    return [kind(one) for one in effects]


def entry(n=1, size=10):
    return OutboundMessage(Message(n, MessageType.CREATE, "a://b/c", R), b"x" * size)


def opened(liveness=Liveness.PINGED):
    core = lone_session(f"mn|{R}")
    core.open(asked(1, None, TOKEN, liveness), 0.0)
    return core


def detached():
    core = opened()
    core.note_life(0.0)
    core.lose_link(1, "lost", 0.0)
    return core


def test_the_first_open_grants_a_fresh_token():
    step, granted = lone_session().open(asked(1, None, TOKEN), 0.0)

    assert (step.old, step.new) == (None, "open")
    assert granted == Granted(1, TOKEN, (), is_lasting=True)


def test_a_session_that_moves_leaves_its_link_and_what_waits():
    """I-M15."""
    waits = entry()
    away = detached()
    away.wait(waits)
    steps = [one for core in (opened(), away) for one in core.move_away("there", 1.0)]

    cut, lost, *moves = steps
    assert (cut.link, lost.new) == (1, "detached")
    assert [(one.old, one.new) for one in moves if isinstance(one, Step)] == [
        ("detached", "moved")
    ] * 2
    assert [one for one in moves if kind(one) == "move"] == [
        asks.move(()),
        asks.move((waits,)),
    ]


def test_the_token_itself_is_not_kept():
    core = opened()

    kept = [getattr(core.core, name) for name in NodeSessionCore.__slots__]
    assert TOKEN not in kept
    assert TOKEN.encode() not in kept


@pytest.mark.parametrize("token", [None, "", "u" * 64])
@pytest.mark.parametrize("make", [opened, detached])
def test_the_session_cannot_be_resumed_without_its_token(make, token):
    core = make()

    assert [one.code for one in core.open(asked(2, token, "f"), 1.0)] == [409]
    assert [one.code for one in core.reopen(asked(2, token), 1.0)] == [401]
    assert kinds(core.reopen(asked(2, token), 1.0)) == ["refuse"]


@pytest.mark.parametrize("make", [opened, detached])
def test_a_session_with_a_token_is_never_claimed(make):
    assert [one.code for one in make().claim(2, Liveness.BY_LINK, 1.0)] == [409]


@pytest.mark.parametrize("token", [None, "", TOKEN])
def test_a_claimed_session_has_no_token_that_resumes_it(token):
    core = lone_session()
    core.claim(1, Liveness.BY_LINK, 0.0)

    assert [one.code for one in core.open(asked(2, token, TOKEN), 1.0)] == [409]
    assert [one.code for one in core.reopen(asked(2, token), 1.0)] == [401]
    assert core.link == 1


def test_a_session_whose_token_was_lost_is_opened_anew():
    """The answer to the open was lost with its link; nothing that waited is handed over."""
    core = opened()
    core.lose_link(1, "lost", 0.0)
    waiting = entry()
    core.wait(waiting)

    shed, step, granted = core.open(asked(2, None, "f" * 64), 1.0)

    assert shed == asks.overflow(waiting.message, "too many messages wait for the runtime")
    assert (step.old, step.new, granted.waiting) == ("detached", "open", ())
    assert core.knows("f" * 64)
    assert not core.knows(TOKEN)


def unproved(link, token="", fresh="f" * 64):
    return asked(link, token or None, fresh, Liveness.BY_LINK, is_unproved=True, is_fixed=True)


def test_upstreams_open_gets_the_detached_session_its_token_and_what_waited():
    """C-84, MN-04, MN-06: where nobody logs in, as upstream's nodes do it."""
    core = lone_session()
    core.open(unproved(1, fresh=TOKEN), 0.0)
    core.lose_link(1, "lost", 0.0)
    waiting = entry()
    core.wait(waiting)

    step, granted = core.open(unproved(2), 1.0)

    assert (step.old, step.new) == ("detached", "open")
    assert granted == Granted(2, TOKEN, (waiting,), is_recovered=True)
    assert core.knows(TOKEN)
    assert not core.knows("f" * 64)


def test_upstreams_open_takes_no_session_from_a_link():
    """I-M2, C-84."""
    core = lone_session()
    core.open(unproved(1, fresh=TOKEN), 0.0)

    assert [one.code for one in core.open(unproved(2), 1.0)] == [409]


@pytest.mark.parametrize("first", ["open", "claim"])
def test_where_names_are_loose_upstreams_open_takes_the_session_from_a_link(first):
    """C-84, as upstream's own node does it."""
    core = lone_session()
    if first == "open":
        core.open(unproved(1, fresh=TOKEN), 0.0)
    else:
        core.claim(1, Liveness.BY_LINK, 0.0)

    cut, lost, back, granted = core.open(attrs.evolve(unproved(2), is_shared=True), 1.0)

    assert (cut.link, lost.new, back.new, granted.link) == (1, "detached", "open", 2)
    assert granted.token == (TOKEN if first == "open" else "f" * 64)
    assert core.link == 2


def test_where_names_are_loose_upstreams_open_takes_no_session_that_was_opened_otherwise():
    """I-M2, S2."""
    shared = attrs.evolve(unproved(2), is_shared=True)
    assert [one.code for one in opened().open(shared, 1.0)] == [409]
    core = lone_session()
    core.open(asked(1, None, TOKEN, credentials=Credentials("u", "i", 99.0)), 0.0)
    assert [one.code for one in core.open(shared, 1.0)] == [409]
    core = lone_session()
    core.open(unproved(1, fresh=TOKEN), 0.0)
    assert [one.code for one in core.open(asked(2, None, "f" * 64), 1.0)] == [409]


def test_upstreams_open_gets_no_session_that_was_opened_otherwise():
    """I-M2, S2: ours has proof of whom it belongs to, and so has who logged in."""
    assert [one.code for one in detached().open(unproved(2), 1.0)] == [409]
    core = lone_session()
    core.open(asked(1, None, TOKEN, credentials=Credentials("u", "i", 99.0)), 0.0)
    core.lose_link(1, "lost", 0.0)
    assert [one.code for one in core.open(unproved(2), 1.0)] == [409]


def test_an_open_of_ours_gets_no_session_of_upstreams_form():
    """C-84: our stubs keep their token."""
    core = lone_session()
    core.open(unproved(1, fresh=TOKEN), 0.0)
    core.note_life(0.0)
    core.lose_link(1, "lost", 0.0)

    assert [one.code for one in core.open(asked(2, None, "f"), 1.0)] == [409]


def test_a_session_with_a_linked_open_cannot_be_taken_over():
    """I-M3: the answer may be on its way."""
    assert [one.code for one in opened().open(asked(2, None, "f"), 1.0)] == [409]


def test_a_claimed_session_goes_to_its_next_claimer():
    core = lone_session()

    assert kinds(core.claim(1, Liveness.BY_LINK, 0.0)) == ["step", "grant"]
    assert kinds(core.claim(2, Liveness.BY_LINK, 0.0)) == ["cut", "step", "step", "grant"]
    assert core.claim(2, Liveness.BY_LINK, 0.0) == [Granted(2, "", (), is_recovered=True)]


def test_a_newer_link_cuts_the_older_before_it_is_granted():
    core = opened()

    assert kinds(core.reopen(asked(2, TOKEN), 1.0)) == ["cut", "step", "step", "grant"]
    assert core.lose_link(1, "the older one", 2.0) == []
    assert core.close(1) == []
    assert core.link == 2


def test_waiting_messages_are_delivered_once_and_in_order():
    core = detached()
    entries = [entry(n) for n in range(1, 4)]
    assert [core.wait(one) for one in entries] == [[asks.queued(p.message)] for p in entries]

    granted = core.reopen(asked(2, TOKEN), 2.0)[-1]

    assert granted.waiting == tuple(entries)
    core.lose_link(2, "lost", 3.0)
    assert core.reopen(asked(3, TOKEN), 4.0)[-1].waiting == ()


def test_the_queue_is_bounded_by_count():
    core = detached()
    for n in range(SESSION_QUEUE):
        core.wait(entry(n + 1))

    assert kinds(core.wait(entry())) == ["overflow"]


def test_delivered_messages_take_no_memory():
    core = detached()
    core.wait(entry(1, OUTBOX_BYTES))
    core.reopen(asked(2, TOKEN), 2.0)
    core.lose_link(2, "lost", 3.0)

    assert kinds(core.wait(entry(2, OUTBOX_BYTES))) == ["queued"]


def test_the_queue_is_bounded_by_bytes():
    core = detached()
    core.wait(entry(1, OUTBOX_BYTES))

    assert kinds(core.wait(entry(2, 1))) == ["overflow"]


def test_expiry_ends_it_and_reports_what_was_not_delivered():
    core = detached()
    core.wait(entry(7))
    assert core.deadline() == SESSION_IDLE
    assert core.time_over(SESSION_IDLE - 1) == []

    step, ended = core.time_over(SESSION_IDLE)

    assert (step.old, step.new) == ("detached", "expired")
    assert [one.id for one in ended.undelivered] == [7]


def test_silence_is_asked_about_and_then_taken_for_a_loss():
    core = opened()
    assert kinds(core.time_over(PING_PERIOD)) == ["ping"]
    assert core.deadline() == PING_PERIOD + PONG_TIMEOUT

    assert kinds(core.time_over(PING_PERIOD + PONG_TIMEOUT)) == ["cut", "step"]


def test_no_session_is_closed_for_the_nodes_own_delay():
    core = opened()
    core.time_over(PING_PERIOD)
    late = PING_PERIOD + PONG_TIMEOUT + 3.0

    assert core.time_over(late) == []
    assert core.deadline() == late + 3.0

    assert kinds(core.time_over(late + 3.0)) == ["cut", "step"]


def test_an_idle_session_whose_pings_are_answered_stays():
    """R8."""
    core = opened()
    for number in range(1, 31):
        assert core.deadline() == number * PING_PERIOD
        assert kinds(core.time_over(number * PING_PERIOD)) == ["ping"]
        core.note_life(number * PING_PERIOD)
    assert core.state == "open"


def test_any_sign_of_life_answers_a_ping():
    core = opened()
    core.time_over(PING_PERIOD)
    core.note_life(PING_PERIOD + 1)

    assert core.time_over(PING_PERIOD + PONG_TIMEOUT) == []
    assert core.deadline() == 2 * PING_PERIOD + 1


def test_a_link_that_looks_after_itself_is_not_pinged():
    assert opened(Liveness.BY_LINK).deadline() == float("inf")


@pytest.mark.parametrize("goodbye", [("close", 1), ("leave",)])
def test_a_goodbye_ends_it_before_the_link_is_let_go(goodbye):
    name, *about = goodbye
    core = opened()

    assert kinds(getattr(core, name)(*about)) == ["step", "end", "finish"]
    assert core.state == "closed"


def test_the_node_leaves_a_detached_session_too():
    step, *_ = effects = detached().leave()
    assert (step.old, step.new) == ("detached", "closed")
    assert "end" in kinds(effects)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 100)), max_size=30))
def test_alarms_never_forget_the_earliest_time_of_a_key(options):
    alarms = Alarms()
    earliest = {}
    for key, when in options:
        alarms.set(key, when)
        earliest[key] = min(when, earliest.get(key, when))

    assert alarms.deadline() == min(earliest.values(), default=float("inf"))
    assert sorted(alarms.due(100)) == sorted(earliest)
    assert alarms.due(100) == []


def test_an_alarm_can_be_taken_back():
    alarms = Alarms()
    alarms.set("a", 1.0)
    alarms.set("a", float("inf"))

    assert alarms.deadline() == float("inf")


# ---- what a session that goes on has lost


@pytest.mark.parametrize("extra", [0, 3])
def test_a_session_says_how_many_messages_found_no_room_until_its_runtime_has_heard_it(extra):
    core = detached()
    for n in range(SESSION_QUEUE + extra):
        core.wait(entry(n + 1))
    granted = core.reopen(asked(2, TOKEN, fresh="t2"), 2.0)[-1]
    assert (granted.is_recovered, granted.missing) == (extra == 0, extra)
    again = core.reopen(asked(3, TOKEN, fresh="t3"), 2.0)[-1]
    assert again.missing == extra
    core.note_life(3.0)
    assert core.reopen(asked(4, "t3", fresh="t4"), 4.0)[-1].is_recovered


def test_what_is_shed_is_missing():
    core = detached()
    core.wait(entry())
    core.shed()
    core.miss(2)
    assert core.reopen(asked(2, TOKEN, fresh="t2"), 2.0)[-1].missing == 3


def test_what_is_given_up_after_an_answer_is_in_the_next_one():
    core = detached()
    core.miss(2)
    assert core.reopen(asked(2, TOKEN, fresh="t2"), 2.0)[-1].missing == 2
    core.miss(1)
    core.note_life(3.0)
    assert core.reopen(asked(3, "t2", fresh="t3"), 4.0)[-1].missing == 1
    core.note_life(5.0)
    assert core.reopen(asked(4, "t3", fresh="t4"), 6.0)[-1].is_recovered
