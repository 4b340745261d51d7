"""Does what a scenario says is done, and breaks what it says breaks."""

from contextlib import suppress
from functools import singledispatch
from typing import Final

import trio
from trio.testing import MockClock

from actors.play.script.steps import MessageStep, Step
from actors.play.script.vocabulary import (
    Action,
    Allocate,
    Answer,
    Ask,
    Change,
    ClockJump,
    Control,
    Deploy,
    Forge,
    LinkCut,
    LogIn,
    Observe,
    Order,
    PeerSilent,
    PeerVanishes,
    Publish,
    Reuse,
    RuntimeShutdown,
    Send,
    Watch,
)
from actors.play.stage.participants import Peer
from actors.play.stage.setup import ask_over_link, observing
from actors.play.stage.stage_error import StageError
from actors.play.stage.world import World
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
from specs.message import Message, MessageType
from specs.trace import Op
from transports.codec import encode
from transports.errors import DialError, LinkError

__all__ = ["act"]

_VIA: Final = "via"
_FORGER: Final = "forger"
_VISITOR: Final = "visitor"
_NEW: Final = "new"
_NOT_FOUND: Final = "not found"
_LENT: Final = frozenset({"graph-connector"})
"""Parts of a runtime that stand beside it; the player speaks for them."""

_PUBLISHED: Final = frozenset({"version", "source"})
"""Fields of a change that its sync manager adds."""


async def act(world: World, action: Action, step: Step) -> None:
    """Do one thing before a step; returns when it is under way.

    Raises:
        StageError: It cannot be done.
    """
    await _done(action, world, step)


@singledispatch
async def _done(action: object, _world: World, step: Step) -> None:
    """Do one thing; each word has a function below."""
    raise StageError(f"step {step.number}: nobody can do {type(action).__name__}")


def _message(action: Action, step: Step) -> Message:
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
    """Return what a message says as it leaves its sender: without a way yet."""
    body = {key: value for key, value in message.body.items() if key != _VIA}
    return _translated(world, body)


# ---- hyperties


@_done.register
async def _send(action: Send, world: World, step: Step) -> None:
    message = _message(action, step)
    from_ = world.names.actual(message.from_) if message.from_ != action.by else None
    to = world.names.actual(message.to)
    await world.hyperty(action.by).post(message.type, to, _body(world, message), from_)


@_done.register
async def _answer(action: Answer, world: World, step: Step) -> None:
    message = _message(action, step)
    hyperty = world.hyperty(action.by)
    if not await hyperty.answer(world.names.actual(message.to), _body(world, message)):
        raise StageError(f"{action.by} has nothing to answer: no request of {message.to} came")


@_done.register
async def _change(action: Change, world: World, step: Step) -> None:
    """Have a reporter change its object, by its sync manager as all reporters do."""
    message = _message(action, step)
    manager = f"{world.setting.home(action.by)}/sm"
    change = {key: value for key, value in message.body.items() if key not in _PUBLISHED}
    change = {"resource": message.from_, **change}
    reporter = world.hyperty(action.by)
    await reporter.post(MessageType.UPDATE, manager, _translated(world, change))


@_done.register
async def _ask(action: Ask, world: World, _step: Step) -> None:
    await ask_over_link(world, action.by, action.of)


@_done.register
async def _observe(action: Observe, world: World, _step: Step) -> None:
    manager, body = observing(world, action.by, action.object)
    await world.hyperty(action.by).post(MessageType.SUBSCRIBE, manager, body)


@_done.register
async def _deploy(action: Deploy, world: World, _step: Step) -> None:
    profile = Profile(
        name=action.name or last_segment(action.is_),
        descriptor=action.descriptor,
        resources=action.resources,
        data_schemes=action.data_schemes,
    )
    await world.deploy(action.is_, profile)


# ---- parts of runtimes


@_done.register
async def _order(action: Order, world: World, step: Step) -> None:
    world.beside.start_soon(_ordered, world, action.by, _message(action, step))


async def _ordered(world: World, by: str, message: Message) -> None:
    member, part = world.member(runtime_of(by)), last_segment(by)
    if part in _LENT:
        await member.runtime.lend(part)
    to, body = world.names.actual(message.to), _body(world, message)
    await member.runtime.order(part, message.type, to, body)


@_done.register
async def _watch(action: Watch, world: World, _step: Step) -> None:
    world.beside.start_soon(_watched, world, action)


async def _watched(world: World, action: Watch) -> None:
    """Have a registry follow a record: the user agent of its runtime asks it to."""
    record = f"{world.names.actual(action.hyperty)}/registration"
    body: JsonObject = {"resources": [record]}
    to = f"{action.in_}/registry"
    await world.member(action.in_).runtime.order("ua", MessageType.SUBSCRIBE, to, body)


@_done.register
async def _allocate(action: Allocate, world: World, _step: Step) -> None:
    member = world.member(action.in_)
    to = address_allocation(member.domain)
    body: JsonObject = {"scheme": action.scheme, "value": {"number": action.number}}
    await member.runtime.order("address-allocation", MessageType.CREATE, to, body)


@_done.register
async def _reuse(action: Reuse, world: World, _step: Step) -> None:
    profile = Profile("reserved", descriptor=action.descriptor, address=action.address)
    try:
        came = await world.member(action.in_).runtime.reserve(profile)
    except NotKeptError:
        result = _NOT_FOUND
    else:
        result = _NEW if came.is_new else world.names.golden(came.address)
    if result != action.result:
        raise StageError(f"{action.in_} gave: {result}")


# ---- outside of runtimes


@_done.register
async def _publish(action: Publish, world: World, step: Step) -> None:
    message, peer = _message(action, step), world.peers.get(action.object)
    if peer is None:
        raise StageError(f"no peer reports {action.object}: a hyperty does, by its `change`")
    from_, to = world.names.actual(message.from_), world.names.actual(message.to)
    await peer.post(message.type, from_, to, _body(world, message))


@_done.register
async def _control(action: Control, world: World, step: Step) -> None:
    """Have a bare stub come by itself, say one thing to a node, and listen."""
    message = _message(action, step)
    stub = world.names.actual(message.from_)
    peer = await _come(world, stub, message.to)
    await peer.post(message.type, stub, message.to, _body(world, message))


@_done.register
async def _log_in(action: LogIn, world: World, step: Step) -> None:
    """Have somebody who is not given open a session at the node of a step."""
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


@_done.register
async def _forge(action: Forge, world: World, step: Step) -> None:
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


@_done.register
async def _cut(action: LinkCut, world: World, _step: Step) -> None:
    one, other = action.between
    if not world.network.cut(one, other):
        raise StageError(f"{one} and {other} have no link that could be cut")


@_done.register
async def _silence(action: PeerSilent, world: World, _step: Step) -> None:
    one, other = action.between
    world.network.silence((one, other))


@_done.register
async def _vanish(action: PeerVanishes, world: World, _step: Step) -> None:
    world.network.lose(action.of)


@_done.register
async def _shut_down(action: RuntimeShutdown, world: World, _step: Step) -> None:
    member = world.member(action.of)
    member.stop.set()
    await member.stopped.wait()


@_done.register
async def _jump(action: ClockJump, _world: World, _step: Step) -> None:
    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, MockClock):
        raise StageError("a clock that nobody moves cannot jump: play under a virtual clock")
    clock.jump(action.seconds)
