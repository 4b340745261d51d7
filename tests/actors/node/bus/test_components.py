"""Which parts of a node answer where: a table with one writer, and no address twice (MN-09)."""

import pytest
import trio

from actors.kit.counters import Counters
from actors.kit.supervision.actor import Actor
from actors.kit.supervision.supervisor import ChildSpec, open_supervisor
from actors.node.components import Components
from actors.node.errors import AddressTakenError
from actors.node.trace import ComponentTrace
from specs.trace import Kind
from tests.support.node.node_peer import ALLOCATION, DR, RA, SESSION, SM, open_world
from tests.support.trace.memory import MemoryTracer

HERE = "domain://here.a.ex"


class Part(Actor):
    async def handle(self, message):
        pass


async def bus_of(world):
    return await world.node._bus.ask(lambda reply: reply.send)


def rows(tracer):
    facts = [fact for fact in tracer.facts if fact.k is Kind.TABLE and fact.table == "components"]
    return [(str(fact.op), fact.key, fact.val, fact.writer) for fact in facts]


@pytest.fixture
async def supervisor():
    async with open_supervisor("parts") as supervisor:
        yield supervisor


@pytest.fixture
async def parts(supervisor):
    return [await supervisor.start_child(ChildSpec(name, Part)) for name in ("one", "other")]


@pytest.fixture
def tracer():
    return MemoryTracer()


@pytest.fixture
def table(tracer):
    return Components({DR}, ComponentTrace(tracer, "bus", Counters()))


async def test_every_change_is_a_row_by_one_writer(table, tracer, parts):
    one, _ = parts
    table.serve(SM, "sm")
    table.attach(HERE, one)
    table.attach(HERE, one)
    table.detach(HERE, one)
    table.detach(HERE, one)
    table.attach(HERE, one)
    table.close()
    assert rows(tracer) == [
        ("add", SM, "sm", "bus"),
        ("add", HERE, "one", "bus"),
        ("del", HERE, "one", "bus"),
        ("add", HERE, "one", "bus"),
        ("del", HERE, "one", "bus"),
        ("del", SM, "sm", "bus"),
    ]


async def test_an_address_has_one_part(table, parts):
    one, other = parts
    table.serve(SM, "sm")
    table.attach(HERE, one)
    with pytest.raises(AddressTakenError, match=f"other cannot answer at {HERE}: one answers"):
        table.attach(HERE, other)
    with pytest.raises(AddressTakenError, match="sm answers there"):
        table.attach(SM, other)
    table.detach(HERE, other)
    assert table.get(HERE) is one


async def test_a_declared_part_keeps_its_address_while_it_is_away(table, parts):
    one, _ = parts
    assert DR in table
    assert table.get(DR) is None
    assert HERE not in table
    table.attach(HERE, one)
    assert HERE in table
    table.detach(HERE, one)
    assert HERE not in table


async def test_the_parts_of_a_node_stand_in_its_table_and_leave_none_behind(autojump_clock):
    async with open_world() as world:
        there = {key: writer for op, key, _, writer in rows(world.tracer) if op == "add"}
        assert there == dict.fromkeys([SESSION, ALLOCATION, SM, DR], "bus")
    changes = [(op, key) for op, key, *_ in rows(world.tracer)]
    assert sorted(changes) == sorted((op, key) for op in ("add", "del") for key in there)


async def test_a_second_part_at_an_address_is_refused_with_a_sentence(autojump_clock, parts):
    one, _ = parts
    async with open_world() as world:
        with pytest.raises(AddressTakenError, match=f"one cannot answer at {DR}: registry"):
            (await bus_of(world)).attach(DR, one)
        ra = await world.peer(RA)
        assert (await ra.ask("read", f"{RA}/registry", DR, resource="hyperty://a.ex/x")).code == 404


async def test_a_part_may_come_and_go_while_the_node_runs(autojump_clock, parts):
    one, _ = parts
    async with open_world() as world:
        ra = await world.peer(RA)
        assert (await ra.ask("read", f"{RA}/ua", HERE)).code == 404
        bus = await bus_of(world)
        bus.attach(HERE, one)
        with trio.move_on_after(1):
            await ra.ask("read", f"{RA}/ua", HERE)
        bus.detach(HERE, one)
        assert (await ra.ask("read", f"{RA}/ua", HERE)).code == 404
        bus.detach(HERE, one)
