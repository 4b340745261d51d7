"""However a domain ends, every entity of every machine has come to rest (I-X2)."""

from contextlib import asynccontextmanager

import pytest
import trio

from fsm.effects import is_p2p_part
from fsm.judge.trace_line import Verdict
from fsm.machine_list import MACHINES
from fsm.machines.sync.observer_copy import OBSERVER_COPY
from specs.limits.protocol import SESSION_IDLE
from specs.trace import Op
from tests.actors.runtime.processes import open_processes
from tests.support.runtime.domain import NODE_PLACE
from tests.support.runtime.parties import Party
from transports.link import Kind as Carrier


@asynccontextmanager
async def at_work():
    """Two runtimes with a link: each observes an object of the other."""
    async with open_processes("alice", "bob") as processes:
        alice, bob = processes["alice"].member, processes["bob"].member
        await bob.ask(alice, "first")
        await alice.wait_for("live", bob)
        await bob.wait_for("live", alice)
        for one, other in ((Party(alice), Party(bob)), (Party(bob), Party(alice))):
            url = await one.create(t=0)
            await one.invite(url, other)
            await other.observe(url)
            await one.change(url, "t", 1)
        yield processes


def verdicts(processes):
    return {name: process.judged().verdict for name, process in processes.by_name.items()}


def states(process, machine, part):
    """The states entered by the entities of a machine whose keys name a part."""
    facts = [fact for fact in process.tracer.facts if fact.machine == machine]
    return [fact.new for fact in facts if part in fact.key]


def all_but(*crashed):
    names = {"node", "alice", "bob"}
    return {name: Verdict.INCOMPLETE if name in crashed else Verdict.CONFORMANT for name in names}


@pytest.mark.parametrize(
    "order",
    [("alice", "bob", "node"), ("bob", "alice", "node"), ("node", "alice", "bob")],
    ids=" ".join,
)
async def test_for_any_order_of_leaving_all_entities_of_all_machines_end_at_rest(
    order, autojump_clock
):
    async with at_work() as processes:
        for name in order:
            await processes[name].stop()
            await trio.sleep(SESSION_IDLE / 100)
    assert verdicts(processes) == all_but()
    machines = {name for process in processes.by_name.values() for name in process.machines}
    assert machines == MACHINES.keys()


async def test_a_change_is_reported_by_the_name_of_the_copy(autojump_clock):
    """Else no judge of I-D3, I-D5, I-D7 and I-D12 sees that they belong together."""
    async with at_work() as processes:
        for name in ("alice", "bob"):
            facts = processes[name].tracer.facts
            copies = {fact.key for fact in facts if fact.machine == OBSERVER_COPY.name}
            applied = {f"{fact.key}|{fact.by}" for fact in facts if fact.op is Op.APPLY}
            assert any(is_p2p_part(one.rpartition("|")[2]) for one in applied)
            assert applied <= copies


@pytest.mark.parametrize("crashed", ["alice", "bob"])
async def test_a_crashed_process_leaves_an_incomplete_trace_and_no_work_for_others(
    crashed, autojump_clock
):
    async with at_work() as processes:
        other = "bob" if crashed == "alice" else "alice"
        processes.crash(crashed)
        await trio.sleep(SESSION_IDLE + 60)
        for name in (other, "node", crashed):
            await processes[name].stop()
    runtime = processes[crashed].member.runtime.url
    assert states(processes["node"], "session", runtime)[-1] == "expired"
    assert verdicts(processes) == all_but(crashed)


async def test_a_node_that_crashes_leaves_runtimes_that_end_at_rest(autojump_clock):
    async with at_work() as processes:
        processes["node"].last = list(processes["node"].tracer.facts)
        processes.network.refuse(NODE_PLACE)
        for wire in processes.network.open_wires(Carrier.WEBSOCKET):
            wire.cut()
        await trio.sleep(SESSION_IDLE + 60)
        for name in ("alice", "bob", "node"):
            await processes[name].stop()
    assert verdicts(processes) == all_but("node")
