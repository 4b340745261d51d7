"""Durable messages: none that was kept is lost, none is handled twice, pairs keep their order."""

import math
from collections import deque

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm.bus.transactions import EndedDurables
from fsm.group.durable import (
    AcceptCore,
    Answered,
    Attached,
    Began,
    Deliver,
    DeliverCore,
    Detached,
    Fetch,
    Fetched,
    GaveUp,
    Kept,
    Listing,
    Offered,
    Reached,
    Tick,
    Trim,
    Trimmed,
    Unfetched,
)
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

R = "hyperty-runtime://a.ex/r"
A, B, C = (f"hyperty://a.ex/{name}" for name in "abc")
MINE = "key"


def message(number, from_=A, to=C):
    return Message(number, MessageType.CREATE, from_, to, {"value": number, "durable": True})


def kept(position, whose=MINE, from_=A, to=C):
    return Kept(position, message(position, from_, to), whose)


def answer(asked, code=200):
    return Message(asked.id, MessageType.RESPONSE, asked.to, asked.from_, {"code": code})


def attached(core, *entries, now=0.0):
    """Attach a runtime whose log has some entries; return what is to be done next."""
    (fetch,) = core.feed(Attached(R, MINE), now)
    assert (fetch.runtime, fetch.after, fetch.most) == (R, 0, DURABLE_WINDOW)
    return core.feed(Fetched(R, fetch.number, entries), now)


# ---- the end of the sender


def offered(number, size=10, from_=A):
    return Offered(message(number, from_), "by", R, b"x" * size)


def test_batches_go_one_after_the_other_and_in_order():
    core = AcceptCore("a.ex")
    numbers = range(2 * DURABLE_BATCH + 1)
    assert not any(core.offer(offered(number)) for number in numbers)
    went = []
    while batch := core.batch():
        assert core.batch() is None
        assert not core.is_settled
        assert core.answered(batch.number) == batch.offered
        went += [one.message.id for one in batch.offered]
        assert not core.answered(batch.number)
    assert went == [*numbers]
    assert core.is_settled


def test_an_answer_to_a_batch_that_was_given_up_is_none_to_the_next():
    core = AcceptCore("a.ex")
    core.offer(offered(1))
    first = core.batch()
    assert core.given_up() == first.offered
    core.offer(offered(2))
    second = core.batch()
    assert not core.answered(first.number)
    assert core.answered(second.number) == second.offered


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
    core.batch()
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
    core = DeliverCore()
    one, two, other = kept(1), kept(2), kept(3, from_=B)
    effects = attached(core, one, two, other)
    assert effects == [Deliver(R, 1, one.message), Deliver(R, 3, other.message)]
    assert core.feed(Answered(R, answer(one.message)), 1) == [
        Deliver(R, 2, two.message),
        Trim(R, 1),
    ]


def test_the_log_is_trimmed_up_to_the_first_that_has_not_ended():
    core = DeliverCore()
    one, two, three = kept(1), kept(2, from_=B), kept(3, to=B)
    attached(core, one, two, three)
    assert core.feed(Answered(R, answer(two.message)), 0) == []
    assert core.feed(Answered(R, answer(one.message)), 0) == [Trim(R, 2)]
    assert core.feed(Answered(R, answer(three.message)), 0) == []
    assert core.feed(Trimmed(R, 2, is_done=True), 0) == [Trim(R, 3)]


def test_a_trim_that_failed_is_made_again():
    core = DeliverCore()
    one = kept(1)
    attached(core, one)
    assert core.feed(Answered(R, answer(one.message)), 0) == [Trim(R, 1)]
    assert core.feed(Trimmed(R, 1, is_done=False), 5) == []
    assert core.deadline() == 5 + GROUP_RETRY
    assert core.feed(Tick(), 5 + GROUP_RETRY) == [Trim(R, 1)]


def test_what_has_ended_is_trimmed_when_the_link_goes():
    core = DeliverCore()
    one, two = kept(1), kept(2, from_=B)
    attached(core, one, two)
    core.feed(Answered(R, answer(one.message)), 0)
    core.feed(Answered(R, answer(two.message)), 0)
    core.feed(Trimmed(R, 1, is_done=False), 0)
    assert core.feed(Detached(R), 0) == [Trim(R, 2)]
    assert core.feed(Detached(R), 0) == []
    assert core.deadline() == math.inf


@pytest.mark.parametrize("code", [404, 503])
def test_an_answer_that_says_not_now_has_it_delivered_later(code):
    core = DeliverCore()
    one = kept(1)
    attached(core, one)
    for pause, at in ((DURABLE_PAUSE, 0), (2 * DURABLE_PAUSE, 10), (4 * DURABLE_PAUSE, 20)):
        assert core.feed(Answered(R, answer(one.message, code)), at) == []
        assert core.feed(Tick(), at + pause - 0.1) == []
        assert core.feed(Tick(), at + pause) == [Deliver(R, 1, one.message)]


@pytest.mark.parametrize("code", [200, 202, 400, 403, 408, 409, 410, 413, 500, 502, 504])
def test_any_other_answer_ends_it(code):
    core = DeliverCore()
    one = kept(1)
    attached(core, one)
    assert core.awaits(R, answer(one.message, code))
    assert core.feed(Answered(R, answer(one.message, code)), 0) == [Trim(R, 1)]
    assert not core.awaits(R, answer(one.message, code))


def test_a_provisional_answer_gives_it_more_time():
    core = DeliverCore()
    one = kept(1)
    attached(core, one)
    core.feed(Answered(R, answer(one.message, 183)), DURABLE_ANSWER - 1)
    assert core.feed(Tick(), DURABLE_ANSWER) == []
    late = 2 * DURABLE_ANSWER - 1
    assert core.feed(Tick(), late) == [Deliver(R, 1, one.message)]


def test_a_message_that_is_not_taken_is_given_up_and_the_next_goes():
    core = DeliverCore()
    one, two = kept(1), kept(2)
    attached(core, one, two)
    now = 0.0
    while (effects := core.feed(Tick(), now)) in ([], [Deliver(R, 1, one.message)]):
        now = core.deadline()
    assert now == DURABLE_PATIENCE
    (gave_up, trim) = effects
    assert (gave_up.message, trim) == (one.message, Trim(R, 1))
    assert core.feed(Tick(), core.deadline()) == [Deliver(R, 2, two.message)]


def test_the_log_of_a_runtime_of_another_owner_is_given_up():
    core = DeliverCore()
    theirs, mine = kept(1, "another"), kept(3)
    effects = attached(core, theirs, Kept(2, None), mine)
    assert [one.message for one in effects if isinstance(one, GaveUp)] == [theirs.message, None]
    assert effects[-1] == Deliver(R, 3, mine.message)
    assert core.feed(Answered(R, answer(mine.message)), 0) == [Trim(R, 3)]


def test_a_message_that_is_a_day_old_is_given_up_when_it_is_read_and_when_it_waits():
    """OBS-06."""
    core, old = DeliverCore(), attrs.evolve(kept(1), until=5.0)
    young = attrs.evolve(kept(2), until=30.0)
    gave_up, deliver = attached(core, old, young, now=5.0)
    assert (gave_up.message, deliver) == (old.message, Deliver(R, 2, young.message))
    assert "24 hours" in gave_up.why
    assert core.feed(Answered(R, answer(young.message, 404)), 29.5) == []
    again, trim = core.feed(Tick(), 30.5)
    assert (again.message, again.why, trim) == (young.message, gave_up.why, Trim(R, 2))


def test_a_log_with_nothing_that_can_be_delivered_is_trimmed():
    core = DeliverCore()
    gave_up, trim = attached(core, Kept(7, None))
    assert (gave_up.message, trim) == (None, Trim(R, 7))


def test_news_that_come_while_a_log_is_read_are_not_missed():
    core = DeliverCore()
    (fetch,) = core.feed(Attached(R, MINE), 0)
    assert core.feed(Reached(R, 5), 0) == []
    (again,) = core.feed(Fetched(R, fetch.number, ()), 0)
    assert isinstance(again, Fetch)
    # What was known before the log was read, and was not found, is gone.
    assert core.feed(Fetched(R, again.number, ()), 0) == []
    assert core.feed(Reached(R, 5), 0) == []
    assert core.feed(Reached(R, 6), 0) == [Fetch(R, again.number + 1, 0, DURABLE_WINDOW)]


def test_a_log_is_read_on_when_half_of_what_was_read_has_ended():
    core = DeliverCore()
    entries = [kept(number, from_=f"{A}{number}") for number in range(1, DURABLE_WINDOW + 1)]
    attached(core, *entries)
    fetches = []
    for one in entries:
        effects = core.feed(Answered(R, answer(one.message)), 0)
        fetches += [effect for effect in effects if isinstance(effect, Fetch)]
    assert [(one.after, one.most) for one in fetches] == [(DURABLE_WINDOW, DURABLE_WINDOW // 2)]


@pytest.mark.parametrize("blocked", [1, DURABLE_WINDOW // 2])
def test_messages_that_are_not_taken_hold_back_no_other_hyperty(blocked):
    core, log = DeliverCore(), [kept(number, to=B) for number in range(1, blocked + 1)]
    log += [kept(number, from_=f"{A}{number}") for number in range(blocked + 1, LOG_UNITS)]
    due, delivered = core.feed(Attached(R, MINE), 0), []
    while due:
        match due.pop(0):
            case Fetch(_, number, after, most):
                assert most <= DURABLE_WINDOW
                found = [one for one in log if one.position > after][:most]
                due += core.feed(Fetched(R, number, found), 0)
            case Deliver(_, position, asked) if position > blocked:
                delivered.append(position)
                due += core.feed(Answered(R, answer(asked)), 0)
    assert delivered == [*range(blocked + 1, LOG_UNITS)]
    trims = [core.feed(Answered(R, answer(one.message)), 1) for one in log[:blocked]]
    assert trims[0][-1] == Trim(R, 1 if blocked > 1 else LOG_UNITS - 1)


def test_a_node_holds_only_so_many_messages_of_a_runtime():
    core = DeliverCore()
    log = [kept(number, to=B) for number in range(1, 2 * DURABLE_WINDOW)]
    assert attached(core, *log[:DURABLE_WINDOW]) == [Deliver(R, 1, log[0].message)]
    for one in log[: DURABLE_WINDOW // 2 - 1]:
        due = core.feed(Answered(R, answer(one.message)), 0)
        assert not [effect for effect in due if isinstance(effect, Fetch)]


def test_a_log_that_cannot_be_read_is_read_later():
    core = DeliverCore()
    (fetch,) = core.feed(Attached(R, MINE), 0)
    assert core.feed(Unfetched(R, fetch.number), 3) == []
    assert core.deadline() == 3 + GROUP_RETRY
    (again,) = core.feed(Tick(), 3 + GROUP_RETRY)
    assert isinstance(again, Fetch)


def test_what_was_read_for_an_earlier_link_is_not_taken():
    core = DeliverCore()
    (old,) = core.feed(Attached(R, MINE), 0)
    (new,) = core.feed(Attached(R, MINE), 0)
    assert core.feed(Fetched(R, old.number, (kept(1),)), 0) == []
    assert core.feed(Fetched(R, new.number, (kept(1),)), 0) == [Deliver(R, 1, kept(1).message)]


def test_few_logs_are_read_at_a_time_and_all_have_their_turn():
    core = DeliverCore()
    names = [f"{R}{number}" for number in range(3 * DURABLE_FETCHES)]
    due = [effect for one in names for effect in core.feed(Attached(one, MINE), 0)]
    assert len(due) == DURABLE_FETCHES
    assert core.deadline() == math.inf
    read = []
    while due:
        fetch = due.pop()
        read.append(fetch.runtime)
        due += core.feed(Fetched(fetch.runtime, fetch.number, ()), 0)
        assert len(due) <= DURABLE_FETCHES
    assert sorted(read) == sorted(names)


def test_a_log_without_entries_is_not_read_until_it_has_one():
    core = DeliverCore()
    core.feed(Listing(), 0)
    core.feed(Reached(f"{R}2", 7), 0)
    assert core.feed(Attached(R, MINE), 0) == []
    assert core.deadline() == math.inf
    assert core.feed(Reached(R, 8), 0) == [Fetch(R, 1, 0, DURABLE_WINDOW)]


def test_a_log_that_was_listed_is_read_with_each_link_until_it_is_trimmed():
    core, one, two = DeliverCore(), kept(5), kept(6)
    core.feed(Listing(), 0)
    core.feed(Reached(R, 5), 0)
    for _ in range(2):
        (deliver,) = attached(core, one)
        core.feed(Detached(R), 0)
    attached(core, one)
    assert core.feed(Answered(R, answer(deliver.message)), 0) == [Trim(R, 5)]
    core.feed(Trimmed(R, 5, is_done=False), 0)
    core.feed(Detached(R), 0)
    attached(core, one)
    core.feed(Answered(R, answer(deliver.message)), 0)
    core.feed(Reached(R, 6), 0)
    core.feed(Trimmed(R, 5, is_done=True), 0)
    assert attached(core, two) == [Deliver(R, 6, two.message)]
    core.feed(Trimmed(R, 6, is_done=True), 0)
    assert core.feed(Attached(R, MINE), 0) == []


def test_what_was_listed_before_is_forgotten():
    core = DeliverCore()
    core.feed(Listing(), 0)
    core.feed(Reached(R, 5), 0)
    core.feed(Listing(), 0)
    assert core.feed(Attached(R, MINE), 0) == []


def test_if_too_many_logs_have_entries_each_is_read():
    core = DeliverCore()
    core.feed(Listing(), 0)
    for number in range(DURABLE_LOGS):
        core.feed(Reached(f"{R}{number}", number + 1), 0)
    assert core.feed(Attached(R, MINE), 0) == []
    core.feed(Reached(f"{R}x", DURABLE_LOGS + 1), 0)
    assert attached(core) == []
    core.feed(Listing(), 0)
    assert core.feed(Attached(R, MINE), 0) == []


def test_an_engine_that_can_be_asked_again_is_asked_again():
    core = DeliverCore()
    one = kept(1)
    attached(core, one)
    core.feed(Answered(R, answer(one.message)), 0)
    trim, fetch = core.feed(Began(), 0)
    assert trim == Trim(R, 1)
    assert fetch.after == 1


def test_answers_to_other_messages_are_not_awaited():
    core = DeliverCore()
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
    cores: list = attrs.field(factory=lambda: [DeliverCore(), DeliverCore()])
    news: list = attrs.field(factory=lambda: [[Listing()], [Listing()]])
    home: int | None = None
    now: float = 0.0
    due: deque = attrs.field(factory=deque)
    seen: EndedDurables = attrs.field(factory=EndedDurables)
    handled: list = attrs.field(factory=list)
    appended: list = attrs.field(factory=list)

    def feed(self, node, happened):
        self.due.extend((node, effect) for effect in self.cores[node].feed(happened, self.now))

    def append(self, pair):
        position = len(self.appended) + 1
        one = kept(position, from_=(A, B)[pair])
        self.appended.append(one)
        self.entries.append(one)
        for news in self.news:
            news.append(Reached(R, position))

    def attach(self, node):
        self.detach()
        self.home = node
        self.feed(node, Attached(R, MINE))

    def detach(self):
        if self.home is not None:
            self.feed(self.home, Detached(R))
        self.home = None

    def kill(self, node):
        """A node dies, and comes back as another process."""
        self.due = deque(one for one in self.due if one[0] != node)
        self.cores[node] = DeliverCore()
        self.news[node] = [Listing(), *self.listed()]
        if self.home == node:
            self.home = None

    def listed(self):
        """The last entry of the log, if it has one."""
        return [Reached(R, one.position) for one in self.entries[-1:]]

    def list_anew(self, node):
        """A node has the logs listed anew: what it has not heard yet does not come."""
        self.news[node] = [Listing(), *self.listed()]

    def restart(self):
        """The engine goes and comes back: what was under way fails, and news begin again."""
        asked, self.due = self.due, deque()
        for node, effect in asked:
            match effect:
                case Fetch(runtime, number):
                    self.feed(node, Unfetched(runtime, number))
                case Trim(runtime, position):
                    self.feed(node, Trimmed(runtime, position, is_done=False))
                case _:
                    self.due.append((node, effect))
        # What a node was not told before is told with the list; that it is a list, too.
        for news in self.news:
            news[:] = [one for one in news if isinstance(one, Listing)] + self.listed()

    def perform(self, outcome):
        """Do what is due next: all goes well, or the request or its answer is lost."""
        if not self.due:
            return
        node, effect = self.due.popleft()
        match effect:
            case Fetch(runtime, number, after, most):
                found = [one for one in self.entries if one.position > after][:most]
                is_read = outcome == "well"
                read = Fetched(runtime, number, found) if is_read else Unfetched(runtime, number)
                self.feed(node, read)
            case Trim():
                self.trim(node, effect, outcome)
            case Deliver(_, position, asked):
                if self.home == node and outcome != "request":
                    self.deliver(node, position, asked, is_answered=outcome == "well")
            case GaveUp():
                raise AssertionError(effect)

    def trim(self, node, asked, outcome):
        if outcome != "request":
            self.entries = [one for one in self.entries if one.position > asked.position]
        self.feed(node, Trimmed(asked.runtime, asked.position, is_done=outcome == "well"))

    def deliver(self, node, position, asked, *, is_answered):
        if not self.seen.has(asked, position):
            self.seen.add(asked, position)
            self.handled.append(asked)
        if is_answered and self.cores[node].awaits(R, answer(asked)):
            self.feed(node, Answered(R, answer(asked)))

    def hear(self, node):
        """A node hears the next of what is new, late; of several entries the last is enough."""
        if self.news[node]:
            self.feed(node, self.news[node].pop(0))

    def skip(self, node):
        """A node is slow: of several entries that it has not heard of, the last one is enough."""
        listings = [one for one in self.news[node] if isinstance(one, Listing)]
        reached = [one for one in self.news[node] if isinstance(one, Reached)]
        self.news[node] = [*listings, *reached[-1:]]

    def tick(self):
        for node, core in enumerate(self.cores):
            if core.deadline() < self.now + DURABLE_ANSWER + 1:
                self.now = max(self.now, core.deadline())
                self.feed(node, Tick())


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
