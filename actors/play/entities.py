"""What the first steps of entities at nodes take for granted: records, sessions, addresses."""

from collections.abc import Iterator
from typing import Final

from actors.play.answered import shown_records
from actors.play.atlas import is_hyperty
from actors.play.homes import made_by
from actors.play.hop import read_place
from actors.play.objects import is_object
from actors.play.script import StateStep
from actors.play.stage_error import StageError
from actors.play.world import World
from specs.address import address_allocation, domain_registry, host_of, scheme_of
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS

__all__ = ["break_sessions", "granted", "session_of", "set_entities"]

_DISCONNECTED: Final = "disconnected"
_DETACHED: Final = "detached"
_ALLOCATED: Final = "allocated"


async def set_entities(world: World) -> None:
    """Allocate, connect and disconnect what the scenario finds so.

    Raises:
        StageError: A node refuses.
    """
    made = set(made_by(world.scenario))
    for step in _first(world, "alloc"):
        address = step.key[-1]
        is_ours = is_hyperty(address) or is_object(address)
        if step.old == _ALLOCATED and not is_ours and address not in made:
            await _allocate(world, address)
    for step in _first(world, "session"):
        if step.old is not None:
            await _connect(world, *session_of(world, step))
    for url in _away(world):
        await _disconnect(world, url)


def _away(world: World) -> Iterator[str]:
    """Yield the hyperties whose records are disconnected before, by their steps or searches."""
    steps = {step.key[-1]: step.old for step in _first(world, "registration")}
    found = {one.url: one.status for one in shown_records(world.scenario)}
    for url, status in {**found, **steps}.items():
        if status == _DISCONNECTED and is_hyperty(url) and world.cast.home(url) is not None:
            yield url


def break_sessions(world: World) -> None:
    """Break the links of sessions whose first step leaves `detached`."""
    for step in _first(world, "session"):
        if step.old == _DETACHED:
            node, runtime = session_of(world, step)
            world.air.cut(runtime, node)


def _first(world: World, machine: str) -> Iterator[StateStep]:
    """Yield the first step of each entity of a machine."""
    met: set[tuple[str, ...]] = set()
    for step in world.scenario.steps:
        if isinstance(step, StateStep) and step.machine == machine and step.key not in met:
            met.add(step.key)
            yield step


def session_of(world: World, step: StateStep) -> tuple[str, str]:
    """Return node and runtime of a step of a session."""
    node = world.cast.atlas.of(read_place(step.key[0]))
    return node or step.key[0], step.key[-1]


async def _allocate(world: World, address: str) -> None:
    """Have the runtime of an address's domain allocate one like it."""
    domain = host_of(address)
    owner = next((one.url for one in world.cast.runtimes if one.domain == domain), "")
    order = world.member(owner).runtime.order
    to = address_allocation(domain)
    answer = granted(
        await order(
            "address-allocation",
            MessageType.CREATE,
            to,
            {"scheme": scheme_of(address), "value": {"number": 1}},
        )
    )
    value = answer.body.get("value")
    match value.get("allocated") if isinstance(value, dict) else None:
        case [str(actual)]:
            world.names.bind(address, actual)
        case _:
            raise StageError(f"{to} gave no address for {address}")


async def _connect(world: World, node: str, runtime: str) -> None:
    """Have a runtime open its session at a node, by asking it for what it need not have."""
    opened = world.nodes.get(node)
    if opened is None:
        raise StageError(f"{node} is no node of the scenario")
    to = domain_registry(opened.domain)
    order = world.member(runtime).runtime.order
    await order("registry", MessageType.READ, to, {"resource": f"hyperty://{opened.domain}/none"})


async def _disconnect(world: World, url: str) -> None:
    actual = world.names.actual(url)
    member = world.member(world.cast.home(url) or "")
    to = domain_registry(host_of(actual))
    granted(
        await member.runtime.order(
            "registry",
            MessageType.UPDATE,
            to,
            {"resource": actual, "attribute": "status", "value": _DISCONNECTED},
        )
    )


def granted(answer: Message) -> Message:
    """Return an answer that says yes.

    Raises:
        StageError: It says no.
    """
    if answer.code > LAST_SUCCESS:
        why = answer.body.get("description", "")
        raise StageError(f"{answer.from_} refused a precondition: {answer.code} {why}".rstrip())
    return answer
