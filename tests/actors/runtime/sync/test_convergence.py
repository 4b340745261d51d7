"""Copies end as what their reporters have, whatever is lost on the way (I-D4, SYN-17, SYN-22)."""

from contextlib import asynccontextmanager, suppress

import pytest
import trio

import actors
from actors.node.limits import NodeLimits
from fsm.limits.rates import Rate
from specs.limits.protocol import P2P_TIMEOUT, REPLY_TIMEOUT
from specs.limits.sync import QUIET, REPEAT_FIRST, REPEAT_LAST
from specs.trace import Op
from tests.support.report_world import Closed, Open, world
from tests.support.runtime.domain import go_live, open_domain
from transports.memory import MemoryNetwork

UPDATE = '"type":"update"'


def is_change(frame):
    return UPDATE in frame and "/changes" in frame


@asynccontextmanager
async def untraced():
    """Two runtimes at a node that is slower than they are; no record of a message is kept."""
    network = MemoryNetwork()
    slow = actors.NodeConfig(domain="a.ex", limits=NodeLimits(messages=Rate(100.0, 200)))
    async with (
        actors.open_node(slow, network=network) as node,
        actors.open_runtime("a.ex", "ra", node=node.url, network=network) as here,
        actors.open_runtime("a.ex", "rb", node=node.url, network=network) as there,
    ):
        yield here, there


async def test_three_thousand_changes_as_fast_as_possible_all_arrive_in_the_end(autojump_clock):
    """The node drops what is more than the rate of a session: the last changes among it."""
    async with untraced() as (here, other):
        sensor, there = await here.deploy(Open), await other.deploy(Closed)
        async with sensor.report("ctxt", {"t": 0}) as thing, there.observe(thing.url) as copy:
            for number in range(1, 3001):
                await thing.set("t", number)
            await trio.sleep(1)
            assert copy.version < thing.version
            await trio.sleep(REPEAT_LAST)
            assert (copy.version, dict(copy.value)) == (3001, {"t": 3000})


async def test_a_last_change_that_is_lost_comes_again(autojump_clock):
    async with world() as w:
        sensor, there = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {"t": 0}) as thing, there.observe(thing.url) as copy:
            await thing.set("t", 1)
            await trio.sleep(0.5)
            w.lose_at_observer(is_change)
            await thing.set("t", 2)
            await trio.sleep(0.5)
            w.lose_at_observer(lambda _: False)
            assert copy.value["t"] == 1
            await trio.sleep(REPEAT_FIRST)
            assert copy.value["t"] == 2
        assert "stale" not in [new for _, new in w.steps("observer_copy", "rb")]


async def test_a_quiet_copy_reads_what_it_never_heard_of(autojump_clock):
    async with world(lease=10 * round(QUIET)) as w:
        sensor, there = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {"t": 0}) as thing, there.observe(thing.url) as copy:
            w.lose_at_observer(is_change)
            await thing.set("t", 2)
            await trio.sleep(QUIET - 5)
            assert copy.value["t"] == 0
            await trio.sleep(10)
            assert copy.value["t"] == 2


async def test_a_copy_that_missed_the_end_of_its_object_ends(autojump_clock):
    async with world() as w:
        sensor, there = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {"t": 0}) as thing, there.observe(thing.url) as copy:
            w.lose_at_observer(lambda frame: '"type":"delete"' in frame)
            with suppress(actors.ObjectError):
                await thing.delete()
            assert not copy.is_gone
            await trio.sleep(QUIET + 2 * REPLY_TIMEOUT)
            assert copy.is_gone
            with pytest.raises(actors.ObjectError) as gone:
                await copy.wait_for(lambda value: value["t"] == 1)
            assert gone.value.code == 410


async def test_a_copy_whose_read_is_refused_ends(autojump_clock):
    """What the reporter's end does not know as an observer, it does not show the object."""
    async with world() as w:
        sensor, there = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {"t": 0}) as thing, there.observe(thing.url) as copy:
            w.lose_at_observer(lambda frame: '"type":"unsubscribe"' in frame)
            await thing.expel(there.url)
            assert not copy.is_gone
            await trio.sleep(QUIET + REPLY_TIMEOUT)
            assert copy.is_gone


async def test_an_element_is_added_once_though_its_change_comes_again(autojump_clock):
    async with world() as w:
        sensor, there = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {"all": []}) as thing, there.observe(thing.url) as copy:
            await thing.add("all", "x")
            await trio.sleep(10 * REPEAT_LAST)
            assert (copy.version, copy.value["all"]) == (2, ["x"])


async def test_a_live_link_says_nothing_about_its_objects_after_a_while(autojump_clock):
    """P2P-07: their changes are repeated while the link is set up, and never read for silence."""
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        await trio.sleep(2 * P2P_TIMEOUT)
        before = said_of_objects(domain)
        assert before
        await trio.sleep(10 * REPEAT_LAST)
        assert said_of_objects(domain) == before


def said_of_objects(domain):
    """How much left the runtimes of a domain to tell or read what objects are."""
    facts = [fact for member in domain.members.values() for fact in member.facts(Op.XMIT)]
    changes = [one for one in facts if one.type == "update" and one.to.endswith("/changes")]
    reads = [one for one in facts if one.type == "read" and one.to.startswith("connection://")]
    return len(changes) + len(reads)


async def test_changes_are_not_repeated_without_observers(autojump_clock):
    async with world() as w:
        sensor, there = await w.here.deploy(Open), await w.there.deploy(Closed)
        async with sensor.report("ctxt", {"t": 0}) as thing:
            async with there.observe(thing.url):
                await thing.set("t", 1)
                await trio.sleep(QUIET)
            before = len(published(w))
            assert before > 4
            await trio.sleep(10 * REPEAT_LAST)
            assert len(published(w)) == before


def published(w):
    """The changes that left the reporter's runtime."""
    return [
        line
        for line in w.recorder.lines
        if line.node == "ra" and line.op == "xmit" and line.type == "update"
        if line.to is not None and line.to.endswith("/changes")
    ]
