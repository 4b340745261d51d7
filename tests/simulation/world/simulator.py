"""One run of a plan, from the first process to the last link, and what is found in it."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import trio
from trio.testing import MockClock

from actors.kit.supervision.supervisor import Crash
from actors.runtime.store.file import ObjectFile
from actors.testing.chaos.network import ChaosNetwork
from actors.testing.chaos.toxics import Latency
from fsm.judge.trace_line import TraceLine
from fsm.judge.verdict import judge_run
from fsm.sync.stored import Keep
from specs.limits.protocol import REPLY_TIMEOUT
from specs.limits.sync import QUIET, REPEAT_LAST
from tests.simulation.judgement.evidence import Evidence
from tests.simulation.judgement.history import History, Probed
from tests.simulation.judgement.rules import Breach, breaches, disagreements
from tests.simulation.plans.plan import Act, Fault, Plan, Wrong
from tests.simulation.world.application import Application
from tests.simulation.world.domain_group import DomainGroup, watched
from tests.simulation.world.fate import TimedChance, chance, sealed
from tests.simulation.world.process import Air, NodeProcess, Process, RuntimeProcess
from tests.simulation.world.trouble import Ends, begin
from transports.engine.memory import open_memory_store
from transports.memory import MemoryNetwork

_SETTLING = 60.0
"""Seconds after the last fault until everybody must reach everybody: a silent peer is found
within 30, and coming back after long waits up to 16 between two attempts."""

_AGREEING = QUIET + REPEAT_LAST + REPLY_TIMEOUT
"""Seconds from then on until no copy of an object may differ from it: whoever hears nothing of
its reporter reads it after `QUIET`, and if that fails once more."""

_LOOKING = 5.0
"""Seconds between two looks at the copies."""

_APART = 0.000_37
"""Seconds by which frames between two take longer than those between others, in a steady run."""

_ONCE = "claim I-L6"
_UNLIKE = {Wrong.CORRUPT, Wrong.DUPLICATE, Wrong.LOSS}
"""Networks that lose or repeat single frames: no transport of sessions does, so that the claim is
about others."""

_LIMIT = 900.0
"""Seconds of virtual time that a run may take at all."""


@attrs.frozen
class Outcome:
    """What became of a run.

    Attributes:
        breaches: Rules, machines and claims that were broken.
        history: What applications saw.
        evidence: What processes reported.
    """

    breaches: tuple[Breach, ...]
    history: History
    evidence: Evidence

    @property
    def broken(self) -> frozenset[str]:
        """Names of the rules that were broken."""
        return frozenset(breach.rule for breach in self.breaches)


def run(plan: Plan) -> Outcome:
    """Run a plan."""
    network = MemoryNetwork()
    history, evidence = History(), Evidence(f"seed-{plan.seed}")
    clock = MockClock(autojump_threshold=0)
    with TemporaryDirectory() as folder, sealed(plan.seed, is_steady=plan.steady):
        kept = history, evidence, Path(folder)
        found = trio.run(partial(_run, plan, network, kept), clock=clock)
    is_unlike = not _UNLIKE.isdisjoint(fault.wrong for fault in plan.faults)
    found += [one for one in judged(evidence.lines()) if not (is_unlike and one.rule == _ONCE)]
    broken = (*breaches(history), *found)
    return Outcome(broken, history, evidence)


def judged(lines: list[TraceLine]) -> Iterator[Breach]:
    """Hold a trace against machines and claims."""
    judgement = judge_run(lines)
    for broken in judgement.machines.violations:
        where = f"{broken.entity.node} {broken.entity.machine} {broken.entity.key}"
        yield Breach(f"machine {broken.claim.value}", f"{where} at {broken.ln}: {broken.expected}")
    for finding in judgement.findings:
        yield Breach(f"claim {finding.claim}", str(finding))


async def _run(plan: Plan, network: MemoryNetwork, kept) -> list[Breach]:
    history, evidence, folder = kept
    random = TimedChance(plan.seed) if plan.steady else chance(plan.seed, "chaos")
    chaos = ChaosNetwork(network, random)
    air = Air(plan, chaos, evidence, history, folder)
    with trio.move_on_after(_LIMIT) as patience, Crash() as crash, _disks(air):
        async with _engines(air):
            await World(air).run()
    history.left_over += [f"a link {one.dialler} > {one.listener}" for one in chaos.links]
    history.left_over += [f"a listener at {address}" for _, address in network._listeners]
    found = []
    if patience.cancelled_caught:
        found.append(Breach("ends", f"the run did not end within {_LIMIT:g} s"))
    if crash.error is not None:
        found.append(Breach("crashed", "; ".join(_causes(crash.error))))
    return found


@contextmanager
def _disks(air: Air) -> Iterator[None]:
    """Have each write into a store take its time."""
    commit = ObjectFile.commit

    async def commit_slowly(file: ObjectFile, changes: Sequence[Keep]) -> None:
        await trio.sleep(air.slow.get(file.path.parent.name, 0.0))
        await commit(file, changes)

    ObjectFile.commit = commit_slowly
    try:
        yield
    finally:
        ObjectFile.commit = commit


@asynccontextmanager
async def _engines(air: Air) -> AsyncIterator[None]:
    """Open an engine for each domain, if there are to be any."""
    async with AsyncExitStack() as stack:
        for domain in sorted({domain for _, domain in air.plan.runtimes if air.plan.members}):
            store = await stack.enter_async_context(open_memory_store())
            air.groups[domain] = DomainGroup(store)
        with watched(air.groups.values()):
            yield


def _causes(error: BaseException) -> Iterator[str]:
    """Say what came first, of errors in groups and errors of errors."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _causes(one)
    else:
        yield str(error) if error.__cause__ is None else ", ".join(_causes(error.__cause__))


class World:
    """All processes of a run."""

    def __init__(self, air: Air) -> None:
        self._air = air
        plan = air.plan
        self.nodes = {name: NodeProcess(air, name, int(name[1])) for name in plan.nodes}
        self.runtimes = {name: RuntimeProcess(air, name, at) for name, at in plan.runtimes}
        self._application = Application(self.runtimes, air.history)
        self._troubles: list[Ends] = []

    @property
    def _all_processes(self) -> dict[str, Process]:
        return {**self.nodes, **self.runtimes}

    async def run(self) -> None:
        """Let everybody come, do, suffer, recover and go."""
        plan = self._air.plan
        for number, pair in enumerate(combinations(self._all_processes, 2), start=1):
            latency = plan.latency + (_APART * number if plan.steady else 0.0)
            if latency:
                self._air.chaos.toxic(Latency(latency), pair)
        async with trio.open_nursery() as nursery:
            for process in self._all_processes.values():
                await nursery.start(process.run)
            await self._rage(nursery)
            await trio.sleep(_SETTLING)
            await self._probe()
            await self._compare()
            for group in (self.runtimes, self.nodes):
                async with trio.open_nursery() as leaving:
                    for process in group.values():
                        leaving.start_soon(process.leave)

    async def _rage(self, processes: trio.Nursery) -> None:
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for act in self._air.plan.acts:
                nursery.start_soon(self._act, began, act)
            for fault in self._air.plan.faults:
                nursery.start_soon(self._fault, began, fault, processes)
        for trouble in self._troubles:
            trouble.end()

    async def _act(self, began: float, act: Act) -> None:
        await trio.sleep_until(began + act.at)
        await self._application.do(act)

    async def _fault(self, began: float, fault: Fault, processes: trio.Nursery) -> None:
        await trio.sleep_until(began + fault.at)
        if fault.wrong in {Wrong.RUNTIME, Wrong.NODE}:
            process = self._all_processes[fault.one]
            await process.die(tuple(self._all_processes))
            await trio.sleep_until(began + fault.at + fault.lasts)
            # Who comes back while nothing passes is not waited for here.
            processes.start_soon(process.run)
            return
        trouble = begin(self._air, fault)
        if trouble is not None:
            self._troubles.append(trouble)
            await trio.sleep_until(began + fault.at + fault.lasts)
            trouble.end()

    async def _probe(self) -> None:
        async with trio.open_nursery() as nursery:
            for one in self.runtimes.values():
                for other in self.runtimes.values():
                    if one is not other:
                        nursery.start_soon(self._probe_pair, one, other)

    async def _compare(self) -> None:
        """Write down what everybody holds, once it is the same or should be."""
        objects = self._application.objects
        for _ in range(int(_AGREEING / _LOOKING)):
            if not disagreements(objects.held()) and not self._differences():
                break
            await trio.sleep(_LOOKING)
        for one in objects.held():
            self._air.history.note(one)
        self._air.history.different += self._differences()

    def _differences(self) -> list[str]:
        """Say in what the nodes of a domain differ from its engine."""
        groups = self._air.groups.values()
        return [different for group in groups for different in group.differences()]

    async def _probe_pair(self, one: RuntimeProcess, other: RuntimeProcess) -> None:
        code = 0
        if one.is_up and other.is_up:
            code = await self._application.ask(one.worker, one.life, other.address)
        self._air.history.note(Probed(trio.current_time(), one.life, other.life, code))
