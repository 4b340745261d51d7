"""Durable messages: none that was kept is lost, none is handled twice, pairs keep their order."""

import math
from collections import deque

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm.bus.transactions import EndedDurables
from fsm.group.durable import AcceptCore, DeliverCore, Kept, LogPort, Offered
from specs.limits.engine import LOG_UNITS
from specs.limits.group import (
    DURABLE_ANSWER,
    DURABLE_BATCH,
    DURABLE_FETCHES,
    DURABLE_LOGS,
    DURABLE_PATIENCE,
    DURABLE_PAUSE,
    DURABLE_WAITING,
    DURABLE_WAITING_BYTES,
    DURABLE_WINDOW,
    GROUP_RETRY,
)
from specs.message import Message, MessageType
from tests.support.link_calls import Calls, Told, is_asked

R = "hyperty-runtime://a.ex/r"
A, B, C = (f"hyperty://a.ex/{name}" for name in "abc")
MINE = "key"

tell, asks = Calls(DeliverCore), Calls(LogPort)


def deliverer():
    return Told(LogPort, DeliverCore)


def message(number, from_=A, to=C):
    return Message(number, MessageType.CREATE, from_, to, {"value": number, "durable": True})


def kept(position, whose=MINE, from_=A, to=C):
    return Kept(position, message(position, from_, to), whose)


def answer(asked, code=200):
    return Message(asked.id, MessageType.RESPONSE, asked.to, asked.from_, {"code": code})


def attached(core, *entries, now=0.0):
    """Attach a runtime whose log has some entries; return what is to be done next."""
    (fetch,) = core.tell(tell.attach(R, MINE), now)
    assert (fetch.runtime, fetch.after, fetch.most) == (R, 0, DURABLE_WINDOW)
    return core.tell(tell.take_entries(R, fetch.number, entries), now)


# ---- the end of the sender


def offered(number, size=10, from_=A):
    return Offered(message(number, from_), "by", R, b"x" * size)


def test_batches_go_one_after_the_other_and_in_order():
    core = AcceptCore("a.ex")
    numbers = range(2 * DURABLE_BATCH + 1)
    assert not any(core.offer(offered(number)) for number in numbers)
    went = []
    while batch := core.begin_batch():
        number, messages = batch
        assert core.begin_batch() is None
        assert not core.is_settled
        assert core.end_batch(number) == messages
        went += [one.message.id for one in messages]
        assert not core.end_batch(number)
    assert went == [*numbers]
    assert core.is_settled


def test_an_answer_to_a_batch_that_was_given_up_is_none_to_the_next():
    core = AcceptCore("a.ex")
    core.offer(offered(1))
    first, messages = core.begin_batch()
    assert core.give_up_batch() == messages
    core.offer(offered(2))
    second, messages = core.begin_batch()
    assert not core.end_batch(first)
    assert core.end_batch(second) == messages


@pytest.mark.parametrize(("size", "most"), [(1, DURABLE_WAITING), (DURABLE_WAITING_BYTES // 4, 4)])
def test_what_waits_is_bounded(size, most):
    """And one user has half of it."""
    core = AcceptCore("a.ex")
    mine = [core.offer(offered(number, size)) for number in range(most // 2 + 1)]
    assert not any(mine[:-1])
    assert mine[-1].code == 503
    assert mine[-1].why.startswith("a user has at most ")
    others = [core.offer(offered(number, size, B)) for number in range(most // 2)]
    assert not any(others)
    assert core.offer(offered(0, size, C)).why.startswith("the node has room for ")
    core.begin_batch()
    assert core.offer(offered(0, size)) is None


def test_another_domain_is_one_user_however_many_senders_it_names():
    core = AcceptCore("a.ex")
    others = [
        core.offer(offered(number, 1, f"hyperty://b.ex/{number}"))
        for number in range(DURABLE_WAITING // 2 + 1)
    ]
    assert not any(others[:-1])
    assert others[-1].code == 503
    assert core.offer(offered(0)) is None


# ---- the end of the receiver


def test_one_message_of_a_pair_is_delivered_at_a_time():
    core = deliverer()
    one, two, other = kept(1), kept(2), kept(3, from_=B)
    effects = attached(core, one, two, other)
    assert effects == [asks.deliver(R, 1, one.message), asks.deliver(R, 3, other.message)]
    assert core.tell(tell.take_answer(R, answer(one.message)), 1) == [
        asks.deliver(R, 2, two.message),
        asks.trim(R, 1),
    ]


def test_the_log_is_trimmed_up_to_the_first_that_has_not_ended():
    core = deliverer()
    one, two, three = kept(1), kept(2, from_=B), kept(3, to=B)
    attached(core, one, two, three)
    assert core.tell(tell.take_answer(R, answer(two.message)), 0) == []
    assert core.tell(tell.take_answer(R, answer(one.message)), 0) == [asks.trim(R, 2)]
    assert core.tell(tell.take_answer(R, answer(three.message)), 0) == []
    assert core.tell(tell.take_trim(R, 2, is_done=True), 0) == [asks.trim(R, 3)]


def test_a_trim_that_failed_is_made_again():
    core = deliverer()
    one = kept(1)
    attached(core, one)
    assert core.tell(tell.take_answer(R, answer(one.message)), 0) == [asks.trim(R, 1)]
    assert core.tell(tell.take_trim(R, 1, is_done=False), 5) == []
    assert core.deadline() == 5 + GROUP_RETRY
    assert core.tell(tell.tick(), 5 + GROUP_RETRY) == [asks.trim(R, 1)]


def test_what_has_ended_is_trimmed_when_the_link_goes():
    core = deliverer()
    one, two = kept(1), kept(2, from_=B)
    attached(core, one, two)
    core.tell(tell.take_answer(R, answer(one.message)), 0)
    core.tell(tell.take_answer(R, answer(two.message)), 0)
    core.tell(tell.take_trim(R, 1, is_done=False), 0)
    assert core.tell(tell.detach(R), 0) == [asks.trim(R, 2)]
    assert core.tell(tell.detach(R), 0) == []
    assert core.deadline() == math.inf


@pytest.mark.parametrize("code", [404, 503])
def test_an_answer_that_says_not_now_has_it_delivered_later(code):
    core = deliverer()
    one = kept(1)
    attached(core, one)
    for pause, at in ((DURABLE_PAUSE, 0), (2 * DURABLE_PAUSE, 10), (4 * DURABLE_PAUSE, 20)):
        assert core.tell(tell.take_answer(R, answer(one.message, code)), at) == []
        assert core.tell(tell.tick(), at + pause - 0.1) == []
        assert core.tell(tell.tick(), at + pause) == [asks.deliver(R, 1, one.message)]


@pytest.mark.parametrize("code", [200, 202, 400, 403, 408, 409, 410, 413, 500, 502, 504])
def test_any_other_answer_ends_it(code):
    core = deliverer()
    one = kept(1)
    attached(core, one)
    assert core.awaits(R, answer(one.message, code))
    assert core.tell(tell.take_answer(R, answer(one.message, code)), 0) == [asks.trim(R, 1)]
    assert not core.awaits(R, answer(one.message, code))


def test_a_provisional_answer_gives_it_more_time():
    core = deliverer()
    one = kept(1)
    attached(core, one)
    core.tell(tell.take_answer(R, answer(one.message, 183)), DURABLE_ANSWER - 1)
    assert core.tell(tell.tick(), DURABLE_ANSWER) == []
    late = 2 * DURABLE_ANSWER - 1
    assert core.tell(tell.tick(), late) == [asks.deliver(R, 1, one.message)]


def test_a_message_that_is_not_taken_is_given_up_and_the_next_goes():
    core = deliverer()
    one, two = kept(1), kept(2)
    attached(core, one, two)
    now = 0.0
    while (effects := core.tell(tell.tick(), now)) in ([], [asks.deliver(R, 1, one.message)]):
        now = core.deadline()
    assert now == DURABLE_PATIENCE
    (gave_up, trim) = effects
    assert (gave_up.message, trim) == (one.message, asks.trim(R, 1))
    assert core.tell(tell.tick(), core.deadline()) == [asks.deliver(R, 2, two.message)]


def test_the_log_of_a_runtime_of_another_owner_is_given_up():
    core = deliverer()
    theirs, mine = kept(1, "another"), kept(3)
    effects = attached(core, theirs, Kept(2, None), mine)
    assert [one.message for one in effects if is_asked(one, "give_up")] == [theirs.message, None]
    assert effects[-1] == asks.deliver(R, 3, mine.message)
    assert core.tell(tell.take_answer(R, answer(mine.message)), 0) == [asks.trim(R, 3)]


def test_a_message_that_is_a_day_old_is_given_up_when_it_is_read_and_when_it_waits():
    """OBS-06."""
    core, old = deliverer(), attrs.evolve(kept(1), until=5.0)
    young = attrs.evolve(kept(2), until=30.0)
    gave_up, deliver = attached(core, old, young, now=5.0)
    assert (gave_up.message, deliver) == (old.message, asks.deliver(R, 2, young.message))
    assert "24 hours" in gave_up.why
    assert core.tell(tell.take_answer(R, answer(young.message, 404)), 29.5) == []
    again, trim = core.tell(tell.tick(), 30.5)
    assert (again.message, again.why, trim) == (young.message, gave_up.why, asks.trim(R, 2))


def test_a_log_with_nothing_that_can_be_delivered_is_trimmed():
    core = deliverer()
    gave_up, trim = attached(core, Kept(7, None))
    assert (gave_up.message, trim) == (None, asks.trim(R, 7))


def test_news_that_come_while_a_log_is_read_are_not_missed():
    core = deliverer()
    (fetch,) = core.tell(tell.attach(R, MINE), 0)
    assert core.tell(tell.add_entry(R, 5), 0) == []
    (again,) = core.tell(tell.take_entries(R, fetch.number, ()), 0)
    assert is_asked(again, "fetch")
    # What was known before the log was read, and was not found, is gone.
    assert core.tell(tell.take_entries(R, again.number, ()), 0) == []
    assert core.tell(tell.add_entry(R, 5), 0) == []
    assert core.tell(tell.add_entry(R, 6), 0) == [
        asks.fetch(R, again.number + 1, 0, DURABLE_WINDOW)
    ]


def test_a_log_is_read_on_when_half_of_what_was_read_has_ended():
    core = deliverer()
    entries = [kept(number, from_=f"{A}{number}") for number in range(1, DURABLE_WINDOW + 1)]
    attached(core, *entries)
    fetches = []
    for one in entries:
        effects = core.tell(tell.take_answer(R, answer(one.message)), 0)
        fetches += [effect for effect in effects if is_asked(effect, "fetch")]
    assert [(one.after, one.most) for one in fetches] == [(DURABLE_WINDOW, DURABLE_WINDOW // 2)]


@pytest.mark.parametrize("blocked", [1, DURABLE_WINDOW // 2])
def test_messages_that_are_not_taken_hold_back_no_other_hyperty(blocked):
    core, log = deliverer(), [kept(number, to=B) for number in range(1, blocked + 1)]
    log += [kept(number, from_=f"{A}{number}") for number in range(blocked + 1, LOG_UNITS)]
    due, delivered = core.tell(tell.attach(R, MINE), 0), []
    while due:
        asked = due.pop(0)
        if is_asked(asked, "fetch"):
            assert asked.most <= DURABLE_WINDOW
            read = [one for one in log if one.position > asked.after][: asked.most]
            due += core.tell(tell.take_entries(R, asked.number, read), 0)
        elif is_asked(asked, "deliver") and asked.position > blocked:
            delivered.append(asked.position)
            due += core.tell(tell.take_answer(R, answer(asked.message)), 0)
    assert delivered == [*range(blocked + 1, LOG_UNITS)]
    trims = [core.tell(tell.take_answer(R, answer(one.message)), 1) for one in log[:blocked]]
    assert trims[0][-1] == asks.trim(R, 1 if blocked > 1 else LOG_UNITS - 1)


def test_a_node_holds_only_so_many_messages_of_a_runtime():
    core = deliverer()
    log = [kept(number, to=B) for number in range(1, 2 * DURABLE_WINDOW)]
    assert attached(core, *log[:DURABLE_WINDOW]) == [asks.deliver(R, 1, log[0].message)]
    for one in log[: DURABLE_WINDOW // 2 - 1]:
        due = core.tell(tell.take_answer(R, answer(one.message)), 0)
        assert not [effect for effect in due if is_asked(effect, "fetch")]


def test_a_log_that_cannot_be_read_is_read_later():
    core = deliverer()
    (fetch,) = core.tell(tell.attach(R, MINE), 0)
    assert core.tell(tell.take_entries(R, fetch.number, None), 3) == []
    assert core.deadline() == 3 + GROUP_RETRY
    (again,) = core.tell(tell.tick(), 3 + GROUP_RETRY)
    assert is_asked(again, "fetch")


def test_what_was_read_for_an_earlier_link_is_not_taken():
    core = deliverer()
    (old,) = core.tell(tell.attach(R, MINE), 0)
    (new,) = core.tell(tell.attach(R, MINE), 0)
    assert core.tell(tell.take_entries(R, old.number, (kept(1),)), 0) == []
    assert core.tell(tell.take_entries(R, new.number, (kept(1),)), 0) == [
        asks.deliver(R, 1, kept(1).message)
    ]


def test_few_logs_are_read_at_a_time_and_all_have_their_turn():
    core = deliverer()
    names = [f"{R}{number}" for number in range(3 * DURABLE_FETCHES)]
    due = [effect for one in names for effect in core.tell(tell.attach(one, MINE), 0)]
    assert len(due) == DURABLE_FETCHES
    assert core.deadline() == math.inf
    read = []
    while due:
        fetch = due.pop()
        read.append(fetch.runtime)
        due += core.tell(tell.take_entries(fetch.runtime, fetch.number, ()), 0)
        assert len(due) <= DURABLE_FETCHES
    assert sorted(read) == sorted(names)


def test_a_log_without_entries_is_not_read_until_it_has_one():
    core = deliverer()
    core.tell(tell.begin_list(), 0)
    core.tell(tell.add_entry(f"{R}2", 7), 0)
    assert core.tell(tell.attach(R, MINE), 0) == []
    assert core.deadline() == math.inf
    assert core.tell(tell.add_entry(R, 8), 0) == [asks.fetch(R, 1, 0, DURABLE_WINDOW)]


def test_a_log_that_was_listed_is_read_with_each_link_until_it_is_trimmed():
    core, one, two = deliverer(), kept(5), kept(6)
    core.tell(tell.begin_list(), 0)
    core.tell(tell.add_entry(R, 5), 0)
    for _ in range(2):
        (deliver,) = attached(core, one)
        core.tell(tell.detach(R), 0)
    attached(core, one)
    assert core.tell(tell.take_answer(R, answer(deliver.message)), 0) == [asks.trim(R, 5)]
    core.tell(tell.take_trim(R, 5, is_done=False), 0)
    core.tell(tell.detach(R), 0)
    attached(core, one)
    core.tell(tell.take_answer(R, answer(deliver.message)), 0)
    core.tell(tell.add_entry(R, 6), 0)
    core.tell(tell.take_trim(R, 5, is_done=True), 0)
    assert attached(core, two) == [asks.deliver(R, 6, two.message)]
    core.tell(tell.take_trim(R, 6, is_done=True), 0)
    assert core.tell(tell.attach(R, MINE), 0) == []


def test_what_was_listed_before_is_forgotten():
    core = deliverer()
    core.tell(tell.begin_list(), 0)
    core.tell(tell.add_entry(R, 5), 0)
    core.tell(tell.begin_list(), 0)
    assert core.tell(tell.attach(R, MINE), 0) == []


def test_if_too_many_logs_have_entries_each_is_read():
    core = deliverer()
    core.tell(tell.begin_list(), 0)
    for number in range(DURABLE_LOGS):
        core.tell(tell.add_entry(f"{R}{number}", number + 1), 0)
    assert core.tell(tell.attach(R, MINE), 0) == []
    core.tell(tell.add_entry(f"{R}x", DURABLE_LOGS + 1), 0)
    assert attached(core) == []
    core.tell(tell.begin_list(), 0)
    assert core.tell(tell.attach(R, MINE), 0) == []


def test_an_engine_that_can_be_asked_again_is_asked_again():
    core = deliverer()
    one = kept(1)
    attached(core, one)
    core.tell(tell.take_answer(R, answer(one.message)), 0)
    trim, fetch = core.tell(tell.begin(), 0)
    assert trim == asks.trim(R, 1)
    assert fetch.after == 1


def test_answers_to_other_messages_are_not_awaited():
    core = deliverer()
    one = kept(1)
    attached(core, one)
    assert not core.awaits(R, answer(message(2)))
    assert not core.awaits("hyperty-runtime://a.ex/other", answer(one.message))
    assert not core.awaits(R, answer(message(1, from_=B)))


# ---- a whole world


@attrs.define
class WorldOfLogs:
    """A log, the nodes that deliver from it, and a runtime that handles each message once.

    Attributes:
        news: What each node has not heard yet of the log: positions, and that it is listed.
    """

    entries: list = attrs.field(factory=list)
    cores: list = attrs.field(factory=lambda: [deliverer(), deliverer()])
    news: list = attrs.field(factory=lambda: [[tell.begin_list()], [tell.begin_list()]])
    home: int | None = None
    now: float = 0.0
    due: deque = attrs.field(factory=deque)
    seen: EndedDurables = attrs.field(factory=EndedDurables)
    handled: list = attrs.field(factory=list)
    appended: list = attrs.field(factory=list)

    def feed(self, node, happened):
        self.due.extend((node, effect) for effect in self.cores[node].tell(happened, self.now))

    def append(self, pair):
        position = len(self.appended) + 1
        one = kept(position, from_=(A, B)[pair])
        self.appended.append(one)
        self.entries.append(one)
        for news in self.news:
            news.append(tell.add_entry(R, position))

    def attach(self, node):
        self.detach()
        self.home = node
        self.feed(node, tell.attach(R, MINE))

    def detach(self):
        if self.home is not None:
            self.feed(self.home, tell.detach(R))
        self.home = None

    def kill(self, node):
        """A node dies, and comes back as another process."""
        self.due = deque(one for one in self.due if one[0] != node)
        self.cores[node] = deliverer()
        self.news[node] = [tell.begin_list(), *self.listed()]
        if self.home == node:
            self.home = None

    def listed(self):
        """The last entry of the log, if it has one."""
        return [tell.add_entry(R, one.position) for one in self.entries[-1:]]

    def list_anew(self, node):
        """A node has the logs listed anew: what it has not heard yet does not come."""
        self.news[node] = [tell.begin_list(), *self.listed()]

    def restart(self):
        """The engine goes and comes back: what was under way fails, and news begin again."""
        asked, self.due = self.due, deque()
        for node, effect in asked:
            match effect.name:
                case "fetch":
                    self.feed(node, tell.take_entries(effect.runtime, effect.number, None))
                case "trim":
                    self.feed(node, tell.take_trim(effect.runtime, effect.position, is_done=False))
                case _:
                    self.due.append((node, effect))
        # What a node was not told before is told with the list; that it is a list, too.
        for news in self.news:
            news[:] = [one for one in news if is_asked(one, "begin_list")] + self.listed()

    def perform(self, outcome):
        """Do what is due next: all goes well, or the request or its answer is lost."""
        if not self.due:
            return
        node, effect = self.due.popleft()
        match effect.name:
            case "fetch":
                read = [one for one in self.entries if one.position > effect.after][: effect.most]
                entries = read if outcome == "well" else None
                self.feed(node, tell.take_entries(effect.runtime, effect.number, entries))
            case "trim":
                self.trim(node, effect, outcome)
            case "deliver":
                if self.home == node and outcome != "request":
                    is_answered = outcome == "well"
                    self.deliver(node, effect.position, effect.message, is_answered=is_answered)
            case _:
                raise AssertionError(effect)

    def trim(self, node, asked, outcome):
        if outcome != "request":
            self.entries = [one for one in self.entries if one.position > asked.position]
        self.feed(node, tell.take_trim(asked.runtime, asked.position, is_done=outcome == "well"))

    def deliver(self, node, position, asked, *, is_answered):
        if not self.seen.has(asked, position):
            self.seen.add(asked, position)
            self.handled.append(asked)
        if is_answered and self.cores[node].awaits(R, answer(asked)):
            self.feed(node, tell.take_answer(R, answer(asked)))

    def hear(self, node):
        """A node hears the next of what is new, late; of several entries the last is enough."""
        if self.news[node]:
            self.feed(node, self.news[node].pop(0))

    def skip(self, node):
        """A node is slow: of several entries that it has not heard of, the last one is enough."""
        listings = [one for one in self.news[node] if is_asked(one, "begin_list")]
        reached = [one for one in self.news[node] if is_asked(one, "add_entry")]
        self.news[node] = [*listings, *reached[-1:]]

    def tick(self):
        for node, core in enumerate(self.cores):
            if core.deadline() < self.now + DURABLE_ANSWER + 1:
                self.now = max(self.now, core.deadline())
                self.feed(node, tell.tick())


STEPS = st.sampled_from([
    *[("append", 0), ("append", 1)],
    *[("perform", "well")] * 8,
    *[("perform", "request"), ("perform", "answer")] * 2,
    *[("hear", 0), ("hear", 1)] * 2,
    *[("skip", 0), ("skip", 1), ("list_anew", 0), ("list_anew", 1)],
    *[("attach", 0), ("attach", 1)] * 2,
    *[("kill", 0), ("kill", 1), ("detach",), ("tick",), ("restart",)],
])  # fmt: skip


@settings(max_examples=1000)
@given(st.lists(STEPS, min_size=20, max_size=60), st.integers(0, 1))
def test_whatever_happens_each_message_is_handled_once_and_in_order(steps, last):
    """A node takes the log to be empty until it hears of an entry; none is lost by that."""
    world = WorldOfLogs()
    world.attach(0)
    for step, *about in steps:
        getattr(world, step)(*about)
    world.attach(last)
    for _ in range(2000):
        world.perform("well")
        for node in (0, 1):
            world.hear(node)
        if not world.due:
            if not world.entries:
                break
            world.tick()
    assert not world.entries
    for from_ in (A, B):
        wanted = [one.message.id for one in world.appended if one.message.from_ == from_]
        assert [one.id for one in world.handled if one.from_ == from_] == wanted
