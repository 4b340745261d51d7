"""The world of a scenario: real nodes and runtimes, a network in memory, scripted outsiders."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from hashlib import blake2b
from itertools import count
from typing import final

import attrs
import trio

from actors.node.app import Node, open_node
from actors.node.config import OBJECT_SCHEMES, NodeConfig
from actors.node.foreign.plan import NOWHERE, Endpoint, ForeignPlan
from actors.play.air import Air
from actors.play.back_ends import back_ends_of, login_of
from actors.play.cast import Cast, cast_of
from actors.play.denials import NodeDenials, RuntimeDenials
from actors.play.hyperty import Manners, ScriptedHyperty
from actors.play.names import Names
from actors.play.observer import Observer
from actors.play.outsider import Outsider
from actors.play.roles import HypertyRole, Pair, RuntimeRole
from actors.play.script import Scenario
from actors.play.stage_error import StageError
from actors.runtime.allocation import AllocationError
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.mini_bus import MiniBusPort
from actors.runtime.profile import Profile
from actors.runtime.registrar import RegistrationError
from actors.runtime.runtime import Runtime
from actors.sandbox.here import open_room_here
from fsm.cores.node_rights import Observation
from specs.address import host_of, message_node, scheme_of
from transports.link import Kind

__all__ = ["Member", "World", "open_world"]


@final
@attrs.frozen
class Member:
    """A runtime that runs in a task of its own.

    Attributes:
        leave: Set to have it take leave.
        left: Set when it has left.
    """

    role: RuntimeRole
    runtime: Runtime
    leave: trio.Event = attrs.field(factory=trio.Event)
    left: trio.Event = attrs.field(factory=trio.Event)


@final
@attrs.frozen
class World:
    """Everything a scenario is played with.

    Attributes:
        nodes: By their addresses.
        members: By their addresses, which are the same in the scenario and here.
        hyperties: By their addresses in the scenario.
        peers: By the addresses of the objects they report.
        wanted: Links that somebody has been made to want.
        beside: Where what goes on beside the script runs; ends with the world.
    """

    scenario: Scenario
    cast: Cast
    observer: Observer
    names: Names
    air: Air
    nodes: dict[str, Node]
    members: dict[str, Member]
    beside: trio.Nursery
    hyperties: dict[str, ScriptedHyperty] = attrs.field(factory=dict)
    peers: dict[str, Outsider] = attrs.field(factory=dict)
    wanted: set[Pair] = attrs.field(factory=set)

    def member(self, runtime: str) -> Member:
        """Find a runtime.

        Raises:
            StageError: It is not in the cast.
        """
        member = self.members.get(runtime)
        if member is None:
            raise StageError(f"{runtime} is no runtime of the scenario")
        return member

    def hyperty(self, url: str | None) -> ScriptedHyperty:
        """Find a hyperty by its address in the scenario.

        Raises:
            StageError: It is not in the cast.
        """
        hyperty = None if url is None else self.hyperties.get(url)
        if hyperty is None:
            raise StageError(f"{url or 'nobody'} is no hyperty of the scenario that is deployed")
        return hyperty

    async def deploy(self, role: HypertyRole, profile: Profile | None = None) -> None:
        """Run and register a hyperty, and let its name stand for the address it gets.

        Raises:
            StageError: It gets no address, or its record is not taken.
        """
        member = self.member(role.runtime)

        def make(port: MiniBusPort) -> ScriptedHyperty:
            hyperty = ScriptedHyperty(port)
            self.hyperties[role.url] = hyperty
            return hyperty

        try:
            url = await member.runtime.host(profile or role.url.rpartition("/")[2], make)
        except (AllocationError, RegistrationError) as error:
            raise StageError(f"{role.url} cannot be deployed: {error}") from error
        if host_of(url) != host_of(role.url):
            raise StageError(
                f"{role.url} cannot live in {role.runtime}, whose node gives addresses of "
                f"{host_of(url)}: let its ways begin and end in a runtime of its own domain"
            )
        self.names.bind(role.url, url)

    def take_over(self) -> None:
        """Leave from now on all answers to the script; only stand-ins go on by themselves."""
        for role in self.cast.hyperties:
            hyperty = self.hyperties.get(role.url)
            if hyperty is not None and not role.is_stand_in:
                hyperty.manners = Manners.SCRIPTED


@asynccontextmanager
async def open_world(scenario: Scenario, observer: Observer, names: Names) -> AsyncIterator[World]:
    """Open the nodes and runtimes of a scenario; hyperties come later.

    On leaving, everybody takes leave: the runtimes, then the nodes.

    Raises:
        BadUrlError: A domain or runtime of the scenario cannot be part of an address.
    """
    cast, air = cast_of(scenario), Air()
    async with AsyncExitStack() as stack:
        nodes: dict[str, Node] = {}
        ways: dict[str, dict[str, Endpoint]] = {domain: {} for domain in cast.ways}
        foreign = {
            domain: ForeignPlan(ways[domain], open_room_here) if domain in ways else NOWHERE
            for domain in cast.domains
        }
        for number, domain in enumerate(cast.domains):
            node = message_node(domain)
            config = _node_config(cast, names, (domain, number), foreign[domain])
            back_ends, login = back_ends_of(scenario, domain), login_of(scenario, domain)
            config = attrs.evolve(config, back_ends=back_ends, login=login)
            opened = open_node(config, air.view(node), observer.tracer(node))
            nodes[node] = await stack.enter_async_context(opened)
            _tell_of(nodes[node], cast, ways)
        async with trio.open_nursery() as runtimes, trio.open_nursery() as beside:
            world = World(scenario, cast, observer, names, air, nodes, {}, beside)
            for role in cast.runtimes:
                world.members[role.url] = await runtimes.start(_run, world, role)
            yield world
            beside.cancel_scope.cancel()
            for member in world.members.values():
                member.leave.set()


async def _run(world: World, role: RuntimeRole, *, task_status: trio.TaskStatus[Member]) -> None:
    """Run a runtime until it is to leave."""
    config = _runtime_config(world, role)
    tracer = world.observer.tracer(role.url)
    async with open_runtime(config, world.air.view(role.url), tracer) as runtime:
        member = Member(role, runtime)
        task_status.started(member)
        await member.leave.wait()
    member.left.set()


def _tell_of(node: Node, cast: Cast, ways: Mapping[str, dict[str, Endpoint]]) -> None:
    """Tell the nodes that have a stub for its domain where a node is."""
    for domain, way in ways.items():
        if node.domain in cast.ways[domain]:
            way[node.domain] = Endpoint(node.url)


def _node_config(
    cast: Cast, names: Names, who: tuple[str, int], foreign: ForeignPlan
) -> NodeConfig:
    domain, number = who
    mine = (one for one in cast.denials if one.at == message_node(domain))
    schemes = {scheme_of(one.url) for one in cast.objects}
    return NodeConfig(
        domain=domain,
        object_schemes=OBJECT_SCHEMES | schemes,
        policy=NodeDenials(mine, names),
        # What objects of the scenery hear and say is told before their owners were asked.
        observation=Observation.OPEN,
        entropy=_entropy(number),
        foreign=foreign,
    )


def _runtime_config(world: World, role: RuntimeRole) -> RuntimeConfig:
    mine = (one for one in world.cast.denials if one.at == role.url)
    nodes: Mapping[str, str] = {node.domain: node.url for node in world.nodes.values()}
    return RuntimeConfig(
        domain=role.domain,
        name=role.name,
        node=nodes[role.domain],
        nodes=nodes,
        kinds=(Kind.TCP,) if role.wants_links else (),
        topology=role.topology,
        user=role.user,
        policy=RuntimeDenials(mine, world.names),
        entropy=_entropy(len(world.nodes) + len(world.members)),
    )


def _entropy(seed: int) -> Callable[[int], bytes]:
    """Make a source of bytes that is the same in every run, and never says one thing twice."""
    numbers = count()

    def some(size: int) -> bytes:
        drawn = b""
        while len(drawn) < size:
            drawn += blake2b(f"{seed} {next(numbers)}".encode()).digest()
        return drawn[:size]

    return some
