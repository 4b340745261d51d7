"""A node whose part takes a step that no table declares: seen, restarted, and alive."""

import io

import pytest
from typing_extensions import override

from actors.kit.log import Style, configure_log
from actors.node.links.acceptor import LinkAcceptor
from actors.node.policy_hook import PERMIT_ALL, Asker, Policy
from actors.node.registry.record_file import MemoryRecords
from actors.policy.engine import Ruling
from fsm.engine import Entity
from fsm.judge.trace_line import Claim, Verdict, read_record
from fsm.judge.verdict import judge
from fsm.machine_list import MACHINES
from fsm.machines.address import Trigger as AddressTrigger
from fsm.machines.registration import State, Trigger
from fsm.registry import registration
from fsm.registry.records import Row
from specs.message import Message
from specs.trace import Kind, Op
from tests.support.log import unchanged_log
from tests.support.node.node_peer import DR, RA, RB, open_world
from tests.support.trace.trace_files import records, whole
from transports.errors import LinkBrokenError

WRONG = "misstep"


def misstep():
    """Release an address that was never allocated."""
    Entity(MACHINES["address"], "comm://a.ex/o1").step(AddressTrigger.RELEASE)


class Clumsy(Policy):
    """A policy with a machine of its own, which it steps wrongly when it is ordered to."""

    @override
    def judge(self, message: Message, asker: Asker) -> Ruling:
        if message.body.get("value") == WRONG:
            misstep()
        return PERMIT_ALL.judge(message, asker)


@pytest.fixture
def log():
    """The log as a command writes it."""
    stream = io.StringIO()
    with unchanged_log():
        configure_log(style=Style.TEXT, stream=stream)
        yield stream


def refused(world):
    return [
        (actor, fact.machine, fact.key, fact.old, fact.cause)
        for actor, fact in world.tracer.records
        if fact.k is Kind.STATE and fact.op is Op.REFUSED
    ]


def judged(world):
    return judge(map(read_record, records(whole(world.tracer.facts))))


BY_BUS = ("bus", "address", "comm://a.ex/o1", "[*]", "release")


async def test_the_bus_is_started_again_and_serves(autojump_clock, log):
    async with open_world(policy=Clumsy()) as world:
        ra = await world.peer(RA)
        await ra.post("create", f"{RA}/x", RB, value=WRONG)
        with pytest.raises(LinkBrokenError):
            await ra.hear()

        again = await world.peer(RA)
        assert (await again.control("ping")).code == 200
        assert world.node.monitor_violations == 1
        assert world.node.counters.violations == {"address": 1}
    assert refused(world) == [BY_BUS]
    (line,) = [line for line in log.getvalue().splitlines() if "monitor violation" in line]
    assert line.endswith(
        'event="monitor violation" actor=bus machine=address key=comm://a.ex/o1'
        " state=[*] trigger=release"
    )


async def test_the_trace_accuses_the_misstep_and_nothing_else(autojump_clock, log):
    async with open_world(policy=Clumsy()) as world:
        ra = await world.peer(RA)
        await ra.allocate()
        await ra.ask("subscribe", f"{RA}/sm", f"{ra.node}/sm", resources=[f"{RA}/registry"])
        await ra.post("create", f"{RA}/x", RB, value=WRONG)
        with pytest.raises(LinkBrokenError):
            await ra.hear()
        await world.peer(RA)
    verdict = judged(world)
    assert (verdict.verdict, verdict.by_claim) == (Verdict.VIOLATIONS, {Claim.REFUSED_STEP: 1})
    assert verdict.violations[0].expected == "no 'release' in this state"


KEPT = Row(f"{RA}/kept", RA, State.DISCONNECTED, 0.0, {"url": f"{RA}/kept", "runtime": RA})


async def test_a_registry_that_missteps_leaves_the_sessions_alone(autojump_clock, monkeypatch, log):
    """A record that is kept from before is stepped the wrong way to where it is."""
    monkeypatch.setattr(MemoryRecords, "load", lambda _: [KEPT])
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        with monkeypatch.context() as broken:
            broken.setitem(registration._WAY, State.DISCONNECTED, (Trigger.BURY,))
            await ra.post("update", f"{RA}/registry", DR, resource=KEPT.url)
            assert await ra.silence()

        assert refused(world) == [("registry", "registration", KEPT.url, "[*]", "bury")]
        assert (await ra.ask("update", f"{RA}/registry", DR, resource=KEPT.url)).code == 200
        assert (await rb.control("ping")).code == 200
        assert await world.states() == {RA: "open", RB: "open"}
        assert world.node.monitor_violations == 1
    assert judged(world).by_claim == {Claim.REFUSED_STEP: 1}


async def test_an_undeclared_step_of_a_connection_affects_no_other_connection(
    autojump_clock, monkeypatch, log
):
    read = LinkAcceptor.read
    monkeypatch.setattr(
        LinkAcceptor, "read", lambda door, f: misstep() if f == b"!" else read(door, f)
    )
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        await ra.raw(b"!")
        with pytest.raises(LinkBrokenError):
            await ra.hear()

        assert (await rb.control("ping")).code == 200
        assert await world.states() == {RA: "detached", RB: "open"}
        assert world.node.monitor_violations == 1
    assert [actor for actor, *_ in refused(world)] == ["connection:1"]


async def test_without_a_misstep_the_monitor_counts_nothing(autojump_clock):
    async with open_world() as world:
        await (await world.peer(RA)).allocate()
        assert world.node.monitor_violations == 0
    assert judged(world).verdict is Verdict.CONFORMANT
