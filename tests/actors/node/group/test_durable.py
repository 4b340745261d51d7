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
from specs.reply_code import LinkEnd
from tests.actors.node.group.test_domain import runtimes
from tests.actors.node.links.test_outbox_budget import LIMITS, clog, pile_up, refusals
from tests.support.node.group_world import open_group, resumed
from tests.support.node.node_peer import RA, RB, Peer, World


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


async def test_a_log_that_ends_begins_nothing_more():
    """Who asks is answered at once, and does not wait for an answer that never comes."""
    client = Closed().client
    async with trio.open_nursery() as nursery:
        client.enter(Mailbox("logs", 1), nursery, lambda: None)
        await client.closing()
        assert not client.begin(client.fetch, "r", 1, 0, 1)


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
