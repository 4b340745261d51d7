"""Calls of a scenario that ask a runtime for an address an earlier hyperty had.

`RA.alloc.allocate(scheme=hyperty, descriptor=D, reuse=True)` asks for any that fits,
`reuseURL='...'` for exactly one. What stands behind the arrow is what must come of it:
`[HA] newAddress=false`, which also says that HA was there before and is kept; `miss`, so a
new one; or `error '...'`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from actors.play.roles import HypertyRole
from actors.play.script import CallStep
from actors.play.stage_error import StageError
from actors.play.world import World
from actors.runtime.allocation import NotKeptError
from actors.runtime.profile import Profile

__all__ = ["REUSE", "do_reuse", "set_kept"]

REUSE: Final = frozenset({"descriptor", "reuse", "reuseURL"})
"""Arguments that make a call one of these."""

_CALL: Final = re.compile(r"(?P<who>\w+)\.alloc\.allocate\((?P<given>[^)]*)\) -> (?P<told>.*)")
_KEPT: Final = re.compile(r"\[(?P<name>\w+)\] newAddress=false")
_DESCRIPTOR: Final = re.compile(r"descriptor=(?P<name>\w+)")
_MISS: Final = "miss"
_ERROR: Final = "error "


async def set_kept(world: World) -> None:
    """Have the hyperties run and rest whose addresses are to be had again.

    Raises:
        StageError: One cannot be deployed.
    """
    for runtime, name, descriptor in _kept_before(world):
        member = world.member(runtime)
        url = _named(name, member.role.domain)
        profile = Profile(name.lower(), descriptor=_described(descriptor, member.role.domain))
        await world.deploy(HypertyRole(url, runtime), profile)
        await member.runtime.rest(world.names.actual(url))


async def do_reuse(world: World, step: CallStep, runtime: str, given: Mapping[str, str]) -> None:
    """Ask for the address, and see to it that what comes is what is told.

    Raises:
        StageError: It is not; or the call is for addresses of another scheme.
    """
    if given.get("scheme") != "hyperty":
        raise StageError("only addresses of hyperties are had again: say scheme=hyperty")
    member, domain = world.member(runtime), world.member(runtime).role.domain
    descriptor = given.get("descriptor")
    profile = Profile(
        name="reserved",
        descriptor=None if descriptor is None else _described(descriptor, domain),
        address=given.get("reuseURL"),
    )
    try:
        came = await member.runtime.reserve(profile)
    except NotKeptError as error:
        seen = f"{_ERROR}{error}"
    else:
        name = world.names.golden(came.address)
        seen = _MISS if came.is_new else f"[{name}] newAddress=false"
    if not _agree(_told(step), seen, domain):
        raise StageError(f"the call came to: {seen}")


def _kept_before(world: World) -> Iterator[tuple[str, str, str]]:
    """Yield runtime, name and descriptor of what is had again."""
    for step in world.scenario.steps:
        called = _CALL.fullmatch(step.what) if isinstance(step, CallStep) else None
        if called is None:
            continue
        kept = _KEPT.match(called["told"])
        described = _DESCRIPTOR.search(called["given"])
        if kept is not None and described is not None:
            member = next(one for one in world.cast.runtimes if _is_called(one.name, called["who"]))
            yield member.url, kept["name"], described["name"]


def _is_called(runtime: str, who: str) -> bool:
    return who.lower() in {runtime, runtime.removeprefix("r")}


def _told(step: CallStep) -> str:
    called = _CALL.fullmatch(step.what)
    return "" if called is None else called["told"]


def _agree(told: str, seen: str, domain: str) -> bool:
    """Say whether what came is what is told; the words of an error are the actors' own."""
    kept = _KEPT.match(told)
    if kept is not None:
        return seen == f"[{_named(kept['name'], domain)}] newAddress=false"
    if told.startswith(_ERROR):
        wanted = told.removeprefix(_ERROR).split("'")
        return seen.startswith(_ERROR) and len(wanted) > 1 and wanted[1] in seen
    return told.startswith(_MISS) and seen == _MISS


def _named(name: str, domain: str) -> str:
    """Return the address a scenario's short name of a hyperty stands for."""
    return f"hyperty://{domain}/{name.lower()}"


def _described(name: str, domain: str) -> str:
    return f"hyperty-catalogue://catalogue.{domain}/.well-known/hyperty/{name}"
