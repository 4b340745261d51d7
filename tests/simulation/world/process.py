"""Nodes and runtimes that live, die and come back, as tasks of one loop."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import attrs
import trio

from actors.keys.runtime_key import SEED_BYTES, make_runtime_key
from actors.kit.ids import IdSource
from actors.node.app import open_node
from actors.node.config import Endpoint, ForeignPlan, NodeConfig
from actors.node.policy_hook import Asker, Policy
from actors.policy.engine import Decision, Ruling
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.runtime import Runtime
from actors.runtime.stubs.login import token_for_sandbox
from actors.sandbox.sandbox import open_local_sandbox
from actors.testing.chaos.network import ChaosNetwork
from fsm.registry.resolve.topology import Topology
from specs.addresses.address import message_node, runtime
from specs.errors import ProtoflyError
from specs.identity import VouchedBy
from specs.message import Message
from tests.simulation.judgement.evidence import Evidence, ProcessTracer
from tests.simulation.judgement.history import Died, History
from tests.simulation.plans.plan import Plan, Wrong
from tests.simulation.world.balancer import Balancer
from tests.simulation.world.domain_group import DomainGroup
from tests.simulation.world.fate import SizedChance, chance
from tests.simulation.world.logins import Logins, issuer, login_of
from tests.simulation.world.mortal import MortalNetwork
from tests.simulation.world.worker import Worker
from tests.support.node.issuer import Issuer
from transports.link import Kind, Network

_PORT = 41_000
_NEXT = 100
"""From a node of a domain to the next one."""


def domain_of(number: int) -> str:
    """Return the name of a domain."""
    return f"d{number}.ex"


def place_of(number: int) -> str:
    """Return where the node of a domain is dialled, or the balancer in front of several."""
    return f"ws://127.0.0.1:{_PORT + number}/link"


def _port_of(node: str) -> int:
    """Return where a node listens."""
    domain, letter = int(node[1]), node[2:]
    return _PORT + domain + (_NEXT * (ord(letter) - ord("a") + 1) if letter else 0)


@attrs.define
class Air:
    """What all processes of a run share.

    Attributes:
        folder: Where nodes have their files.
        clocks: By node, seconds by which its wall clock is wrong.
        strict: Nodes that permit less.
        busy: By runtime, the end of the time in which its hyperty takes nothing.
        groups: By domain, its nodes that share an engine.
        chosen: By runtime, the node to which the balancer sends it, if that is there.
        up: Nodes that run.
        slow: By runtime, the seconds that each write into its store takes.
    """

    plan: Plan
    chaos: ChaosNetwork
    evidence: Evidence
    history: History
    folder: Path
    issuer: Issuer = attrs.field(factory=issuer)
    clocks: dict[str, float] = attrs.field(factory=dict)
    strict: set[str] = attrs.field(factory=set)
    busy: dict[str, trio.Event] = attrs.field(factory=dict)
    groups: dict[int, DomainGroup] = attrs.field(factory=dict)
    chosen: dict[str, str] = attrs.field(factory=dict)
    up: dict[str, None] = attrs.field(factory=dict)
    slow: dict[str, float] = attrs.field(factory=dict)

    def node_for(self, runtime: str, place: str) -> str:
        """Return where a runtime gets to that dials a node, or the balancer of several."""
        if not self.plan.members:
            return place
        named = next((one for one in self.groups if place_of(one) == place), None)
        if named is None:
            return place
        nodes = self.plan.nodes_of(named)
        chosen = self.chosen.get(runtime, nodes[int(runtime[1:]) % len(nodes)])
        first = nodes.index(chosen) if chosen in nodes else 0
        turn = (*nodes[first:], *nodes[:first])
        there = next((one for one in turn if one in self.up), turn[0])
        return f"ws://127.0.0.1:{_port_of(there)}/link"

    def records_of(self, node: str) -> Path | None:
        """Return the file of a node's registry; None: it has none, as nothing happens to it."""
        hit = {fault.one for fault in self.plan.faults if fault.wrong is Wrong.DISK}
        folder = self.folder / node
        folder.mkdir(exist_ok=True)
        return folder / "records" if node in hit else None

    def store_of(self, runtime: str) -> Path | None:
        """Return the file in which a runtime stores its objects; None: it stores none.

        Its key is beside it, as it would make one by a chance that is not ours.
        """
        if not self.plan.stored:
            return None
        store = self.folder / runtime / "objects"
        if not store.parent.exists():
            store.parent.mkdir()
            key = store.with_name("objects-identity")
            key.touch(mode=0o600)
            seed = chance(self.plan.seed, runtime, "key").randbytes(SEED_BYTES)
            key.write_bytes(make_runtime_key(seed).to_jwk())
        return store

    async def rest(self, runtime: str) -> None:
        """Wait until a runtime's hyperty is not busy any more."""
        if (over := self.busy.get(runtime)) is not None:
            await over.wait()


class NodePolicy(Policy):
    """Permits everything; no requests between hyperties while its node is strict."""

    def __init__(self, air: Air, node: str) -> None:
        self._air = air
        self._node = node

    def judge(self, message: Message, asker: Asker) -> Ruling:
        is_strict = self._node in self._air.strict
        is_hit = message.is_request and message.to.startswith("hyperty://")
        return Ruling(Decision.DENY if is_strict and is_hit else Decision.PERMIT, "simulation")


class Process(ABC):
    """Something that runs under a name, one life after the other.

    Attributes:
        name: What the plan calls it.
        life: `r0.1` in its first life.
        is_up: Whether it can be used.
    """

    def __init__(self, air: Air, name: str, domain: int) -> None:
        self.name = name
        self.domain = domain
        self.life = name
        self.is_up = False
        self.air = air
        self.lives = 0
        # Faults may begin before the first life.
        air.chaos.end(name)
        self._network: MortalNetwork | None = None
        self._scope = trio.CancelScope()
        self._leaving = trio.Event()
        self._ended = trio.Event()

    async def run(self, task_status=trio.TASK_STATUS_IGNORED) -> None:
        """Live once; started when it can be used."""
        self.lives += 1
        self.life = f"{self.name}.{self.lives}"
        self._network = MortalNetwork(self.air.chaos.end(self.name))
        self._leaving, self._ended = trio.Event(), trio.Event()
        witness = self.air.evidence.tracer_of(self.life)
        try:
            with trio.CancelScope() as self._scope:
                await self._live(self._network, witness, task_status)
        finally:
            self.is_up = False
            self._ended.set()
        if not self._scope.cancelled_caught and not self._network.is_dead:
            witness.end()

    @abstractmethod
    async def _live(self, network: Network, witness: ProcessTracer, task_status) -> None:
        """Open, tell that it is up, and wait until it is to leave."""

    async def die(self, everybody: tuple[str, ...]) -> None:
        """End without a word; return when the process is gone."""
        if self._network is None or self._ended.is_set():
            return
        self._network.is_dead = True
        self.is_up = False
        self._dying()
        self.air.history.note(Died(trio.current_time(), self.life))
        for other in everybody:
            self.air.chaos.reset(self.name, other)
        self._scope.cancel()
        await self._ended.wait()

    def _dying(self) -> None:  # noqa: B027 - most reach others by the network only
        """Let this life reach nobody any more by other ways than the network."""

    async def leave(self) -> None:
        """End in good order; return when it has."""
        self._leaving.set()
        await self._ended.wait()

    def entropy(self) -> Callable[[int], bytes]:
        """Return what a life makes its secrets of."""
        seed = self.air.plan.seed
        return (SizedChance if self.air.plan.steady else chance)(seed, self.life).randbytes

    def ids(self) -> IdSource:
        """Return ids that no life before had."""
        return IdSource(int(trio.current_time() * 1000) * 1000)


class NodeProcess(Process):
    """A message node."""

    async def _live(self, network: Network, witness: ProcessTracer, task_status) -> None:
        records = self.air.records_of(self.name)
        # A node does not start without its disk; whoever starts it tries again.
        while records is not None and records.is_dir():  # noqa: ASYNC110 - a file has no event
            await trio.sleep(1)
        group = self.air.groups.get(self.domain)
        others = {domain for _, domain in self.air.plan.runtimes} - {self.domain}
        logins = Logins(self.air.issuer, message_node(domain_of(self.domain)))
        foreign = {
            domain_of(one): Endpoint(
                place_of(one), partial(token_for_sandbox, logins, domain_of(one))
            )
            for one in sorted(others)
        }
        config = NodeConfig(
            domain=domain_of(self.domain),
            listen=f"127.0.0.1:{_port_of(self.name)}",
            engine=None if group is None else group.opened(self.name),
            node_name="" if group is None else self.name,
            entropy=self.entropy(),
            ids=self.ids(),
            login=attrs.evolve(login_of(self.air.issuer), clock=self._clock),
            policy=NodePolicy(self.air, self.name),
            registry=records,
            foreign=ForeignPlan(
                foreign if self.air.plan.topology == "trapezoid" else {}, open_local_sandbox
            ),
        )
        async with open_node(config, network, witness):
            self.is_up = True
            self.air.up[self.name] = None
            task_status.started()
            await self._leaving.wait()

    def _dying(self) -> None:
        self.air.up.pop(self.name, None)
        if self.domain in self.air.groups:
            self.air.groups[self.domain].bury(self.name)

    def _clock(self) -> float:
        return trio.current_time() + self.air.clocks.get(self.name, 0.0)


class RuntimeProcess(Process):
    """A runtime with one hyperty.

    Attributes:
        address: Of the hyperty, in this life or the last.
        worker: The hyperty itself, in its last life.
        tasks: Where what the application does in this life runs.
    """

    def __init__(self, air: Air, name: str, domain: int) -> None:
        super().__init__(air, name, domain)
        self.address = ""
        self.worker: Worker | None = None
        self.runtime: Runtime | None = None
        self.tasks: trio.Nursery | None = None

    async def _live(self, network: Network, witness: ProcessTracer, task_status) -> None:
        plan, store = self.air.plan, self.air.store_of(self.name)
        # A runtime does not start without its disk; whoever starts it tries again.
        while store is not None and store.is_dir():  # noqa: ASYNC110 - a file has no event
            await trio.sleep(1)
        nodes = {domain_of(one): place_of(one) for _, one in plan.runtimes}
        config = RuntimeConfig(
            domain=domain_of(self.domain),
            name=self.name,
            node=place_of(self.domain),
            nodes=nodes,
            kinds=tuple(map(Kind, plan.kinds)),
            # In a trapezoid no runtime knows the keys of another domain.
            p2p_require=VouchedBy.NONE,
            topology=Topology(plan.topology),
            credentials=Logins(self.air.issuer, runtime(domain_of(self.domain), self.name)),
            entropy=self.entropy(),
            ids=self.ids(),
            store=store,
        )
        balanced = Balancer(network, partial(self.air.node_for, self.name))
        async with open_runtime(config, balanced, witness) as self.runtime:
            await self._deploy(self.runtime)
            async with trio.open_nursery() as self.tasks:
                self.is_up = True
                task_status.started()
                await self._leaving.wait()
                self.is_up = False
                self.tasks.cancel_scope.cancel()

    async def _deploy(self, runtime: Runtime) -> None:
        """Deploy the hyperty, however often that has to be tried."""
        while True:
            with suppress(ProtoflyError):
                self.address = await runtime.deploy(self.name, self.make)
                return
            await trio.sleep(1)

    def make(self) -> Worker:
        """Make the hyperty, for one of its lives."""
        rest = partial(self.air.rest, self.name)
        return Worker(self.life, self.air.history, self._is_here, rest)

    def _is_here(self, worker: Worker) -> None:
        self.worker = worker
