"""What one component sends has rising ids, whatever it waits for (I-T7, MSG-03)."""

import pytest
import trio

import actors
from actors.kit.ids import IdSource
from actors.runtime.config import RuntimeConfig
from actors.runtime.store.file import ObjectFile
from actors.testing.recorder import Recorder
from fsm.sync.stored import ObserverKept
from specs.limits.bus import SUBMITTED
from specs.trace import Op
from transports.memory import MemoryNetwork


class Open(actors.Hyperty):
    """Lets everybody observe, and answers."""

    async def on_subscribe(self, url, observer):
        pass

    async def on_request(self, message):
        return message.body["value"]


def submitted(recorder, sender):
    """Return the ids of what somebody sent, in the order in which its bus got it."""
    reported = [one for one in recorder.lines if one.op == Op.SUBMIT and one.from_ == sender]
    return [one.id for one in reported if one.type != "response"]


@pytest.fixture
def slow_disk(monkeypatch):
    async def commit(self, changes):
        await trio.sleep(1)
        if changes:
            self._write(tuple(changes))
            self.rest.follow(changes)

    monkeypatch.setattr(ObjectFile, "commit", commit)


@pytest.mark.usefixtures("slow_disk")
async def test_a_message_that_waited_for_the_disk_has_a_newer_id_than_earlier_ones(
    tmp_path, autojump_clock
):
    """A change waits for the disk; the question about an observer that came after it does not."""
    network, recorder, place = MemoryNetwork(), Recorder(), tmp_path / "s.sqlite"
    with recorder.process("ra") as trace:
        config = {"domain": "a.ex", "name": "ra", "store": place, "ids": IdSource()}
        async with (
            actors.open_node("a.ex", network=network) as node,
            actors.open_runtime(
                RuntimeConfig(node=node.url, **config), network=network, trace=trace
            ) as here,
            actors.open_runtime("a.ex", "rb", node=node.url, network=network) as there,
            await here.deploy(Open, "todo") as todo,
            await there.deploy(Open, "watch") as watch,
            todo.report("comm", {"n": 0}, store=True) as thing,
        ):

            async def write():
                for n in range(5):
                    await thing.set("n", n + 1)

            async def observe():
                for _ in range(5):
                    async with watch.observe(thing.url):
                        pass

            async with trio.open_nursery() as nursery:
                nursery.start_soon(write)
                nursery.start_soon(observe)
            ids = submitted(recorder, thing.url)
    assert len(ids) > 15
    assert ids == sorted(set(ids))


class Slow(actors.Hyperty):
    """Lets everybody observe, after a while."""

    async def on_subscribe(self, url, observer):
        await trio.sleep(0.5)


async def test_a_decision_that_comes_during_a_write_is_written_before_it_is_answered(
    tmp_path, monkeypatch, autojump_clock
):
    written = []

    async def commit(self, changes):
        await trio.sleep(1)
        written.extend((type(one), trio.current_time()) for one in changes)
        self._write(tuple(changes))
        self.rest.follow(changes)

    monkeypatch.setattr(ObjectFile, "commit", commit)
    network = MemoryNetwork()
    async with actors.open_node("a.ex", network=network) as node:
        config = RuntimeConfig(domain="a.ex", name="ra", node=node.url, store=tmp_path / "s.sqlite")
        async with (
            actors.open_runtime(config, network=network) as here,
            actors.open_runtime("a.ex", "rb", node=node.url, network=network) as there,
            await here.deploy(Slow, "todo") as todo,
            await there.deploy(Slow, "watch") as watch,
            todo.report("comm", {"n": 0}, store=True) as thing,
            trio.open_nursery() as nursery,
        ):

            async def observe():
                async with watch.observe(thing.url) as copy:
                    observed.append((copy.value["n"], trio.current_time()))

            observed, start = [], trio.current_time()
            nursery.start_soon(observe)
            await trio.sleep(0.3)
            await thing.set("n", 1)
            await trio.sleep(5)
            ((_, kept),) = [one for one in written if one[0] is ObserverKept]
            ((value, seen),) = observed
    assert (value, kept - start > 2) == (1, True)
    assert seen >= kept


async def test_messages_of_a_delayed_hyperty_keep_their_order(autojump_clock):
    network, recorder = MemoryNetwork(), Recorder()
    with recorder.process("ra") as trace:
        async with (
            actors.open_node("a.ex", network=network) as node,
            actors.open_runtime("a.ex", "ra", node=node.url, network=network, trace=trace) as here,
            await here.deploy(Open, "asked") as asked,
            await here.deploy(Open, "asks") as asks,
        ):

            async def ask(n):
                for m in range(8):
                    assert (await asks.request(asked.url, [n, m])).code == 200

            async with trio.open_nursery() as nursery:
                for n in range(3 * SUBMITTED):
                    nursery.start_soon(ask, n)
            ids = submitted(recorder, asks.url)
    assert len(ids) >= 24 * SUBMITTED
    assert ids == sorted(set(ids))
