"""Does the cues that are messages: what hyperties, peers and forgers send."""

from contextlib import suppress
from typing import Final

from actors.play.atlas import is_hyperty
from actors.play.back_ends import assertion_in
from actors.play.cue import Cue
from actors.play.errands import followed_by, watched_by
from actors.play.outsider import Outsider
from actors.play.roles import HypertyRole
from actors.play.scenery import observe_by
from actors.play.script import MessageStep
from actors.play.stage_error import StageError
from actors.play.world import World
from actors.runtime.profile import Profile
from specs.address import (
    domain_of,
    is_backend,
    last_segment,
    message_node,
    runtime,
    runtime_of,
)
from specs.jsonvalue import Json, JsonObject
from specs.message import Message, MessageType
from specs.trace import Op
from transports.codec import encode
from transports.errors import DialError, LinkError

__all__ = ["send"]

_VIA: Final = "via"
_FORGER: Final = "forger"
_VISITOR: Final = "visitor"
_LENT: Final = frozenset({"graph-connector"})
"""Parts of a runtime that stand beside it; the player speaks for them."""

_PUBLISHED: Final = frozenset({"version", "source"})
"""Fields of a change that its sync manager adds."""


async def send(world: World, cue: Cue, step: MessageStep) -> None:
    """Send the message of a cue, addresses translated.

    Raises:
        StageError: Nobody can send it.
    """
    match cue:
        case Cue.HYPERTY_SENDS:
            await _by_hyperty(world, step)
        case Cue.HYPERTY_ANSWERS:
            await _answer(world, step)
        case Cue.REPORTER_CHANGES:
            await _change(world, step)
        case Cue.PEER_SENDS:
            await _by_peer(world, step)
        case Cue.STUB_CONTROLS:
            await _control(world, step)
        case Cue.SOMEBODY_LOGS_IN:
            await _log_in(world, step)
        case Cue.FRAME_FORGED:
            await _forge(world, step)
        case _:
            await _errand(world, step)


def _translated(world: World, value: JsonObject) -> JsonObject:
    translated = world.names.in_actual(value)
    return translated if isinstance(translated, dict) else {}


def _body(world: World, message: Message) -> JsonObject:
    """Return what a message says as it leaves its sender: without a way yet."""
    body = {key: value for key, value in message.body.items() if key != _VIA}
    return _translated(world, body)


async def _by_hyperty(world: World, step: MessageStep) -> None:
    message = step.message
    sender = world.cast.atlas.hyperty(step.hop.first)
    from_ = world.names.actual(message.from_) if message.from_ != sender else None
    to = world.names.actual(message.to)
    await world.hyperty(sender).post(message.type, to, _body(world, message), from_)


async def _answer(world: World, step: MessageStep) -> None:
    answering, asker = world.cast.atlas.hyperty(step.hop.first), step.message.to
    hyperty = world.hyperty(answering)
    if not await hyperty.answer(world.names.actual(asker), _body(world, step.message)):
        raise StageError(f"{answering} has nothing to answer: no request of {asker} came")


async def _change(world: World, step: MessageStep) -> None:
    """Have a reporter change its object, by its sync manager as all reporters do."""
    message = step.message
    role = world.cast.object(message.from_)
    reporter = None if role is None else role.reporter
    manager = f"{world.cast.home(reporter or '')}/sm"
    change = {key: value for key, value in message.body.items() if key not in _PUBLISHED}
    change = {"resource": message.from_, **change}
    await world.hyperty(reporter).post(MessageType.UPDATE, manager, _translated(world, change))


async def _by_peer(world: World, step: MessageStep) -> None:
    message = step.message
    role = world.cast.object(message.from_)
    peer = None if role is None else world.peers.get(role.url)
    if peer is None:
        raise StageError(f"nobody reports {message.from_}, so nobody can send step {step.number}")
    from_, to = world.names.actual(message.from_), world.names.actual(message.to)
    await peer.post(message.type, from_, to, _body(world, message))


async def _control(world: World, step: MessageStep) -> None:
    """Have a bare stub come by itself, say one thing to a node, and listen."""
    message = step.message
    stub = world.names.actual(message.from_)
    outsider = await _come(world, stub, message.to)
    await outsider.post(message.type, stub, message.to, _body(world, message))


async def _log_in(world: World, step: MessageStep) -> None:
    """Have somebody who is not in the cast open a session with what a node then asks about."""
    manager = step.message.from_
    home = runtime(domain_of(manager), _VISITOR)
    stub = f"{home}/protostub/1"
    assertion = assertion_in(step.message.body)
    outsider = await _come(world, stub, manager)
    params: JsonObject = {"runtimeURL": home, "token": assertion}
    await outsider.post(MessageType.EXECUTE, stub, manager, {"method": "open", "params": params})


async def _come(world: World, stub: str, manager: str) -> Outsider:
    """Have a bare stub connect to a node, and listen."""
    opened = world.nodes.get(message_node(domain_of(manager)))
    if opened is None:
        raise StageError(f"{manager} is no part of a node of the scenario")
    outsider = Outsider(stub, world.observer.tracer(runtime_of(stub)))
    try:
        await outsider.dial(world.air.view(f"{stub}, again"), opened.url)
    except DialError as error:
        raise StageError(f"{stub} cannot come: {error}") from error
    world.beside.start_soon(outsider.run)
    return outsider


async def _forge(world: World, step: MessageStep) -> None:
    """Write a frame on the wire between a node and a runtime as if the node had."""
    atlas, message = world.cast.atlas, step.message
    node = atlas.of(step.hop.first) or ""
    runtime = next((one for place in step.hop.last if (one := atlas.runtime(place))), "")
    wire = world.air.wire(runtime, node)
    if wire is None:
        raise StageError(f"{runtime} has no link to {node} on which a frame could be forged")
    forged = Message(
        id=message.id,
        type=message.type,
        from_=world.names.actual(message.from_),
        to=world.names.actual(message.to),
        body=_translated(world, message.body),
    )
    world.observer.tracer(node).message(_FORGER, Op.XMIT, forged, link=wire.acceptor.name)
    with suppress(LinkError):
        await wire.acceptor.send(encode(forged))


# ---- errands of a runtime's parts


async def _errand(world: World, step: MessageStep) -> None:
    """Have a part of a runtime do what nothing in the scenario makes it do.

    A hyperty is registered by being deployed, a path to an object's changes is set by
    somebody observing it, one to a record's status by somebody following it; what is
    left the part is ordered to ask.
    """
    message = step.message
    home, part = runtime_of(message.from_), last_segment(message.from_)
    registered = _registered(message)
    if registered is not None:
        await _register(world, registered, home)
        return
    followed = followed_by(message)
    if followed is not None and part == "sm":
        await observe_by(world, home, followed)
        return
    if part == "registry" and watched_by(message) is not None:
        world.beside.start_soon(_watch, world, message)
        return
    world.beside.start_soon(_order, world, message)


async def _order(world: World, message: Message) -> None:
    member = world.member(runtime_of(message.from_))
    if last_segment(message.from_) in _LENT:
        await member.runtime.lend(last_segment(message.from_))
    to, body = world.names.actual(message.to), _body(world, message)
    await member.runtime.order(last_segment(message.from_), message.type, to, body)


async def _watch(world: World, message: Message) -> None:
    """Have a registry follow a record: somebody of its runtime asks it to."""
    member = world.member(runtime_of(message.from_))
    registry = world.names.actual(message.from_)
    await member.runtime.order("ua", message.type, registry, _body(world, message))


def _registered(message: Message) -> JsonObject | None:
    """Return the record of a hyperty that a message registers."""
    value = message.body.get("value")
    if message.type is not MessageType.CREATE or not is_backend(message.to):
        return None
    if not isinstance(value, dict):
        return None
    url = value.get("url")
    return value if isinstance(url, str) and is_hyperty(url) else None


async def _register(world: World, record: JsonObject, home: str) -> None:
    url, descriptor, name = record["url"], record.get("descriptor"), record.get("name")
    profile = Profile(
        name=name if isinstance(name, str) else last_segment(str(url)),
        descriptor=descriptor if isinstance(descriptor, str) else None,
        resources=_texts(record.get("resources")),
        data_schemes=_texts(record.get("dataSchemes")),
    )
    await world.deploy(HypertyRole(str(url), home), profile)


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
