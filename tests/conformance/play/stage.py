"""The stage of a scenario: real nodes and runtimes, a network in memory, and what acts on them.

Nodes and runtimes come first. Then, in this order: hyperties are deployed, and those of kept
addresses end again; data objects are created, by their reporters or by peers, and brought to their
versions; links are made live; observers subscribe; records are disconnected. The scenario begins,
unless its `beginning` is earlier; then links begin that are `connecting`, and those break that are
`broken`.

Single messages are lost or doubled by their steps (`"drop": "lost"`, `"doubled": true`). The actors
run ahead of the steps that describe them, so the network watches from the last action before such a
step. Equal messages in steps between that action and the step pass first.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from hashlib import blake2b
from itertools import count, product
from typing import Final

import attrs
import trio
from trio.testing import wait_all_tasks_blocked
from typing_extensions import override

from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.trace import Tracer, message_fact
from actors.node.app import Node, open_node
from actors.node.config import NOWHERE, OBJECT_SCHEMES, Endpoint, ForeignPlan, NodeConfig
from actors.node.connectors.back_ends import BackEnds
from actors.node.login.provider import Admission, Login
from actors.node.policy_hook import Asker
from actors.node.policy_hook import Policy as NodePolicy
from actors.policy.engine import Decision, Ruling
from actors.runtime.app import open_runtime
from actors.runtime.bus.messages import Origin
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Profile
from actors.runtime.policy import Policy as RuntimePolicy
from actors.runtime.registry.allocation import AllocationError, NotKeptError
from actors.runtime.registry.registrations import RegistrationError
from actors.runtime.runtime import Runtime
from actors.sandbox.sandbox import open_local_sandbox
from fsm.registry.node_rights import Observation
from fsm.registry.resolve.topology import Topology
from specs.addresses import address as url
from specs.bodies.session import TurnServer
from specs.errors import ProtoflyError
from specs.jsonvalue import JsonObject
from specs.limits.protocol import GOODBYE_TIMEOUT, REPLY_TIMEOUT
from specs.message import Message, MessageType, instance_id, reply_to
from specs.reply_code import FIRST_FINAL, LAST_SUCCESS, Code
from specs.trace import Kind as Of
from specs.trace import Op
from tests.actors.node.connectors.back_ends import PeopleFake, RecordsFake, RelaysFake
from tests.conformance.play.names import Names, says_the_same
from tests.conformance.play.network import ScenarioNetwork
from tests.conformance.play.route import DOUBLED, Observer
from tests.conformance.play.script import LOST, UNSAID, WIRE, Line, Scenario
from transports.codec import decode_frame, decode_line, encode
from transports.errors import DialError, LinkError
from transports.link import Kind, Link

_PATIENCE: Final = 60.0
"""Seconds, of any clock, that a precondition may take."""

_OWN_WORDS: Final = "the player asks"
"""The value of what the player itself has a hyperty ask: always answered at once."""

_FIRST_ID: Final = 10**6
"""Ids of outsiders are above those of a real stub of the same address (MSG-03)."""


class StageError(ProtoflyError):
    """The player cannot do what a scenario asks of the world around the actors."""


class ScriptedHyperty(Actor[Delivery]):
    """A hyperty without a will of its own.

    Attributes:
        is_scripted: Whether it keeps requests until the script answers them; others it answers 200
            at once, as it always does what the player asks for itself.
    """

    def __init__(self, port: MiniBusPort) -> None:
        self.is_scripted = False
        self.url = port.url
        self._port = port
        self._ids = IdSource()
        self._asked: list[Message] = []
        self._more = trio.Event()

    @override
    async def handle(self, message: Delivery) -> None:
        request = message.message
        if not request.is_request:
            return
        if not self.is_scripted or request.body.get("value") == _OWN_WORDS:
            await self._port.post(reply_to(request, Code.OK))
            return
        self._asked.append(request)
        self._more.set()
        self._more = trio.Event()

    async def post(
        self, type_: MessageType, to: str, body: JsonObject, from_: str | None = None
    ) -> None:
        """Send a message and wait for nothing."""
        sender = from_ or self.url
        await self._port.post(Message(self._ids.next(sender), type_, sender, to, body))

    async def ask(self, type_: MessageType, to: str, body: JsonObject) -> Message:
        """Send a request that must succeed; return its final answer."""
        request = Message(self._ids.next(self.url), type_, self.url, to, body)
        return granted(await self._port.request(request))

    async def answer(self, asker: str, body: JsonObject) -> bool:
        """Answer the oldest request of a sender that has no final answer; False: none comes."""
        with trio.move_on_after(REPLY_TIMEOUT):
            while not (mine := [one for one in self._asked if one.from_ == asker]):
                await self._more.wait()
            if body.get("code", 0) >= FIRST_FINAL:
                self._asked.remove(mine[0])
            answer = Message(mine[0].id, MessageType.RESPONSE, mine[0].to, asker, body)
            await self._port.post(answer)
            return True
        return False


class Peer:
    """A bare stub, without a runtime, at one end of a link to a node; its messages are traced.

    It answers pings, and accepts all other requests.
    """

    def __init__(self, stub: str, tracer: Tracer) -> None:
        self.stub = stub
        self._tracer = tracer
        self._ids = IdSource(_FIRST_ID)
        self._answers: dict[int, Message] = {}
        self._more = trio.Event()
        self.link: Link

    async def run(self) -> None:
        """Listen until the link is gone."""
        with suppress(LinkError):
            try:
                while True:
                    for line in decode_frame(await self.link.receive()):
                        if isinstance(line, Message):
                            await self._take(line)
            finally:
                with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                    await self.link.aclose()

    async def _take(self, message: Message) -> None:
        self._record(Op.RCV, message)
        if message.is_response:
            self._answers[message.id] = message
            self._more.set()
            self._more = trio.Event()
        elif message.is_request:
            await self._send(reply_to(message, Code.OK))

    async def _send(self, message: Message) -> None:
        self._record(Op.XMIT, message)
        await self.link.send(encode(message))

    def _record(self, op: Op, message: Message) -> None:
        actor = f"stub:{self.stub}"
        self._tracer.message(actor, op, message, stub=self.stub, link=self.link.name)

    async def post(self, type_: MessageType, from_: str, to: str, body: JsonObject) -> int:
        """Write a message under the next id; return the id."""
        number = self._ids.next(from_)
        await self._send(Message(number, type_, from_, to, body))
        return number

    async def ask(self, type_: MessageType, from_: str, to: str, body: JsonObject) -> Message:
        """Send a request that must succeed; return its answer."""
        number = await self.post(type_, from_, to, body)
        while number not in self._answers:
            await self._more.wait()
        return granted(self._answers.pop(number))


def granted(answer: Message) -> Message:
    """Return an answer that says yes."""
    if answer.code > LAST_SUCCESS:
        why = answer.body.get("description", "")
        raise StageError(f"{answer.from_} refused a precondition: {answer.code} {why}".rstrip())
    return answer


@attrs.frozen
class Member:
    """A runtime that runs in a task of its own; it ends when `stop` is set."""

    runtime: Runtime
    stop: trio.Event = attrs.field(factory=trio.Event)
    stopped: trio.Event = attrs.field(factory=trio.Event)


@attrs.frozen
class Stage:
    """Everything a scenario is played with; addresses are those of the scenario.

    Attributes:
        peers: By the addresses of the objects they report.
        beside: Where what goes on beside the script runs; ends with the stage.
    """

    scenario: Scenario
    observer: Observer
    names: Names
    nodes: dict[str, Node]
    beside: trio.Nursery
    network: ScenarioNetwork
    members: dict[str, Member] = attrs.field(factory=dict)
    hyperties: dict[str, ScriptedHyperty] = attrs.field(factory=dict)
    peers: dict[str, Peer] = attrs.field(factory=dict)
    _watches: list["_Watch"] = attrs.field(factory=list)

    async def act(self, step: Line) -> None:
        """Do all that is to be done before a step is looked for; let its time pass.

        Returns when it is under way: what the actors make of it is for the observer.
        """
        # An act is slower than a step inside a process, faster than a wire.
        await wait_all_tasks_blocked()
        self._watch(step.n)
        for action in self.scenario.actions.get(step.n, ()):
            if action.word in _WITH_MESSAGE and step.word != "msg":
                raise StageError(
                    f"step {step.n} is no message that could be meant by {action.word!r}"
                )
            done = ACTIONS[action.word](self, action, step.msg)
            if done is not None:
                await done
        if step.word == "time":
            await trio.sleep(step.dt)

    async def ask(
        self, runtime: str, part: str, type_: MessageType, to: str, body: JsonObject
    ) -> Message:
        """Send a request as a part of a runtime; return its answer."""
        return await self.members[runtime].runtime.order(part, type_, to, body)

    async def deploy(self, line: Line, profile: Profile | str) -> None:
        """Run and register a hyperty, and let its name stand for the address it gets."""

        def make(port: MiniBusPort) -> ScriptedHyperty:
            hyperty = self.hyperties[line.is_] = ScriptedHyperty(port)
            return hyperty

        try:
            actual = await self.members[line.in_].runtime.host(profile, make)
        except (AllocationError, RegistrationError) as error:
            raise StageError(f"{line.is_} cannot be deployed: {error}") from error
        if url.host_of(actual) != url.host_of(line.is_):
            domain = url.host_of(actual)
            raise StageError(f"{line.in_} gives addresses of {domain}, not such as {line.is_}")
        self.names.bind(line.is_, actual)

    async def come(self, stub: str, domain: str, view: str) -> Peer:
        """Have a bare stub connect to a node, and listen."""
        peer = Peer(stub, self.observer.tracer(url.runtime_of(stub)))
        node = self.nodes[url.message_node(domain)]
        try:
            peer.link = await self.network.view(view).dial(Kind.WEBSOCKET, node.url)
        except DialError as error:
            raise StageError(f"{stub} cannot come: {error}") from error
        self.beside.start_soon(peer.run)
        return peer

    def body(self, message: Message) -> JsonObject:
        """Return the body of a message of the scenario as it leaves its sender: without `via`."""
        body = {key: value for key, value in message.body.items() if key != "via"}
        return self.names.in_actual(body)

    # ---- messages that the network loses or doubles

    def _watch(self, number: int) -> None:
        """Look out, from now on, for what is to happen behind the actions of a step."""
        old = {seen.fact.mid for seen in self.observer.items}
        steps = list(self.scenario.messages())
        for step in (one for one in steps if one.is_lost or one.doubled):
            acted = (one.n for one in self.scenario.steps if self.scenario.is_acted(one))
            cue = max((one for one in acted if one <= step.n), default=0)
            if cue == number:
                alike = {
                    instance_id(one.msg)
                    for one in steps
                    if cue <= one.n < step.n and _form(one.msg) == _form(step.msg)
                }
                self._watches.append(_Watch(step, len(alike - {instance_id(step.msg)}), old))

    def _disturb(self, sender: str, receiver: str, frame: bytes) -> bytes | None:
        """Return what is left of a frame, and added to it; None: it is lost."""
        if not self._watches:
            return frame
        lines: list[bytes] = []
        for line in frame.split(b"\n"):
            message, watch = decode_line(line), None
            if isinstance(message, Message):
                its = partial(self._is_it, sender, receiver, message)
                watch = next(filter(its, self._watches), None)
            if watch is None:
                lines.append(line)
                continue
            self._watches.remove(watch)
            op, reason = (Op.DROP, LOST) if watch.step.is_lost else (Op.XMIT, DOUBLED)
            fact = message_fact(op, message, reason=reason)
            self.observer.see(sender, "network", fact, message)
            lines += [line] * (0 if watch.step.is_lost else 2)
        return b"\n".join(lines) if lines else None

    def _is_it(self, sender: str, receiver: str, message: Message, watch: "_Watch") -> bool:
        golden, trial, mid = watch.step.msg, self.names.copy(), instance_id(message)
        counter = golden.to if golden.is_response else golden.from_
        # Its id is known if an earlier hop of it was seen.
        number = self.names.numbers.get(counter, {}).get(golden.id)
        is_like = (
            self._goes_there(watch.step, sender, receiver)
            and (golden.type, golden.code) == (message.type, message.code)
            and trial.unify(golden.to, message.to)
            and trial.unify(golden.from_, message.from_)
            and says_the_same(golden, message, trial)
        )
        if not is_like or number is not None:
            return is_like and message.id == number
        if mid not in watch.old:
            watch.known.add(mid)
        return mid in watch.known and len(watch.known) > watch.passing

    def _goes_there(self, step: Line, sender: str, receiver: str) -> bool:
        """Return whether this is the hop on which the fault is to happen."""
        hop = step.hop
        # It is lost on the last hop of the scenario, and doubled on the first possible hop.
        places = list(range(len(hop.carriers)))
        for place in places[-1:] if step.is_lost else places:
            if hop.carriers[place] == UNSAID:
                return True
            if hop.carriers[place] == WIRE:
                ends = (hop.stations[place][0], hop.stations[place + 1][0])
                named = zip(map(self.scenario.process, ends), (sender, receiver), strict=True)
                return all(one is None or one == other for one, other in named)
        return False


@attrs.define(eq=False)
class _Watch:
    """Looks out for the message of a step.

    Attributes:
        passing: How many messages alike pass before it.
        old: Instances that were there when it began; they are others.
        known: Instances alike since then.
    """

    step: Line
    passing: int
    old: set[str | None]
    known: set[str] = attrs.field(factory=set)


def _form(message: Message) -> object:
    return message.type, message.from_, message.to, message.body


# ---- what is done, and what breaks

_NO_OBJECT_FIELDS: Final = frozenset({"version", "source"})
"""Fields of a change that its sync manager adds."""


async def _send(stage: Stage, line: Line, message: Message) -> None:
    from_ = stage.names.actual(message.from_) if message.from_ != line.by else None
    to = stage.names.actual(message.to)
    await stage.hyperties[line.by].post(message.type, to, stage.body(message), from_)


async def _answer(stage: Stage, line: Line, message: Message) -> None:
    asker = stage.names.actual(message.to)
    if not await stage.hyperties[line.by].answer(asker, stage.body(message)):
        raise StageError(f"{line.by} has nothing to answer: no request of {message.to} came")


async def _change(stage: Stage, line: Line, message: Message) -> None:
    """Have a reporter change its object, by its sync manager as all reporters do."""
    change = {key: one for key, one in message.body.items() if key not in _NO_OBJECT_FIELDS}
    body = stage.names.in_actual({"resource": message.from_, **change})
    manager = f"{stage.scenario.home(line.by)}/sm"
    await stage.hyperties[line.by].post(MessageType.UPDATE, manager, body)


async def _publish(stage: Stage, line: Line, message: Message) -> None:
    peer = stage.peers.get(line.object)
    if peer is None:
        raise StageError(f"no peer reports {line.object}: a hyperty does, by its `change`")
    from_, to = stage.names.actual(message.from_), stage.names.actual(message.to)
    await peer.post(message.type, from_, to, stage.body(message))


async def _order(stage: Stage, line: Line, message: Message) -> None:
    sender = stage.scenario.sender(line.by)
    home, part = url.runtime_of(sender), url.last_segment(sender)

    async def order() -> None:
        if part == "graph-connector":
            # It stands beside its runtime; the player speaks for it.
            stage.members[home].runtime.bus.grant(sender, sender, Origin.LOCAL)
        to, body = stage.names.actual(message.to), stage.body(message)
        await stage.ask(home, part, message.type, to, body)

    stage.beside.start_soon(order)


async def _ask_over_link(stage: Stage, asker: str, asked: str) -> None:
    """Have a hyperty ask another, whose runtime it is not linked to.

    The link being live, it asks again, so that the other end learns the addresses here.
    """

    async def use() -> None:
        await _until_live(stage, *(stage.scenario.home(one) for one in (asker, asked)))
        await ask()

    async def ask() -> None:
        to = stage.names.actual(asked)
        await stage.hyperties[asker].post(MessageType.CREATE, to, {"value": _OWN_WORDS})

    await ask()
    stage.beside.start_soon(use)


async def _reuse(stage: Stage, line: Line, _message: Message | None) -> None:
    profile = Profile("reserved", descriptor=line.descriptor, address=line.address)
    try:
        came = await stage.members[line.in_].runtime._addresses.allocate(profile)
    except NotKeptError:
        result = "not found"
    else:
        result = "new" if came.is_new else stage.names.golden(came.address)
    if result != line.result:
        raise StageError(f"{line.in_} gave: {result}")


async def _log_in(stage: Stage, line: Line, message: Message) -> None:
    """Make an outsider open a session at the node of a step."""
    domain = url.domain_of(message.from_)
    home = url.runtime(domain, "visitor")
    await _come(
        stage, f"{home}/protostub/1", MessageType.EXECUTE, domain, _open(home, line.assertion)
    )


async def _control(stage: Stage, _line: Line, message: Message) -> None:
    """Have a bare stub come by itself, say one thing to a node, and listen."""
    stub, domain = stage.names.actual(message.from_), url.domain_of(message.to)
    await _come(stage, stub, message.type, domain, stage.body(message))


async def _come(stage: Stage, stub: str, type_: MessageType, domain: str, body: JsonObject) -> None:
    peer = await stage.come(stub, domain, f"{stub}, again")
    await peer.post(type_, stub, url.session_manager(domain), body)


def _open(home: str, token: str | None = None) -> JsonObject:
    more = {} if token is None else {"token": token}
    return {"method": "open", "params": {"runtimeURL": home, **more}}


async def _forge(stage: Stage, line: Line, message: Message) -> None:
    """Write a frame on the wire between a node and a runtime as if the node had."""
    wire = stage.network.wire(line.to, line.from_)
    if wire is None:
        raise StageError(f"{line.to} has no link to {line.from_}: no frame can be forged")
    forged = attrs.evolve(
        message,
        from_=stage.names.actual(message.from_),
        to=stage.names.actual(message.to),
        body=stage.names.in_actual(message.body),
    )
    tracer = stage.observer.tracer(line.from_)
    tracer.message("forger", Op.XMIT, forged, link=wire.acceptor.name)
    with suppress(LinkError):
        await wire.acceptor.send(encode(forged))


async def _cut(stage: Stage, line: Line, _message: Message | None) -> None:
    if not stage.network.cut(*line.between):
        raise StageError(f"{' and '.join(line.between)} have no link that could be cut")


async def _shut_down(stage: Stage, line: Line, _message: Message | None) -> None:
    member = stage.members[line.of]
    member.stop.set()
    await member.stopped.wait()


def _watch(stage: Stage, line: Line, _message: Message | None) -> None:
    """Have a registry follow a record: the user agent of its runtime asks it to."""
    body = {"resources": [f"{stage.names.actual(line.hyperty)}/registration"]}
    order = partial(stage.ask, line.in_, "ua", MessageType.SUBSCRIBE, f"{line.in_}/registry", body)
    stage.beside.start_soon(order)


def _observe(stage: Stage, line: Line, _message: Message | None) -> Awaitable[None]:
    asked = _observing(stage, line.by, line.object)
    return stage.hyperties[line.by].post(MessageType.SUBSCRIBE, *asked)


ACTIONS: Final[Mapping[str, Callable[[Stage, Line, Message], Awaitable[None] | None]]] = {
    "send": _send,
    "answer": _answer,
    "change": _change,
    "publish": _publish,
    "order": _order,
    "ask": lambda stage, line, _: _ask_over_link(stage, line.by, line.of),
    "observe": _observe,
    "watch": _watch,
    "deploy": lambda stage, line, _: stage.deploy(line, _profile(line)),
    "reuse": _reuse,
    "log in": _log_in,
    "control": _control,
    "forge": _forge,
    "link cut": _cut,
    "peer silent": lambda stage, line, _: stage.network.silence(*line.between),
    "peer vanishes": lambda stage, line, _: stage.network.lose(line.of),
    "runtime shutdown": _shut_down,
}
"""What the player does for each word, with the message of the step."""

_WITH_MESSAGE: Final = frozenset(
    {"send", "answer", "change", "publish", "order", "log in", "control", "forge"}
)


# ---- how it is before the first step


async def _set_up(stage: Stage) -> None:
    """Bring the world to where its scenario begins, and say when it begins."""
    given = stage.scenario.all
    begins = {one.before for one in given("beginning")}
    for line in given("hyperty"):
        await stage.deploy(line, _profile(line))
    for line in given("kept address"):
        await stage.deploy(line, _profile(line))
        await stage.members[line.in_].runtime.rest(stage.names.actual(line.is_))
    for line in given("object"):
        await (_make_object if line.by else _report_outside)(stage, line)
    for line in given("link"):
        if line.state != "connecting":
            await _make_live(stage, line)
    if "observers" in begins:
        await _set_states(stage)
        stage.observer.begin()
    for line in given("object"):
        for observer in line.observers or ():
            asked = _observing(stage, observer, line.is_)
            await stage.hyperties[observer].ask(MessageType.SUBSCRIBE, *asked)
    if "observers" not in begins:
        await _set_states(stage)
    if not begins:
        stage.observer.begin()
    await _begin(stage)


async def _begin(stage: Stage) -> None:
    """Leave hyperties to the script; begin and break the links that begin and break with it."""
    for line in stage.scenario.all("hyperty"):
        stage.hyperties[line.is_].is_scripted = not line.answers
    for line in stage.scenario.all("link"):
        if line.state == "connecting":
            for asker, asked in product(line.asking, line.asked):
                await _ask_over_link(stage, asker, asked)
        elif line.state == "broken":
            stage.network.cut(line.from_, line.to)


def _profile(line: Line) -> Profile:
    """Return what a hyperty is registered with."""
    return Profile(
        url.last_segment(line.is_),
        line.descriptor,
        resources=line.resources or (),
        data_schemes=line.data_schemes or (),
    )


async def _set_states(stage: Stage) -> None:
    for line in stage.scenario.all("hyperty"):
        if line.status == "disconnected":
            actual = stage.names.actual(line.is_)
            body = {"resource": actual, "attribute": "status", "value": line.status}
            to = url.domain_registry(url.host_of(actual))
            granted(await stage.ask(line.in_, "registry", MessageType.UPDATE, to, body))


async def _make_object(stage: Stage, line: Line) -> None:
    reporter, home = stage.hyperties[line.by], stage.scenario.home(line.by)
    manager, data = f"{home}/sm", line.data or {"t": line.version or 1}
    value = {"name": "object", "reporter": reporter.url, "runtime": home, "data": data}
    body = {"schema": line.schema, "value": value}
    created = await reporter.ask(MessageType.CREATE, manager, body)
    actual = created.body.get("resource")
    stage.names.bind(line.is_, actual)
    attribute, last = next(iter(data.items()))
    for _ in range(1, line.version or 1):
        change = {"resource": actual, "attribute": attribute, "value": last}
        await reporter.ask(MessageType.UPDATE, manager, change)
    for observer in line.allowed or ():
        allowed = {"resource": actual, "observer": stage.names.actual(observer)}
        await reporter.ask(MessageType.CREATE, manager, allowed)


async def _report_outside(stage: Stage, line: Line) -> None:
    """Have a peer report an object that no runtime of the scenario holds."""
    domain = url.host_of(line.is_)
    home = url.runtime(domain, "outsider")
    peer = await stage.come(f"{home}/protostub/1", domain, home)
    await peer.ask(MessageType.EXECUTE, peer.stub, url.session_manager(domain), _open(home))
    sender, to = f"{home}/address-allocation", url.address_allocation(domain)
    body = {"scheme": url.scheme_of(line.is_), "value": {"number": 1}}
    answer = await peer.ask(MessageType.CREATE, sender, to, body)
    stage.names.bind(line.is_, answer.body["value"]["allocated"][0])
    stage.peers[line.is_] = peer


def _observing(stage: Stage, observer: str, object_: str) -> tuple[str, JsonObject]:
    """Return the sync manager that a hyperty asks to observe an object, and what it says."""
    body = {"resource": stage.names.actual(object_)}
    schemas = (one.schema for one in stage.scenario.all("object") if one.is_ == object_)
    return f"{stage.scenario.home(observer)}/sm", {**body, "schema": next(schemas)}


async def _make_live(stage: Stage, line: Line) -> None:
    """Have a link wanted until it is live, then used by all hyperties it concerns."""

    async def ask() -> None:
        for asker, asked in product(line.asking, line.asked):
            to = stage.names.actual(asked)
            await stage.hyperties[asker].ask(MessageType.CREATE, to, {"value": _OWN_WORDS})

    await ask()
    await _until_live(stage, line.from_, line.to)
    await ask()
    for own, remote in ((line.from_, line.to), (line.to, line.from_)):
        for object_ in stage.scenario.all("object"):
            actual = stage.names.actual(object_.is_)
            is_listed = url.host_of(actual) == url.host_of(remote)
            if stage.scenario.home(object_.by) == remote and is_listed:
                await _until_row(stage, own, remote, actual)


async def _until_live(stage: Stage, one: str, other: str) -> None:
    """Wait until both registries route by a link."""
    await _until_row(stage, one, other)
    await _until_row(stage, other, one)


async def _until_row(stage: Stage, own: str, remote: str, entity: str = "") -> None:
    known = 0
    while True:
        items = stage.observer.items
        for seen in items[known:]:
            fact, row = seen.fact, seen.fact.val or ""
            is_about = fact.k is Of.TABLE and (fact.table, fact.key) == ("p2p", remote)
            if is_about and seen.who == own and row.startswith("live ") and entity in row:
                return
        known = len(items)
        await stage.observer.more(known)


# ---- the world


@asynccontextmanager
async def open_stage(scenario: Scenario, observer: Observer, names: Names) -> AsyncIterator[Stage]:
    """Open the world of a scenario and bring it to where the scenario begins.

    On leaving, all participants leave in good order; it may take virtual minutes.

    Raises:
        StageError: The world cannot be brought there.
    """
    failure: StageError | None = None
    async with open_world(scenario, observer, names) as stage:
        try:
            with trio.fail_after(_PATIENCE):
                await _set_up(stage)
        except (StageError, trio.TooSlowError) as error:
            # Raised once all participants have left, so that it comes out alone.
            failure = StageError(str(error) or f"what is given did not come about in {_PATIENCE} s")
        else:
            stage._watch(0)
            stage.network.disturb = stage._disturb
            yield stage
    if failure is not None:
        raise failure


@asynccontextmanager
async def open_world(scenario: Scenario, observer: Observer, names: Names) -> AsyncIterator[Stage]:
    """Open the nodes and runtimes of a scenario; hyperties come later.

    On leaving, the runtimes end first, then the nodes.
    """
    network, nodes = ScenarioNetwork(), dict[str, Node]()
    routes: dict[str, dict[str, Endpoint]] = {one.domain: {} for one in scenario.all("node")}
    async with AsyncExitStack() as stack:
        for number, line in enumerate(scenario.all("node")):
            config = _node_config(scenario, names, line, number, routes[line.domain])
            address = url.message_node(line.domain)
            view, tracer = network.view(address), observer.tracer(address)
            node = await stack.enter_async_context(open_node(config, view, tracer))
            nodes[address] = node
            for other in scenario.all("node"):
                if line.domain in (other.stubs or ()):
                    routes[other.domain][line.domain] = Endpoint(node.url)
        async with trio.open_nursery() as runtimes, trio.open_nursery() as beside:
            stage = Stage(scenario, observer, names, nodes, beside, network)
            for line in scenario.all("runtime"):
                stage.members[line.is_] = await runtimes.start(_run, stage, line)
            yield stage
            beside.cancel_scope.cancel()
            for member in stage.members.values():
                member.stop.set()


async def _run(stage: Stage, line: Line, *, task_status: trio.TaskStatus[Member]) -> None:
    """Run a runtime until it is to stop."""
    domain, nodes = url.host_of(line.is_), stage.scenario.all("node")
    has_stubs = any(one.stubs for one in nodes if one.domain == domain)
    urls = {node.domain: node.url for node in stage.nodes.values()}
    config = RuntimeConfig(
        domain=domain,
        name=url.last_segment(line.is_),
        node=urls[domain],
        nodes=urls,
        kinds=(Kind.TCP,) if line.p2p else (),
        topology=Topology.TRAPEZOID if has_stubs else Topology.TRIANGLE,
        user=line.user,
        policy=_RuntimeDenials(_denials(stage.scenario, stage.names, line.is_)),
        entropy=_entropy(len(nodes) + len(stage.members)),
    )
    tracer = stage.observer.tracer(line.is_)
    async with open_runtime(config, stage.network.view(line.is_), tracer) as runtime:
        member = Member(runtime)
        task_status.started(member)
        await member.stop.wait()
    member.stopped.set()


def _node_config(
    scenario: Scenario, names: Names, line: Line, number: int, routes: Mapping[str, Endpoint]
) -> NodeConfig:
    schemes = {url.scheme_of(one.is_) for one in scenario.all("object")}
    records, relays, people = line.records, line.relays, line.people
    turns = [TurnServer(**one) for one in relays or ()]
    return NodeConfig(
        domain=line.domain,
        object_schemes=OBJECT_SCHEMES | schemes,
        policy=_NodeDenials(_denials(scenario, names, url.message_node(line.domain))),
        # Scenarios show paths of objects before their owners are asked.
        observation=Observation.OPEN,
        entropy=_entropy(number),
        foreign=ForeignPlan(routes, open_local_sandbox) if line.stubs else NOWHERE,
        back_ends=BackEnds(
            global_registry=None if records is None else lambda: RecordsFake(records),
            quality=None if relays is None else lambda: RelaysFake(turns),
        ),
        login=None
        if people is None
        else Login(provider=lambda _: PeopleFake(people), admission=Admission.ANYBODY),
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


def _denials(scenario: Scenario, names: Names, place: str) -> Callable[[Message], str | None]:
    """Return what says why the bus of a place forbids a message; None: it does not."""

    def why(message: Message) -> str | None:
        ends = (message.type, names.golden(message.from_), names.golden(message.to))
        lines: Iterator[Line] = (one for one in scenario.all("denial") if one.at == place)
        return next((one.why for one in lines if (one.type, one.from_, one.to) == ends), None)

    return why


class _RuntimeDenials(RuntimePolicy):
    """The policy of a runtime's bus."""

    def __init__(self, why: Callable[[Message], str | None]) -> None:
        self._why = why

    @override
    def refusal(self, message: Message, by: str) -> str | None:
        return self._why(message)


class _NodeDenials(NodePolicy):
    """The policy of a node's bus."""

    def __init__(self, why: Callable[[Message], str | None]) -> None:
        self._why = why

    @override
    def judge(self, message: Message, asker: Asker) -> Ruling:
        why = self._why(message)
        if why is None:
            return Ruling(Decision.PERMIT, "scenario")
        return Ruling(Decision.DENY, "scenario", why)
