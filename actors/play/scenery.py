"""How the world is brought to where a scenario begins.

Every scenario begins with its runtimes booted, their sessions open and their addresses
allocated, because a hyperty is deployed in each. The rest follows from its steps:

1. An object that is not created in the scenario is created, brought to the version
   before the first that is shown, and what is shown of it; by its reporter, or by a peer.
   Who is accepted as its observer without the reporter's being asked, is allowed before.
2. A P2P link whose first step leaves `live`, or that carries a message before any step
   of it, is live: each hyperty of the requester's runtime asks each of the handler's,
   once before and once over it, so that both sides know who lives where; and each side
   has been told, and has found to be true, which objects are reported at the other.
3. Who observes an object before (see `objects`) has subscribed.
4. A link whose first step leaves `created` or `in-progress`, or whose registries ask each
   other what changes, is being set up: a stand-in asks another, or a hyperty where the
   scenario lists who lives there, and the scenario begins at once.
5. A link whose first step leaves `disconnected` has been live and is cut as the scenario
   begins; so is the link of a session whose first step leaves `detached`.
6. A session at a foreign node whose first step leaves any state is open. An address that
   is neither a hyperty's nor an object's is allocated if its first step leaves that. A
   record whose first step leaves `disconnected` has been set so; so has one that a search
   finds `disconnected` and no step tells of.

What is seen before the scenario begins may not match its steps. It begins when all this
is done, with these exceptions: with a row of paths as its first step, before rule 3;
with a link under way or cut, before that; and at the very beginning if it shows the opening
of the world itself (see `opening`).
"""

from collections.abc import Callable
from itertools import product
from typing import Final

import trio

from actors.play.entities import break_sessions, granted, set_entities
from actors.play.hyperty import OWN_WORDS
from actors.play.observer import Seen
from actors.play.outsider import Outsider
from actors.play.reuse import set_kept
from actors.play.roles import HypertyRole, ObjectRole, Pair, Standing
from actors.play.script import MessageStep, Scenario, StateStep, TableStep
from actors.play.stage_error import StageError
from actors.play.world import World
from actors.runtime.profile import Profile
from specs.address import host_of, last_segment, message_node, runtime
from specs.jsonvalue import Json, JsonObject
from specs.message import MessageType
from specs.trace import Kind
from transports.errors import DialError

__all__ = ["observe_by", "set_scene", "want_link"]

_PATIENCE: Final = 60.0
"""Seconds, of whatever clock, that a precondition may take."""

_OUTSIDER: Final = "outsider"
_SUBS: Final = "subs"
_ACCEPTED: Final = "accepted"
_PATIENT: Final = "t"
"""What changes in an object of which nothing is shown."""


async def set_scene(world: World) -> None:
    """Bring the world to where its scenario begins, and say when it begins.

    Raises:
        StageError: It cannot be brought there.
    """
    with trio.move_on_after(_PATIENCE) as patience:
        await _set_scene(world)
    if patience.cancelled_caught:
        raise StageError(
            f"{world.scenario.name} cannot begin: what it takes for granted did not come "
            f"about in {_PATIENCE:g} s; look at the preconditions of its first steps"
        )


async def _set_scene(world: World) -> None:
    for hyperty in world.cast.hyperties:
        await world.deploy(hyperty, _profile(hyperty))
    await set_kept(world)
    for role in world.cast.objects:
        await _make_object(world, role)
        await _allow(world, role)
    for pair in _links(world, Standing.LIVE, Standing.BROKEN):
        await _make_live(world, pair)
    first = world.scenario.steps[0]
    if isinstance(first, TableStep) and first.table == _SUBS:
        await set_entities(world)
        _begin(world)
        await _let_observe(world)
    else:
        await _let_observe(world)
        await set_entities(world)
        _begin(world)
    world.take_over()
    for pair in _links(world, Standing.UNDER_WAY):
        await _set_up(world, pair)
    for one, other in _links(world, Standing.BROKEN):
        world.air.cut(one, other)
    break_sessions(world)


def _profile(role: HypertyRole) -> Profile | None:
    """Return what a hyperty is registered with; None: nothing beyond its name."""
    if not role.resources and not role.data_schemes:
        return None
    name = last_segment(role.url)
    return Profile(name, resources=role.resources, data_schemes=role.data_schemes)


def _links(world: World, *standing: Standing) -> list[Pair]:
    return [link.pair for link in world.cast.standing if link.standing in standing]


def _begin(world: World) -> None:
    if not world.cast.has_own_set_up:
        world.observer.begin()


async def _let_observe(world: World) -> None:
    for role in world.cast.objects:
        for observer in role.observers:
            await _observe(world, observer, role.url)


# ---- objects


async def _make_object(world: World, role: ObjectRole) -> None:
    if role.reporter is None:
        await _report_outside(world, role)
        return
    reporter = world.hyperty(role.reporter)
    manager = f"{world.cast.home(role.reporter)}/sm"
    data: Json = role.data or {_PATIENT: role.version}
    value: JsonObject = {
        "name": "object",
        "reporter": reporter.url,
        "runtime": world.cast.home(role.reporter),
        "data": data,
    }
    created = granted(
        await reporter.ask(MessageType.CREATE, manager, {"schema": role.schema, "value": value})
    )
    url = created.body.get("resource")
    world.names.bind(role.url, str(url))
    attribute, last = next(iter((role.data or {_PATIENT: role.version}).items()))
    for _ in range(1, role.version):
        change: JsonObject = {"resource": url, "attribute": attribute, "value": last}
        granted(await reporter.ask(MessageType.UPDATE, manager, change))


async def _allow(world: World, role: ObjectRole) -> None:
    """Have a reporter allow the observers that come in without its being asked."""
    if role.reporter is None:
        return
    url = world.names.actual(role.url)
    manager = f"{world.cast.home(role.reporter)}/sm"
    for observer in _unasked(world.scenario, role.url):
        body: JsonObject = {"resource": url, "observer": world.names.actual(observer)}
        granted(await world.hyperty(role.reporter).ask(MessageType.CREATE, manager, body))


def _unasked(scenario: Scenario, url: str) -> list[str]:
    steps = [step for step in scenario.steps if isinstance(step, MessageStep)]
    is_asked = any(
        step.message.type is MessageType.FORWARD and step.message.from_ == url for step in steps
    )
    entered = [step for step in scenario.steps if isinstance(step, StateStep)]
    comes = [step.key for step in entered if (step.old, step.cause) == (None, _ACCEPTED)]
    return [] if is_asked else [key[-1] for key in comes if key[0] == url]


async def _report_outside(world: World, role: ObjectRole) -> None:
    """Have a peer that real actors do not run report an object."""
    domain = host_of(role.url)
    home = runtime(domain, _OUTSIDER)
    outsider = Outsider(f"{home}/protostub/1", world.observer.tracer(home))
    node = world.nodes[message_node(domain)]
    try:
        await outsider.dial(world.air.view(home), node.url)
    except DialError as error:
        raise StageError(f"no peer can report {role.url}: {error}") from error
    world.beside.start_soon(outsider.run)
    await outsider.open_session()
    world.names.bind(role.url, await outsider.allocate(role.url))
    world.peers[role.url] = outsider


async def _observe(world: World, observer: str, url: str) -> None:
    manager, body = _observing(world, observer, url)
    granted(await world.hyperty(observer).ask(MessageType.SUBSCRIBE, manager, body))


async def observe_by(world: World, runtime_url: str, url: str) -> None:
    """Have a hyperty of a runtime ask to observe an object; what comes of it is seen.

    Raises:
        StageError: There is none in that runtime.
    """
    observer = world.cast.spokesman(runtime_url)
    hyperty = world.hyperty(observer)
    manager, body = _observing(world, observer or "", url)
    await hyperty.post(MessageType.SUBSCRIBE, manager, body)


def _observing(world: World, observer: str, url: str) -> tuple[str, JsonObject]:
    role = world.cast.object(url)
    body: JsonObject = {"resource": world.names.actual(url)}
    if role is not None:
        body["schema"] = role.schema
    return f"{world.cast.home(observer)}/sm", body


# ---- links


async def _make_live(world: World, pair: Pair) -> None:
    """Have a link wanted until it is live, then used by all whom it concerns."""
    world.wanted.add(pair)
    askers, asked = (world.cast.living_in(one) for one in pair)
    for asker, other in product(askers, asked):
        await _ask(world, asker, other)
    await _until_live(world, pair)
    for asker, other in product(askers, asked):
        await _ask(world, asker, other)
    for own, remote in (pair, pair[::-1]):
        for url in _told_of(world, remote):
            await _until(world, _is_row(own, remote, url))


def _told_of(world: World, remote: str) -> list[str]:
    """Return the objects that a runtime's registry tells over its links, and is believed."""
    roles = [one for one in world.cast.objects if one.reporter is not None]
    here = [one for one in roles if world.cast.home(one.reporter or "") == remote]
    urls = [world.names.actual(one.url) for one in here]
    return [url for url in urls if host_of(url) == host_of(remote)]


async def _ask(world: World, asker: str, asked: str) -> None:
    body: JsonObject = {"value": OWN_WORDS}
    to = world.names.actual(asked)
    granted(await world.hyperty(asker).ask(MessageType.CREATE, to, body))


async def _set_up(world: World, pair: Pair) -> None:
    requester, handler = pair
    cast = world.cast
    asker, asked = (cast.stand_in(one) or cast.spokesman(one) for one in (requester, handler))
    await want_link(world, pair, asker or "", asked or "")


async def want_link(world: World, pair: Pair, asker: str, asked: str) -> None:
    """Have a hyperty ask another, whose runtime it is not linked to.

    The link being live, it asks again, so that the other end learns who lives here.
    """
    world.wanted.add(pair)
    to = world.names.actual(asked)
    hyperty = world.hyperty(asker)
    await hyperty.post(MessageType.CREATE, to, {"value": OWN_WORDS})
    world.beside.start_soon(_use, world, pair, asker, asked)


async def _use(world: World, pair: Pair, asker: str, asked: str) -> None:
    await _until_live(world, pair)
    to = world.names.actual(asked)
    await world.hyperty(asker).post(MessageType.CREATE, to, {"value": OWN_WORDS})


async def _until_live(world: World, pair: Pair) -> None:
    """Wait until both registries route by a link."""
    for own, remote in (pair, pair[::-1]):
        await _until(world, _is_row(own, remote))


def _is_row(own: str, remote: str, entity: str = "") -> Callable[[Seen], bool]:
    def is_it(seen: Seen) -> bool:
        fact = seen.fact
        is_about = fact.k is Kind.TABLE and fact.table == "p2p" and fact.key == remote
        row = fact.val or ""
        return is_about and seen.who == own and row.startswith("live ") and entity in row

    return is_it


async def _until(world: World, is_it: Callable[[Seen], bool]) -> None:
    looked_at = 0
    while True:
        items = world.observer.items
        if any(is_it(seen) for seen in items[looked_at:]):
            return
        looked_at = len(items)
        await world.observer.more(looked_at)
