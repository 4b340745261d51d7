"""The stage of a scenario: its world, and the actions and faults that the player applies to it.

Single messages are lost, doubled or delayed by their steps (`"drop": "lost"`,
`"doubled": true`, `"delayed": 5`). Such a step names the message and the place, between a
runtime and a message node. The actors run ahead of the steps that describe them, so the
network watches from the last action before such a step. Equal messages in steps between that
action and the step pass first. A delay holds back all that follows on the same link. Other
messages in the frame of a lost one arrive.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import singledispatch
from typing import Final, final

import attrs
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.kit.trace import message_fact
from actors.runtime.bus.messages import Origin
from actors.runtime.hyperty.hyperty import Profile
from actors.runtime.registry.allocation import NotKeptError
from specs.addresses.address import (
    address_allocation,
    domain_of,
    last_segment,
    message_node,
    runtime,
    runtime_of,
    session_manager,
)
from specs.jsonvalue import JsonObject
from specs.message import Message, MessageType, instance_id
from specs.trace import Op
from tests.conformance.play.match.evidence import DELAYED, DOUBLED
from tests.conformance.play.match.names import Names, says_the_same
from tests.conformance.play.match.observer import Observer
from tests.conformance.play.script import vocabulary as do
from tests.conformance.play.script.addresses import Places
from tests.conformance.play.script.hop import Ride
from tests.conformance.play.script.steps import (
    LOST,
    MessageStep,
    Scenario,
    Step,
    TimeStep,
)
from tests.conformance.play.stage.network import Carried
from tests.conformance.play.stage.participants import Peer, StageError
from tests.conformance.play.stage.setup import ask_over_link, observing, set_up
from tests.conformance.play.stage.world import World, open_world
from transports.codec import decode_line, encode
from transports.errors import DialError, LinkError

_NETWORK: Final = "network"


@final
@attrs.define(eq=False)
class _Watch:
    """Looks out for one message.

    Attributes:
        cue: Number of the step with whose actions it begins; 0: at once.
        passing: How many messages alike pass before it.
        old: Instances that were there when it began; they are others.
        known: Instances alike since then.
    """

    step: MessageStep
    cue: int
    passing: int
    old: frozenset[str] = frozenset()
    known: dict[str, None] = attrs.field(factory=dict)


@final
class Disturbances:
    """The network faults of the messages of one scenario.

    Args:
        names: What the scenario's names stand for; not changed.
        observer: Is notified of lost and doubled messages.
    """

    def __init__(self, scenario: Scenario, names: Names, observer: Observer) -> None:
        self._names = names
        self._observer = observer
        self._places = Places(scenario.setting)
        self._planned = list(_planned(scenario))
        self._due: list[_Watch] = []
        self._begin(0)

    def expect(self, step: Step) -> None:
        """Look out, from now on, for what is to happen behind the actions of a step."""
        self._begin(step.number)

    def _begin(self, number: int) -> None:
        due = [one for one in self._planned if one.cue == number]
        old = frozenset(seen.fact.mid for seen in self._observer.items if seen.fact.mid)
        for watch in due:
            watch.old = old
        self._due += due

    def carried(self, sender: str, receiver: str, frame: bytes) -> Carried:
        """Return what becomes of a frame.

        Args:
            sender: Name of the sending end.
            receiver: Name of the receiving end.
            frame: The frame.
        """
        if not self._due:
            return Carried(frame)
        hits: list[MessageStep] = []
        lines = frame.split(b"\n")
        left = [part for line in lines for part in self._left(sender, receiver, line, hits)]
        delay = max((step.delayed for step in hits), default=0.0)
        return Carried(b"\n".join(left) if left else None, delay)

    def _left(
        self, sender: str, receiver: str, line: bytes, hits: list[MessageStep]
    ) -> tuple[bytes, ...]:
        message = decode_line(line)
        if not isinstance(message, Message):
            return (line,)
        watch = next(
            (one for one in self._due if self._is_it(one, sender, receiver, message)), None
        )
        if watch is None:
            return (line,)
        self._due.remove(watch)
        hits.append(watch.step)
        op, reason, copies = _effect(watch.step)
        fact = message_fact(op, message, reason=reason)
        self._observer.see(sender, _NETWORK, fact, message)
        return (line,) * copies

    def _is_it(self, watch: _Watch, sender: str, receiver: str, message: Message) -> bool:
        mid = instance_id(message)
        if not self._goes_there(watch.step, sender, receiver):
            return False
        known = self._number(watch.step.message)
        if known is not None:
            return message.id == known and self._is_like(watch.step.message, message)
        if mid in watch.old or not self._is_like(watch.step.message, message):
            return False
        watch.known[mid] = None
        return len(watch.known) > watch.passing

    def _number(self, golden: Message) -> int | None:
        """Return the actors' id of a message, if an earlier hop of it was seen."""
        return self._names.numbers.get(_counter(golden), {}).get(golden.id)

    def _is_like(self, golden: Message, message: Message) -> bool:
        trial = self._names.copy()
        return (
            (golden.type, golden.code) == (message.type, message.code)
            and trial.unify(golden.to, message.to)
            and trial.unify(golden.from_, message.from_)
            and says_the_same(golden, message, trial)
        )

    def _goes_there(self, step: MessageStep, sender: str, receiver: str) -> bool:
        """Return whether this is the hop on which the fault is to happen."""
        hop = step.hop
        rides = [carrier.ride for carrier in hop.carriers]
        # It is lost on the last hop of the scenario, and doubled on the first possible hop.
        places = [len(rides) - 1] if step.is_lost else range(len(rides))
        for place in places:
            if rides and rides[place] is Ride.UNSAID:
                return True
            if rides and rides[place] is Ride.WIRE:
                ends = (hop.stations[place][0], hop.stations[place + 1][0])
                named = zip(map(self._places.process, ends), (sender, receiver), strict=True)
                return all(one is None or one == other for one, other in named)
        return False


def _effect(step: MessageStep) -> tuple[Op, str, int]:
    """Return what is traced of a disturbed message, why, and how often it arrives."""
    if step.is_lost:
        return Op.DROP, LOST, 0
    if step.doubled:
        return Op.XMIT, DOUBLED, 2
    return Op.XMIT, DELAYED, 1


def _planned(scenario: Scenario) -> Iterator[_Watch]:
    for step in scenario.steps:
        if isinstance(step, MessageStep) and step.is_disturbed:
            before = (one for one in scenario.steps if one.number <= step.number)
            cue = max((one.number for one in before if scenario.is_acted(one)), default=0)
            alike = {
                instance_id(one.message)
                for one in scenario.steps
                if isinstance(one, MessageStep)
                and cue <= one.number < step.number
                and _form(one.message) == _form(step.message)
            }
            yield _Watch(step, cue, len(alike - {instance_id(step.message)}))


def _form(message: Message) -> object:
    return (message.type, message.from_, message.to, message.body)


def _counter(message: Message) -> str:
    """Return the address whose ids number a message: the requester's."""
    return message.to if message.is_response else message.from_


_VIA: Final = "via"
_FORGER: Final = "forger"
_VISITOR: Final = "visitor"
_NEW: Final = "new"
_NOT_FOUND: Final = "not found"
_LENT: Final = frozenset({"graph-connector"})
"""Parts of a runtime that stand beside it; the player speaks for them."""

_PUBLISHED: Final = frozenset({"version", "source"})
"""Fields of a change that its sync manager adds."""


@singledispatch
async def act(action: do.Action, _world: World, step: Step) -> None:
    """Do one thing before a step; returns when it is under way. Each word has a function below.

    Args:
        action: The action.
        step: The step.

    Raises:
        StageError: It cannot be done.
    """
    raise StageError(f"step {step.number}: no participant can do {type(action).__name__}")


def _message(action: do.Action, step: Step) -> Message:
    """Return the message of a step.

    Raises:
        StageError: It has none.
    """
    if isinstance(step, MessageStep):
        return step.message
    what = type(action).__name__.lower()
    raise StageError(f"step {step.number} is no message that could be meant by {what!r}")


def _translated(world: World, value: JsonObject) -> JsonObject:
    translated = world.names.in_actual(value)
    return translated if isinstance(translated, dict) else {}


def _body(world: World, message: Message) -> JsonObject:
    """Return a message as it leaves its sender: without `via`."""
    body = {key: value for key, value in message.body.items() if key != _VIA}
    return _translated(world, body)


# ---- hyperties


@act.register
async def _send(action: do.Send, world: World, step: Step) -> None:
    message = _message(action, step)
    from_ = world.names.actual(message.from_) if message.from_ != action.by else None
    to = world.names.actual(message.to)
    await world.hyperty(action.by).post(message.type, to, _body(world, message), from_)


@act.register
async def _answer(action: do.Answer, world: World, step: Step) -> None:
    message = _message(action, step)
    hyperty = world.hyperty(action.by)
    if not await hyperty.answer(world.names.actual(message.to), _body(world, message)):
        raise StageError(f"{action.by} has nothing to answer: no request of {message.to} came")


@act.register
async def _change(action: do.Change, world: World, step: Step) -> None:
    """Have a reporter change its object, by its sync manager as all reporters do."""
    message = _message(action, step)
    manager = f"{world.setting.home(action.by)}/sm"
    change = {key: value for key, value in message.body.items() if key not in _PUBLISHED}
    change = {"resource": message.from_, **change}
    reporter = world.hyperty(action.by)
    await reporter.post(MessageType.UPDATE, manager, _translated(world, change))


@act.register
async def _ask(action: do.Ask, world: World, _step: Step) -> None:
    await ask_over_link(world, action.by, action.of)


@act.register
async def _observe(action: do.Observe, world: World, _step: Step) -> None:
    manager, body = observing(world, action.by, action.object)
    await world.hyperty(action.by).post(MessageType.SUBSCRIBE, manager, body)


@act.register
async def _deploy(action: do.Deploy, world: World, _step: Step) -> None:
    profile = Profile(
        name=action.name or last_segment(action.is_),
        descriptor=action.descriptor,
        resources=action.resources,
        data_schemes=action.data_schemes,
    )
    await world.deploy(action.is_, profile)


# ---- parts of runtimes


@act.register
async def _order(action: do.Order, world: World, step: Step) -> None:
    world.beside.start_soon(_ordered, world, action.by, _message(action, step))


async def _ordered(world: World, by: str, message: Message) -> None:
    member, part = world.member(runtime_of(by)), last_segment(by)
    if part in _LENT:
        sender = f"{member.runtime.url}/{part}"
        member.runtime.bus.grant(sender, sender, Origin.LOCAL)
    to, body = world.names.actual(message.to), _body(world, message)
    await member.runtime.order(part, message.type, to, body)


@act.register
async def _watch(action: do.Watch, world: World, _step: Step) -> None:
    world.beside.start_soon(_watched, world, action)


async def _watched(world: World, action: do.Watch) -> None:
    """Have a registry follow a record: the user agent of its runtime asks it to."""
    record = f"{world.names.actual(action.hyperty)}/registration"
    body: JsonObject = {"resources": [record]}
    to = f"{action.in_}/registry"
    await world.member(action.in_).runtime.order("ua", MessageType.SUBSCRIBE, to, body)


@act.register
async def _allocate(action: do.Allocate, world: World, _step: Step) -> None:
    member = world.member(action.in_)
    to = address_allocation(member.domain)
    body: JsonObject = {"scheme": action.scheme, "value": {"number": action.number}}
    await member.runtime.order("address-allocation", MessageType.CREATE, to, body)


@act.register
async def _reuse(action: do.Reuse, world: World, _step: Step) -> None:
    profile = Profile("reserved", descriptor=action.descriptor, address=action.address)
    try:
        came = await world.member(action.in_).runtime._addresses.give(profile)
    except NotKeptError:
        result = _NOT_FOUND
    else:
        result = _NEW if came.is_new else world.names.golden(came.address)
    if result != action.result:
        raise StageError(f"{action.in_} gave: {result}")


# ---- outside of runtimes


@act.register
async def _publish(action: do.Publish, world: World, step: Step) -> None:
    message, peer = _message(action, step), world.peers.get(action.object)
    if peer is None:
        raise StageError(f"no peer reports {action.object}: a hyperty does, by its `change`")
    from_, to = world.names.actual(message.from_), world.names.actual(message.to)
    await peer.post(message.type, from_, to, _body(world, message))


@act.register
async def _control(action: do.Control, world: World, step: Step) -> None:
    """Have a bare stub come by itself, say one thing to a node, and listen."""
    message = _message(action, step)
    stub = world.names.actual(message.from_)
    peer = await _come(world, stub, message.to)
    await peer.post(message.type, stub, message.to, _body(world, message))


@act.register
async def _log_in(action: do.LogIn, world: World, step: Step) -> None:
    """Make an outsider open a session at the node of a step."""
    manager = session_manager(domain_of(_message(action, step).from_))
    home = runtime(domain_of(manager), _VISITOR)
    stub = f"{home}/protostub/1"
    peer = await _come(world, stub, manager)
    params: JsonObject = {"runtimeURL": home, "token": action.assertion}
    await peer.post(MessageType.EXECUTE, stub, manager, {"method": "open", "params": params})


async def _come(world: World, stub: str, manager: str) -> Peer:
    """Have a bare stub connect to a node, and listen."""
    node = world.node(message_node(domain_of(manager)))
    peer = Peer(stub, world.observer.tracer(runtime_of(stub)))
    try:
        await peer.dial(world.network.view(f"{stub}, again"), node.url)
    except DialError as error:
        raise StageError(f"{stub} cannot come: {error}") from error
    world.beside.start_soon(peer.run)
    return peer


@act.register
async def _forge(action: do.Forge, world: World, step: Step) -> None:
    """Write a frame on the wire between a node and a runtime as if the node had."""
    message, wire = _message(action, step), world.network.wire(action.to, action.from_)
    if wire is None:
        raise StageError(f"{action.to} has no link to {action.from_}: no frame can be forged")
    forged = Message(
        id=message.id,
        type=message.type,
        from_=world.names.actual(message.from_),
        to=world.names.actual(message.to),
        body=_translated(world, message.body),
    )
    tracer = world.observer.tracer(action.from_)
    tracer.message(_FORGER, Op.XMIT, forged, link=wire.acceptor.name)
    with suppress(LinkError):
        await wire.acceptor.send(encode(forged))


# ---- faults


@act.register
async def _cut(action: do.LinkCut, world: World, _step: Step) -> None:
    one, other = action.between
    if not world.network.cut(one, other):
        raise StageError(f"{one} and {other} have no link that could be cut")


@act.register
async def _silence(action: do.PeerSilent, world: World, _step: Step) -> None:
    one, other = action.between
    world.network.silence((one, other))


@act.register
async def _vanish(action: do.PeerVanishes, world: World, _step: Step) -> None:
    world.network.lose(action.of)


@act.register
async def _shut_down(action: do.RuntimeShutdown, world: World, _step: Step) -> None:
    member = world.member(action.of)
    member.stop.set()
    await member.stopped.wait()


@act.register
async def _jump(action: do.ClockJump, _world: World, _step: Step) -> None:
    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, MockClock):
        raise StageError("a real clock cannot jump: play under a virtual clock")
    clock.jump(action.seconds)


@asynccontextmanager
async def open_stage(
    scenario: Scenario, observer: Observer, names: Names
) -> AsyncIterator["Stage"]:
    """Open the world of a scenario and bring it to where the scenario begins.

    On leaving, all participants leave in good order; it may take virtual minutes.

    Args:
        scenario: What is to be played.
        observer: Sees everything, from the opening on; is notified when the scenario begins.
        names: Learns what the addresses that are given stand for.

    Raises:
        StageError: The world cannot be brought there.
    """
    failure: StageError | None = None
    async with open_world(scenario, observer, names) as world:
        try:
            await set_up(world)
        except StageError as error:
            # Raised once all participants have left, so that it comes out alone.
            failure = error
        else:
            yield Stage(world)
    if failure is not None:
        raise failure


@final
class Stage:
    """A world in which a scenario is under way."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._disturbances = Disturbances(world.scenario, world.names, world.observer)
        world.network.disturbance = self._disturbances.carried

    async def act(self, step: Step) -> None:
        """Do all that is to be done before a step is looked for; let its time pass.

        Returns when it is under way: what the actors make of it is for the observer.

        Raises:
            StageError: It cannot be done.
        """
        # An act is slower than a step inside a process, faster than a wire.
        await wait_all_tasks_blocked()
        self._disturbances.expect(step)
        for action in self._world.scenario.actions.get(step.number, ()):
            await act(action, self._world, step)
        if isinstance(step, TimeStep):
            await trio.sleep(step.seconds)
