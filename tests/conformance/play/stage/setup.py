"""Brings the world to where its scenario begins, by what is given.

Nodes and runtimes are there. Then, in this order: hyperties are deployed, and those of
kept addresses end again; data objects are created, by their reporters or by peers, and
brought to their versions; links are made live; observers subscribe; addresses are
allocated, sessions opened, records disconnected. The scenario begins, unless its
`beginning` is earlier; then links begin that are `connecting`, and those break that are
`broken` or whose sessions are `detached`.
"""

from collections.abc import Callable
from itertools import product
from typing import Final

import trio

from actors.runtime.hyperty.hyperty import Profile
from specs.addresses.address import (
    address_allocation,
    domain_registry,
    host_of,
    last_segment,
    message_node,
    runtime,
    scheme_of,
)
from specs.jsonvalue import Json, JsonObject
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS
from specs.trace import Kind
from tests.conformance.play.match.observer import Seen
from tests.conformance.play.script.vocabulary import (
    AddressAllocated,
    Beginning,
    DataObject,
    Hyperty,
    KeptAddress,
    P2PLink,
    Session,
)
from tests.conformance.play.stage.participants import OWN_WORDS, Peer, StageError, allocated
from tests.conformance.play.stage.world import World
from transports.errors import DialError

_PATIENCE: Final = 60.0
"""Seconds, of any clock, that a precondition may take."""

_OUTSIDE: Final = "outsider"
_ATTRIBUTE: Final = "t"
"""The part that changes in an object whose data is not given."""


async def set_up(world: World) -> None:
    """Bring the world to where its scenario begins, and say when it begins.

    Raises:
        StageError: It cannot be brought there.
    """
    with trio.move_on_after(_PATIENCE) as patience:
        await _set_up(world)
    if patience.cancelled_caught:
        raise StageError(
            f"{world.scenario.name} cannot begin: what is given did not come about in "
            f"{_PATIENCE:g} s; look at its given lines"
        )


async def _set_up(world: World) -> None:
    setting = world.setting
    for hyperty in setting.all(Hyperty):
        await world.deploy(hyperty.is_, _profile(hyperty))
    for kept in setting.all(KeptAddress):
        await _keep(world, kept)
    for data_object in setting.all(DataObject):
        await _make_object(world, data_object)
    for link in setting.all(P2PLink):
        if link.state != "connecting":
            await _make_live(world, link)
    begins = {one.before for one in setting.all(Beginning)}
    if "observers" in begins:
        await _set_states(world)
        world.observer.begin()
        await _let_observe(world)
    else:
        await _let_observe(world)
        await _set_states(world)
    if not begins:
        world.observer.begin()
    world.hand_over()
    await _begin_links(world)


async def _begin_links(world: World) -> None:
    """Let begin and break what begins and breaks with the scenario."""
    for link in world.setting.all(P2PLink):
        if link.state == "connecting":
            for asker, asked in product(link.asking, link.asked):
                await ask_over_link(world, asker, asked)
        elif link.state == "broken":
            world.network.cut(*link.pair)
    for session in world.setting.all(Session):
        if session.state == "detached":
            world.network.cut(session.of, session.at)


async def _let_observe(world: World) -> None:
    for given in world.setting.all(DataObject):
        for observer in given.observers:
            manager, body = observing(world, observer, given.is_)
            _granted(await world.hyperty(observer).ask(MessageType.SUBSCRIBE, manager, body))


async def _set_states(world: World) -> None:
    for address in world.setting.all(AddressAllocated):
        await _allocate(world, address)
    for session in world.setting.all(Session):
        await _connect(world, session)
    for hyperty in world.setting.all(Hyperty):
        if hyperty.status != "live":
            await _set_status(world, hyperty)


def _granted(answer: Message) -> Message:
    """Return an answer that says yes.

    Raises:
        StageError: It says no.
    """
    if answer.code > LAST_SUCCESS:
        why = answer.body.get("description", "")
        raise StageError(f"{answer.from_} refused a precondition: {answer.code} {why}".rstrip())
    return answer


# ---- hyperties


def _profile(given: Hyperty) -> Profile | str:
    """Return what a hyperty is registered with; a name: nothing beyond it."""
    name = last_segment(given.is_)
    if not given.resources and not given.data_schemes:
        return name
    return Profile(name, resources=given.resources, data_schemes=given.data_schemes)


async def _keep(world: World, given: KeptAddress) -> None:
    """Have a hyperty run and rest whose address is to be had again."""
    profile = Profile(last_segment(given.is_), descriptor=given.descriptor)
    await world.deploy(given.is_, profile)
    await world.member(given.in_).runtime.rest(world.names.actual(given.is_))


async def _set_status(world: World, given: Hyperty) -> None:
    actual = world.names.actual(given.is_)
    member = world.member(given.in_)
    body: JsonObject = {"resource": actual, "attribute": "status", "value": given.status}
    to = domain_registry(host_of(actual))
    _granted(await member.runtime.order("registry", MessageType.UPDATE, to, body))


# ---- addresses and sessions


async def _allocate(world: World, given: AddressAllocated) -> None:
    member, to = world.member(given.of), address_allocation(host_of(given.is_))
    body: JsonObject = {"scheme": scheme_of(given.is_), "value": {"number": 1}}
    answer = _granted(
        await member.runtime.order("address-allocation", MessageType.CREATE, to, body)
    )
    world.names.bind(given.is_, allocated(answer, given.is_))


async def _connect(world: World, given: Session) -> None:
    """Have a runtime open its session at a node, by asking it for what it need not have."""
    domain = world.node(given.at).domain
    member, to = world.member(given.of), domain_registry(domain)
    body: JsonObject = {"resource": f"hyperty://{domain}/none"}
    await member.runtime.order("registry", MessageType.READ, to, body)


# ---- objects


async def _make_object(world: World, given: DataObject) -> None:
    if given.by is None:
        await _report_outside(world, given)
        return
    reporter, home = world.hyperty(given.by), world.setting.home(given.by)
    manager = f"{home}/sm"
    data: JsonObject = given.data or {_ATTRIBUTE: given.version}
    value: JsonObject = {
        "name": "object",
        "reporter": reporter.url,
        "runtime": home,
        "data": data,
    }
    body: JsonObject = {"schema": given.schema, "value": value}
    created = _granted(await reporter.ask(MessageType.CREATE, manager, body))
    url = str(created.body.get("resource"))
    world.names.bind(given.is_, url)
    attribute, last = next(iter(data.items()))
    for _ in range(1, given.version):
        change: JsonObject = {"resource": url, "attribute": attribute, "value": last}
        _granted(await reporter.ask(MessageType.UPDATE, manager, change))
    for observer in given.allowed:
        allowed: JsonObject = {"resource": url, "observer": world.names.actual(observer)}
        _granted(await reporter.ask(MessageType.CREATE, manager, allowed))


async def _report_outside(world: World, given: DataObject) -> None:
    """Have a peer report an object that no runtime of the scenario holds."""
    domain = host_of(given.is_)
    home = runtime(domain, _OUTSIDE)
    peer = Peer(f"{home}/protostub/1", world.observer.tracer(home))
    try:
        await peer.dial(world.network.view(home), world.node(message_node(domain)).url)
    except DialError as error:
        raise StageError(f"no peer can report {given.is_}: {error}") from error
    world.beside.start_soon(peer.run)
    await peer.open_session()
    world.names.bind(given.is_, await peer.allocate(given.is_))
    world.peers[given.is_] = peer


def observing(world: World, observer: str, url: str) -> tuple[str, JsonObject]:
    """Return the sync manager that a hyperty asks to observe an object, and what it says.

    Args:
        world: Open participants of the scenario.
        observer: Address of the observer.
        url: Address of the object.
    """
    body: JsonObject = {"resource": world.names.actual(url)}
    schema: Json = next(
        (one.schema for one in world.setting.all(DataObject) if one.is_ == url), None
    )
    if schema is not None:
        body["schema"] = schema
    return f"{world.setting.home(observer)}/sm", body


# ---- links


async def _make_live(world: World, link: P2PLink) -> None:
    """Have a link wanted until it is live, then used by all hyperties it concerns."""
    for asker, asked in product(link.asking, link.asked):
        await _ask(world, asker, asked)
    await _until_live(world, link.pair)
    for asker, asked in product(link.asking, link.asked):
        await _ask(world, asker, asked)
    for own, remote in (link.pair, link.pair[::-1]):
        for url in _reported_at(world, remote):
            await _until(world, _is_row(own, remote, url))


def _reported_at(world: World, home: str) -> list[str]:
    """Return the objects that a runtime's registry lists over its links, and is believed."""
    given = (one for one in world.setting.all(DataObject) if world.setting.home(one.by) == home)
    urls = [world.names.actual(one.is_) for one in given]
    return [url for url in urls if host_of(url) == host_of(home)]


async def _ask(world: World, asker: str, asked: str) -> None:
    body: JsonObject = {"value": OWN_WORDS}
    to = world.names.actual(asked)
    _granted(await world.hyperty(asker).ask(MessageType.CREATE, to, body))


async def ask_over_link(world: World, asker: str, asked: str) -> None:
    """Have a hyperty ask another, whose runtime it is not linked to.

    The link being live, it asks again, so that the other end learns the addresses here.

    Args:
        world: Open participants of the scenario.
        asker: Address of the requesting hyperty.
        asked: Address of the requested hyperty.
    """
    to = world.names.actual(asked)
    await world.hyperty(asker).post(MessageType.CREATE, to, {"value": OWN_WORDS})
    world.beside.start_soon(_use, world, asker, asked)


async def _use(world: World, asker: str, asked: str) -> None:
    homes = (world.setting.home(asker) or "", world.setting.home(asked) or "")
    await _until_live(world, homes)
    to = world.names.actual(asked)
    await world.hyperty(asker).post(MessageType.CREATE, to, {"value": OWN_WORDS})


async def _until_live(world: World, pair: tuple[str, str]) -> None:
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
