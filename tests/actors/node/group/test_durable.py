"""Durable messages of runtimes at several nodes of one domain."""

from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace

import attrs
import pytest
import trio

import actors
from actors.hyperties import Caller
from actors.kit.supervision.actor import Mailbox
from actors.node.group import engine_client
from specs.limits.engine import LOG_UNITS
from specs.limits.group import (
    DURABLE_ANSWER,
    DURABLE_PATIENCE,
    DURABLE_PAUSE,
    GROUP_LEASE,
)
from specs.limits.protocol import DEDUP_SECONDS, REPLY_TIMEOUT, SESSION_IDLE
from specs.reply_code import DropReason, LinkEnd
from tests.actors.node.group.test_domain import runtimes
from tests.actors.node.links.test_outbox_budget import LIMITS, clog, pile_up, refusals
from tests.support.node.group_world import open_group, resumed
from tests.support.node.node_peer import RA, RB, Peer, World
from transports.engine.contract import LogFullError


class Ledger(actors.Hyperty):
    """Keeps what it is asked to keep, in order.

    Args:
        kept: Gets it.
    """

    def __init__(self, kept: list) -> None:
        self.kept = kept

    async def on_request(self, message):
        self.kept.append(message.value)
        return len(self.kept)


@pytest.fixture
async def group(autojump_clock):
    async with open_group(3) as world:
        yield world


async def until(is_so) -> None:
    with trio.fail_after(60):
        while not is_so():  # noqa: ASYNC110
            await trio.sleep(0.1)


@asynccontextmanager
async def parties(group, made, count: int = 2):
    """Open runtimes, one at each node in turn; the last has a receiver, the first a caller.

    Yields:
        The first and the last runtime, the receiver and the caller.
    """
    async with runtimes(group, count) as (first, *_, last):
        receiver = await last.runtime.deploy(made)
        yield first, last, receiver, await first.runtime.deploy(Caller)


async def accepted(caller, to, *values) -> None:
    """Send durable requests, one after the other; all are accepted."""
    for value in values:
        answer = await caller.request(to, value, durable=True)
        assert (answer.code, answer.value) == (202, None), answer.body


async def test_a_durable_request_is_accepted_and_comes_once(group, autojump_clock):
    kept = []
    async with parties(group, partial(Ledger, kept)) as (_, _, ledger, caller):
        await accepted(caller, ledger.url, *range(5))
        await until(lambda: len(kept) == 5)
        await trio.sleep(60)
    assert kept == [*range(5)]
    assert not group.store.entries()


async def test_it_waits_for_a_runtime_that_is_away_and_comes_in_order(group, autojump_clock):
    """The runtime's node dies; the runtime comes to another one after minutes."""
    one, two, _ = group.nodes
    kept = []
    async with parties(group, partial(Ledger, kept)) as (_, second, ledger, caller):
        await accepted(caller, ledger.url, 0)
        await until(lambda: kept == [0])
        await group.kill(two)
        await accepted(caller, ledger.url, *range(1, 30))
        await trio.sleep(300)
        await accepted(caller, ledger.url, 30)
        assert kept == [0]
        second.go(one)
        await until(lambda: len(kept) > 30)
        await trio.sleep(60)
    assert kept == [*range(31)]
    assert not group.store.entries()


async def test_it_is_kept_too_for_a_runtime_that_has_come_back_at_a_third_node(
    group, autojump_clock
):
    """The runtime subscribes there to its own addresses, as any that has come back."""
    _, two, three = group.nodes
    kept = []
    async with parties(group, partial(Ledger, kept)) as (_, second, ledger, caller):
        await accepted(caller, ledger.url, 0)
        await group.kill(two)
        second.go(three)
        await trio.sleep(60)
        await accepted(caller, ledger.url, 1)
        await until(lambda: len(kept) > 1)
    assert kept == [0, 1]


async def test_others_of_its_sender_need_not_wait_for_it(group, autojump_clock):
    """I-B7: the durable message takes longer, and each class of messages is judged for itself."""
    kept = []
    async with parties(group, partial(Ledger, kept)) as (_, _, ledger, caller):
        group.store.slow(1.0, group.nodes[1].engine)
        await accepted(caller, ledger.url, "durable")
        assert (await caller.request(ledger.url, "other")).code == 200
        await until(lambda: len(kept) > 1)
    assert kept == ["other", "durable"]


async def test_it_outlives_the_node_that_has_accepted_it(group, autojump_clock):
    one, _, three = group.nodes
    kept = []
    async with parties(group, partial(Ledger, kept)) as (first, _, ledger, caller):
        group.store.slow(0.5, group.nodes[1].engine)
        await accepted(caller, ledger.url, 0)
        assert not kept
        first.go(three)
        await group.kill(one)
        await until(lambda: kept == [0])


async def test_a_node_that_starts_later_knows_which_logs_have_entries(group, autojump_clock):
    """None of the nodes is left that heard of the entries when they came."""
    one, two, three = group.nodes
    kept = []
    async with parties(group, partial(Ledger, kept)) as (_, second, ledger, caller):
        await group.kill(two)
        await accepted(caller, ledger.url, *range(3))
        fresh = await group.node()
        await group.kill(one)
        await group.kill(three)
        second.go(fresh)
        await until(lambda: kept == [0, 1, 2])
    assert not group.store.entries()


LISTING = 60.0
"""Seconds between two lists of the logs, not the hour: nodes have enough to do in a minute."""


async def test_only_logs_that_have_entries_are_read(monkeypatch, autojump_clock):
    """A log that another node has trimmed is read until the logs are listed anew."""
    monkeypatch.setattr(engine_client, "DURABLE_LISTING", LISTING)
    kept, read = [], []
    async with open_group(3) as group, parties(group, partial(Ledger, kept)) as parts:
        first, second, ledger, caller = parts
        one, two, three = group.nodes
        fetch = group.store.fetch

        def noted(log, after, most):
            read.append(log)
            return fetch(log, after, most)

        async def go(from_, to):
            for place in (first, second):
                place.go(to)
            await group.kill(from_)
            await group.has(to, second.runtime.url, "open")
            await trio.sleep(1)

        monkeypatch.setattr(group.store, "fetch", noted)
        await accepted(caller, ledger.url, 0)
        await until(lambda: kept == [0])
        assert read == [second.runtime.url]
        await go(two, one)
        assert read == [second.runtime.url] * 2
        await trio.sleep(LISTING)
        await go(one, three)
        assert len(read) == 2


class Closed:
    """An engine whose handle is closed, the bus of its node, and what the bus knows of logs."""

    def __init__(self):
        self.lists = 0
        self.client = engine_client.EngineClient(SimpleNamespace(engine=self), self)

    def begin_list(self):
        self.lists += 1

    @asynccontextmanager
    async def follow_logs(self):
        send, receive = trio.open_memory_channel(1)
        send.close()
        yield receive

    async def tell(self, call):
        call(SimpleNamespace(group=SimpleNamespace(durable=self)))
        assert self.lists == 1


async def test_what_follows_logs_ends_with_its_engine():
    closed = Closed()
    await closed.client._follow_logs()
    assert closed.lists == 1


async def test_a_log_that_ends_begins_nothing_more():
    """Who asks is answered at once, and does not wait for an answer that never comes."""
    client = Closed().client
    async with trio.open_nursery() as nursery:
        client.enter(Mailbox("logs", 1), nursery, lambda: None)
        await client.closing()
        assert not client.begin(client.fetch, "r", 1, 0, 1)


async def test_what_was_delivered_is_not_delivered_again_by_the_next_node(group, autojump_clock):
    """The node dies before the log is trimmed; the runtime is away for longer than any window."""
    one, two, _ = group.nodes
    kept = []
    async with parties(group, partial(Ledger, kept)) as (_, second, ledger, caller):
        group.store.slow(2.0, two.engine)
        await accepted(caller, ledger.url, *range(3))
        await until(lambda: kept == [0, 1, 2])
        await group.kill(two)
        assert len(group.store.entries()) == 3
        await trio.sleep(DEDUP_SECONDS - GROUP_LEASE)
        await accepted(caller, ledger.url, 3)
        second.go(one)
        await until(lambda: len(kept) > 3)
        await until(lambda: not group.store.entries())
    assert kept == [0, 1, 2, 3]


@pytest.mark.parametrize("code", [404, 409, 500, 503])
async def test_a_refusal_of_the_hyperty_ends_it(group, autojump_clock, code):
    """The hyperty has had it, and does not get it again."""
    seen = []

    class Unwilling(actors.Hyperty):
        async def on_request(self, message):
            seen.append(message.value)
            raise actors.Refused(code, "no")

    async with parties(group, Unwilling) as (_, _, unwilling, caller):
        await accepted(caller, unwilling.url, 0, 1)
        await until(lambda: not group.store.entries())
        await trio.sleep(60)
    assert seen == [0, 1]


async def test_a_hyperty_that_is_slow_gets_the_next_one_after_its_time(group, autojump_clock):
    seen = []

    class Slow(actors.Hyperty):
        async def on_request(self, message):
            seen.append(message.value)
            if message.value == 0:
                await trio.sleep(3 * REPLY_TIMEOUT)

    async with parties(group, Slow) as (_, _, slow, caller):
        await accepted(caller, slow.url, 0, 1)
        await trio.sleep(REPLY_TIMEOUT - 1)
        assert seen == [0]
        await until(lambda: not group.store.entries())
        await trio.sleep(60)
    assert seen == [0, 1]


@pytest.mark.long
async def test_a_full_log_refuses_and_nothing_is_lost(group, autojump_clock):
    one, two, _ = group.nodes
    kept = []
    async with parties(group, partial(Ledger, kept)) as (_, second, ledger, caller):
        await group.kill(two)
        await accepted(caller, ledger.url, *range(LOG_UNITS))
        answer = await caller.request(ledger.url, "too much", durable=True)
        assert (answer.code, "full" in answer.body["description"]) == (503, True)
        second.go(one)
        await until(lambda: len(kept) == LOG_UNITS)
        await accepted(caller, ledger.url, LOG_UNITS)
        await until(lambda: len(kept) > LOG_UNITS)
    assert kept == [*range(LOG_UNITS + 1)]


async def test_without_the_engine_it_is_refused_and_others_go_on(group, autojump_clock):
    kept = []
    async with parties(group, partial(Ledger, kept), 4) as (_, _, ledger, caller):
        group.store.stop()
        answer = await caller.request(ledger.url, "durable", durable=True)
        assert (answer.code, "engine" in answer.body["description"]) == (503, True)
        assert (await caller.request(ledger.url, "not")).code == 200
        group.store.start()
        await accepted(caller, ledger.url, "again")
        await until(lambda: kept == ["not", "again"])


@pytest.mark.parametrize("is_done", [True, False])
async def test_an_unknown_outcome_is_said_to_be_unknown(group, autojump_clock, is_done):
    kept = []
    async with parties(group, partial(Ledger, kept)) as (_, _, ledger, caller):
        (group.store.answer_no_more if is_done else group.store.swallow)(1, group.nodes[0].engine)
        answer = await caller.request(ledger.url, 1, durable=True)
        assert (answer.code, "not known" in answer.body["description"]) == (503, True)
        await accepted(caller, ledger.url, 2)
        await until(lambda: kept == ([1, 2] if is_done else [2]))


async def test_a_node_without_an_engine_refuses_it(autojump_clock):
    async with (
        actors.open_node("a.example") as node,
        actors.open_runtime("a.example", "ra", node=node.url) as ra,
        actors.open_runtime("a.example", "rb", node=node.url) as rb,
    ):
        ledger = await rb.deploy(partial(Ledger, []))
        caller = await ra.deploy(Caller)
        answer = await caller.request(ledger.url, 1, durable=True)
        assert (answer.code, "no engine" in answer.body["description"]) == (403, True)


# ---- plain peers


@attrs.define
class Ends:
    """A sender and a receiver at two nodes, and their addresses."""

    sender: Peer
    from_: str
    receiver: Peer
    to: str

    async def send(self, value, *, durable: object = True):
        asked = {"value": value, "durable": durable}
        return await self.sender.ask("create", self.from_, self.to, **asked)


async def ends_at(one: World, other: World) -> Ends:
    sender, receiver = await one.peer(RA), await other.peer(RB)
    (from_,), (to,) = await sender.allocate(), await receiver.allocate()
    await trio.sleep(1)
    return Ends(sender, from_, receiver, to)


@pytest.fixture
async def ends(group, autojump_clock):
    return await ends_at(*group.nodes[:2])


async def hear_in(peer: Peer, least: float, most: float):
    """Return the next message, which comes after so many seconds."""
    begun = trio.current_time()
    with trio.fail_after(most):
        message = await peer.hear()
    assert trio.current_time() - begun >= least
    return message


@pytest.mark.parametrize("code", [404, 503])
async def test_what_a_runtime_cannot_take_now_comes_again_later(group, ends, autojump_clock, code):
    assert (await ends.send("first")).code == 202
    assert (await ends.send("second")).code == 202
    pause = 0.0
    for _ in range(3):
        message = await hear_in(ends.receiver, pause, pause + 0.5)
        assert (message.from_, message.to, message.value) == (ends.from_, ends.to, "first")
        assert isinstance(message.body["durable"], int)
        await ends.receiver.post_answer(message, code)
        pause = 2 * pause or DURABLE_PAUSE
    message = await hear_in(ends.receiver, pause, pause + 0.5)
    await ends.receiver.post_answer(message, 200)
    message = await hear_in(ends.receiver, 0.0, 0.5)
    assert message.value == "second"
    await ends.receiver.post_answer(message, 200)
    assert await ends.receiver.silence(DURABLE_ANSWER + 1)
    assert await ends.sender.silence(0.5)
    assert not group.store.entries()


async def test_a_receiver_that_says_nothing_gets_it_again_and_in_the_end_no_more(
    group, ends, autojump_clock
):
    assert (await ends.send("lost")).code == 202
    await hear_in(ends.receiver, 0.0, 0.5)
    times = 1
    begun = trio.current_time()
    while not await ends.receiver.silence(DURABLE_ANSWER + 1):
        assert (await ends.receiver.hear()).value == "lost"
        times += 1
    assert times == DURABLE_PATIENCE / DURABLE_ANSWER
    assert trio.current_time() - begun < DURABLE_PATIENCE + DURABLE_ANSWER + 2
    assert not group.store.entries()
    assert group.nodes[1].node.counters.drops[DropReason.NO_TARGET] == 1


async def test_a_session_that_comes_back_gets_what_it_did_not_answer(group, ends, autojump_clock):
    assert (await ends.send(1)).code == 202
    assert (await hear_in(ends.receiver, 0.0, 0.5)).value == 1
    await ends.receiver.link.aclose()
    assert (await ends.send(2)).code == 202
    await trio.sleep(100)
    again = await resumed(group.nodes[2], RB, ends.receiver.token)
    for value in (1, 2):
        message = await hear_in(again, 0.0, 1.0)
        assert message.value == value
        await again.post_answer(message, 200)
    assert await again.silence(60)
    assert not group.store.entries()


async def test_a_log_outlives_the_session_and_takes_nothing_meanwhile(group, ends, autojump_clock):
    assert (await ends.send("kept")).code == 202
    await ends.receiver.link.aclose()
    await trio.sleep(SESSION_IDLE + 1)
    # It has answered no pings meanwhile.
    ends.sender = await resumed(group.nodes[0], RA, ends.sender.token)
    assert (await ends.send("too late")).code == 404
    again = await group.nodes[2].peer(RB)
    claimed = await again.ask("subscribe", f"{RB}/sm", f"{again.node}/sm", resources=[ends.to])
    assert claimed.code == 200
    message = await hear_in(again, 0.0, 1.0)
    assert message.value == "kept"
    await again.post_answer(message, 200)
    assert await again.silence(DURABLE_ANSWER + 1)
    assert not group.store.entries()


@pytest.mark.parametrize("is_late", [False, True])
async def test_what_has_waited_too_long_is_counted_and_missing(
    group, ends, autojump_clock, monkeypatch, is_late
):
    """OBS-06: its receiver comes back after its life is over."""
    away = SESSION_IDLE + 100
    monkeypatch.setattr(engine_client, "DURABLE_LIFE", away + (-10 if is_late else 10))
    assert (await ends.send("kept")).code == 202
    await ends.receiver.link.aclose()
    await trio.sleep(away)
    member = group.nodes[2]
    again = await member.peer(RB)
    claimed = await again.ask("subscribe", f"{RB}/sm", f"{again.node}/sm", resources=[ends.to])
    assert claimed.code == 200
    assert await again.silence(1) is is_late
    assert member.node.counters.drops.get(DropReason.NO_TARGET, 0) == is_late
    assert bool(group.store.entries()) is not is_late
    await again.link.aclose()
    resumption = await (await member.outsider(RB)).control(
        "re-open", runtimeURL=RB, token=again.token
    )
    assert resumption.value.get("missing", 0) == is_late


async def test_an_answer_that_a_crashed_bus_has_asked_for_crashes_no_other(
    group, ends, autojump_clock
):
    """What waits for a bus outlives it."""
    await group.nodes[0].node._bus.tell(lambda node: node.group.durable.take_outcomes(1, (5,)))
    assert (await ends.send("kept")).code == 202
    assert (await hear_in(ends.receiver, 0.0, 0.5)).value == "kept"


async def test_a_late_answer_says_nothing_of_what_was_asked_since(group, ends, autojump_clock):
    """The first request gets no answer any more, and its outcome is another one."""
    (first, _) = group.nodes[:2]
    group.store.slow(1.0, first.engine)
    asked = await ends.sender.post("create", ends.from_, ends.to, value=1, durable=True)
    await trio.sleep(0.5)
    outcomes = (LogFullError(RB),)
    await first.node._bus.tell(lambda node: node.group.durable.take_outcomes(0, outcomes))
    answer = await hear_in(ends.sender, 0.4, 2.0)
    assert (answer.id, answer.code) == (asked.id, 202)


async def test_a_link_that_is_shed_loses_no_durable_message(autojump_clock):
    """The sender was answered 202, and gets no other answer; nothing counts as missing."""
    async with open_group(1, limits=LIMITS) as group:
        (member,) = group.nodes
        ends = await ends_at(member, member)
        await clog(ends.sender, RB)
        asked = await ends.send("kept")
        assert asked.code == 202
        await pile_up(ends.sender, RB, 110)
        assert member.ended() == {LinkEnd.SHED: 1}
        given_up = await refusals(ends.sender)
        assert given_up
        assert asked.id not in {one.id for one in given_up}

        again = await member.outsider(RB)
        value = {"runtimeURL": RB, "token": ends.receiver.token}
        resumption = await again.control("re-open", **value)
        assert resumption.value["missing"] == len(given_up)


@pytest.mark.parametrize("durable", [1, False, "yes", None, 1 << 60])
async def test_nobody_but_a_node_names_a_place_in_a_log(group, ends, autojump_clock, durable):
    assert (await ends.send(1, durable=durable)).code == 400
    assert await ends.receiver.silence(1)


async def test_an_answer_to_what_was_not_delivered_goes_to_its_sender(group, ends, autojump_clock):
    """Only answers to durable messages end at the node."""
    asked = await ends.sender.post("create", ends.from_, ends.to, value=1)
    message = await ends.receiver.hear()
    await ends.receiver.post_answer(message, 200)
    answer = await hear_in(ends.sender, 0.0, 0.5)
    assert (answer.id, answer.code) == (asked.id, 200)
