"""The world of a scenario: real nodes and runtimes, a network and back ends in memory.

Behind a connector stands a small back end: records by GUID, relays in the order in which they
are granted, users by their credentials.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from hashlib import blake2b
from itertools import count
from typing import Final, TypeVar, final

import attrs
import trio
from typing_extensions import override

from actors.node.app import Node as RunningNode
from actors.node.app import open_node
from actors.node.config import NOWHERE, OBJECT_SCHEMES, Endpoint, ForeignPlan, NodeConfig
from actors.node.connectors.back_ends import BackEnds
from actors.node.connectors.global_registry import GlobalRecords
from actors.node.connectors.quality import QualityBroker
from actors.node.connectors.service import Replied, with_value
from actors.node.login.provider import Admission, IdentityProvider, Login, LoginRefusedError
from actors.node.policy_hook import Asker
from actors.node.policy_hook import Policy as NodePolicy
from actors.policy.engine import Decision, Ruling
from actors.runtime.app import open_runtime
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Profile
from actors.runtime.policy import Policy as RuntimePolicy
from actors.runtime.registry.allocation import AllocationError
from actors.runtime.registry.registrations import RegistrationError
from actors.runtime.runtime import Runtime as RunningRuntime
from actors.sandbox.local import open_local_sandbox
from fsm.registry.node_rights import Observation
from specs.addresses.address import host_of, scheme_of
from specs.bodies.session import IceServer, IceServers, QualityRequest, TurnServer
from specs.identity import Identity
from specs.jsonvalue import JsonObject
from specs.message import Message
from specs.reply_code import Code
from tests.conformance.play.match.names import Names
from tests.conformance.play.match.observer import Observer
from tests.conformance.play.script.steps import Scenario, Setting
from tests.conformance.play.script.vocabulary import DataObject, Denial, Hyperty, Node, Runtime
from tests.conformance.play.stage.network import ScenarioNetwork
from tests.conformance.play.stage.participants import Peer, ScriptedHyperty, StageError
from transports.link import Kind

T = TypeVar("T")

_FOUND: Final = "OK"
_MISSING: Final = "Not Found"


@final
class RecordsFake(GlobalRecords):
    """A global registry in memory.

    Args:
        records: What it holds, by GUID.
    """

    def __init__(self, records: Mapping[str, str]) -> None:
        self._records = dict(records)

    @override
    async def read(self, guid: str) -> Replied:
        await trio.lowlevel.checkpoint()
        token = self._records.get(guid)
        if token is None:
            return Replied(Code.NOT_FOUND, {"description": _MISSING})
        return with_value(Code.OK, token, _FOUND)

    @override
    async def publish(self, guid: str, token: str) -> Replied:
        await trio.lowlevel.checkpoint()
        self._records[guid] = token
        return Replied(Code.OK)

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@final
class RelaysFake(QualityBroker):
    """A quality broker with so many relays; what is released is granted again.

    Args:
        relays: What it grants, in this order.
    """

    def __init__(self, relays: Iterable[TurnServer]) -> None:
        self._free = list(relays)
        self._granted: dict[str, TurnServer] = {}

    @override
    async def reserve(self, name: str, quality: QualityRequest) -> TurnServer | None:
        await trio.lowlevel.checkpoint()
        if name not in self._granted and self._free:
            self._granted[name] = self._free.pop(0)
        return self._granted.get(name)

    @override
    async def resources(self, user: str) -> IceServers | None:
        await trio.lowlevel.checkpoint()
        free = tuple(IceServer((one.turn,), one.username, one.credential) for one in self._free)
        return IceServers(free) if free else None

    @override
    async def status(self, name: str) -> JsonObject | None:
        await trio.lowlevel.checkpoint()
        granted = self._granted.get(name)
        return None if granted is None else {"turn": granted.turn}

    @override
    async def release(self, name: str) -> None:
        await trio.lowlevel.checkpoint()
        granted = self._granted.pop(name, None)
        if granted is not None:
            self._free.append(granted)

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@final
class PeopleFake(IdentityProvider):
    """An identity provider that knows people by what they log in with.

    Args:
        people: Addresses of users, by assertion.
    """

    def __init__(self, people: Mapping[str, str]) -> None:
        self._people = dict(people)

    @override
    async def validate(self, assertion: str, key: str | None) -> Identity:
        await trio.lowlevel.checkpoint()
        user = self._people.get(assertion)
        if user is None:
            raise LoginRefusedError("the token proves no identity")
        return Identity(user=user, issuer=host_of(user), until=float("inf"))

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


def back_ends_of(node: Node) -> BackEnds:
    """Return what a node relays to."""
    records, relays = node.records, node.relays
    return BackEnds(
        global_registry=None if records is None else lambda: RecordsFake(_texts(records)),
        quality=None if relays is None else lambda: RelaysFake(map(_relay, relays)),
    )


def login_of(node: Node) -> Login | None:
    """Return the login of users at a node; None: no login."""
    people = node.people
    if people is None:
        return None
    return Login(provider=lambda _: PeopleFake(_texts(people)), admission=Admission.ANYBODY)


def _texts(value: JsonObject) -> dict[str, str]:
    return {key: str(one) for key, one in value.items()}


def _relay(value: JsonObject) -> TurnServer:
    turn, username, credential = (
        str(value.get(name, "")) for name in ("turn", "username", "credential")
    )
    return TurnServer(turn, username, credential)


@final
@attrs.frozen
class Member:
    """A runtime that runs in a task of its own.

    Attributes:
        stop: Set to shut it down.
        stopped: Set when it has ended.
    """

    runtime: RunningRuntime
    domain: str
    stop: trio.Event = attrs.field(factory=trio.Event)
    stopped: trio.Event = attrs.field(factory=trio.Event)


@final
@attrs.frozen
class World:
    """Everything a scenario is played with.

    Attributes:
        nodes: By their addresses.
        members: By their addresses, which are the same in the scenario and here.
        hyperties: By their addresses in the scenario.
        peers: By the addresses of the objects they report.
        beside: Where what goes on beside the script runs; ends with the world.
    """

    scenario: Scenario
    observer: Observer
    names: Names
    network: ScenarioNetwork
    nodes: dict[str, RunningNode]
    members: dict[str, Member]
    beside: trio.Nursery
    hyperties: dict[str, ScriptedHyperty] = attrs.field(factory=dict)
    peers: dict[str, Peer] = attrs.field(factory=dict)

    @property
    def setting(self) -> Setting:
        """The given participants."""
        return self.scenario.setting

    def member(self, runtime: str | None) -> Member:
        """Find a runtime."""
        return _found(self.members, runtime, "runtime")

    def hyperty(self, url: str | None) -> ScriptedHyperty:
        """Find a hyperty by its address in the scenario."""
        return _found(self.hyperties, url, "deployed hyperty")

    def node(self, address: str) -> RunningNode:
        """Find a node."""
        return _found(self.nodes, address, "node")

    async def deploy(self, url: str, profile: Profile | str) -> None:
        """Run and register a hyperty, and let its name stand for the address it gets.

        Args:
            url: Address of the hyperty in the scenario.
            profile: Attributes of the hyperty, or its name.

        Raises:
            StageError: It gets no address, or its record is not taken.
        """
        home = self.setting.home(url)
        member = self.member(home)

        def make(port: MiniBusPort) -> ScriptedHyperty:
            hyperty = ScriptedHyperty(port)
            self.hyperties[url] = hyperty
            return hyperty

        try:
            actual = await member.runtime.host(profile, make)
        except (AllocationError, RegistrationError) as error:
            raise StageError(f"{url} cannot be deployed: {error}") from error
        if host_of(actual) != host_of(url):
            raise StageError(
                f"{url} cannot live in {home}, whose node gives addresses of "
                f"{host_of(actual)}: give it a runtime of its own domain"
            )
        self.names.bind(url, actual)

    def hand_over(self) -> None:
        """Leave from now on all answers to the script, but for hyperties that answer."""
        for given in self.setting.all(Hyperty):
            hyperty = self.hyperties.get(given.is_)
            if hyperty is not None and not given.answers:
                hyperty.is_scripted = True


def _found(known: Mapping[str, T], address: str | None, what: str) -> T:
    """Return a participant.

    Raises:
        StageError: It is not given.
    """
    one = known.get(address or "")
    if one is None:
        raise StageError(f"{address or 'no address'} is no {what} of the scenario")
    return one


@asynccontextmanager
async def open_world(scenario: Scenario, observer: Observer, names: Names) -> AsyncIterator[World]:
    """Open the nodes and runtimes of a scenario; hyperties come later.

    On leaving, the runtimes end first, then the nodes.

    Args:
        scenario: The scenario.
        observer: Observations of the run.
        names: Values that stand for names of the scenario.

    Raises:
        BadUrlError: A domain or runtime of the scenario cannot be part of an address.
    """
    setting, network = scenario.setting, ScenarioNetwork()
    async with AsyncExitStack() as stack:
        nodes: dict[str, RunningNode] = {}
        routes: dict[str, dict[str, Endpoint]] = {one.domain: {} for one in setting.all(Node)}
        for number, given in enumerate(setting.all(Node)):
            config = _node_config(setting, names, given, number, routes)
            view, tracer = network.view(given.address), observer.tracer(given.address)
            node = await stack.enter_async_context(open_node(config, view, tracer))
            nodes[given.address] = node
            for other in setting.all(Node):
                if node.domain in other.stubs:
                    routes[other.domain][node.domain] = Endpoint(node.url)
        async with trio.open_nursery() as runtimes, trio.open_nursery() as beside:
            world = World(scenario, observer, names, network, nodes, {}, beside)
            for runtime in setting.all(Runtime):
                world.members[runtime.is_] = await runtimes.start(_run, world, runtime)
            yield world
            beside.cancel_scope.cancel()
            for member in world.members.values():
                member.stop.set()


async def _run(world: World, given: Runtime, *, task_status: trio.TaskStatus[Member]) -> None:
    """Run a runtime until it is to stop."""
    config = _runtime_config(world, given)
    tracer = world.observer.tracer(given.is_)
    async with open_runtime(config, world.network.view(given.is_), tracer) as runtime:
        member = Member(runtime, given.domain)
        task_status.started(member)
        await member.stop.wait()
    member.stopped.set()


def _node_config(
    setting: Setting,
    names: Names,
    given: Node,
    number: int,
    routes: Mapping[str, Mapping[str, Endpoint]],
) -> NodeConfig:
    schemes = {scheme_of(one.is_) for one in setting.all(DataObject)}
    foreign = ForeignPlan(routes[given.domain], open_local_sandbox) if given.stubs else NOWHERE
    return NodeConfig(
        domain=given.domain,
        object_schemes=OBJECT_SCHEMES | schemes,
        policy=_NodeDenials(setting.denials(given.address), names),
        # Scenarios show paths of objects before their owners are asked.
        observation=Observation.OPEN,
        entropy=_entropy(number),
        foreign=foreign,
        back_ends=back_ends_of(given),
        login=login_of(given),
    )


def _runtime_config(world: World, given: Runtime) -> RuntimeConfig:
    nodes: Mapping[str, str] = {node.domain: node.url for node in world.nodes.values()}
    return RuntimeConfig(
        domain=given.domain,
        name=given.name,
        node=nodes[given.domain],
        nodes=nodes,
        kinds=(Kind.TCP,) if given.p2p else (),
        topology=world.setting.topology(given),
        user=given.user,
        policy=_RuntimeDenials(world.setting.denials(given.is_), world.names),
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


# ---- policies

_POLICY: Final = "scenario"


@final
class _RuntimeDenials(RuntimePolicy):
    """The policy of a runtime's bus."""

    def __init__(self, denials: Iterable[Denial], names: Names) -> None:
        self._denials = tuple(denials)
        self._names = names

    @override
    def refusal(self, message: Message, by: str) -> str | None:
        return _why(self._denials, self._names, message)


@final
class _NodeDenials(NodePolicy):
    """The policy of a node's bus."""

    def __init__(self, denials: Iterable[Denial], names: Names) -> None:
        self._denials = tuple(denials)
        self._names = names

    @override
    def judge(self, message: Message, asker: Asker) -> Ruling:
        why = _why(self._denials, self._names, message)
        if why is None:
            return Ruling(Decision.PERMIT, _POLICY)
        return Ruling(Decision.DENY, _POLICY, why)


def _why(denials: Iterable[Denial], names: Names, message: Message) -> str | None:
    ends = (message.type, names.golden(message.from_), names.golden(message.to))
    return next((one.why for one in denials if (one.type, one.from_, one.to) == ends), None)
