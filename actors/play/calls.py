"""Does the calls of a scenario: what somebody has a part of a runtime do.

| words | what happens |
|---|---|
| `RA.alloc.allocate(scheme=..., number=...)` | the runtime's part asks its node |
| `RA.alloc.allocate(..., reuse=True) -> ...` | the same, for an address that is kept |
| `RA asks for the other` | a hyperty of it asks one of the only other runtime |
| `RA goes` | the runtime takes leave |
| `tie-break: ...` | nothing: a rule is recalled |
"""

import re
from collections.abc import Mapping
from typing import Final

from actors.play.reuse import REUSE, do_reuse
from actors.play.scenery import want_link
from actors.play.script import CallStep
from actors.play.stage_error import StageError
from actors.play.world import World
from specs.address import address_allocation
from specs.message import MessageType

__all__ = ["do_call", "is_remark"]

_ALLOCATE: Final = re.compile(r"(?P<who>\w+)\.alloc\.allocate\((?P<given>[^)]*)\)")
_ASKS: Final = re.compile(r"(?P<who>\S+) asks for the other")
_GOES: Final = re.compile(r"(?P<who>\S+) goes")
_REMARK: Final = re.compile(r"[\w -]+: ")
_KNOWN: Final = frozenset({"scheme", "number"})


async def do_call(world: World, step: CallStep) -> None:
    """Call a function of a runtime's part, or have a runtime do something.

    Raises:
        StageError: It cannot be called so.
    """
    if called := _ALLOCATE.match(step.what):
        await _allocate(world, step, called["who"], _arguments(called["given"]))
    elif called := _ASKS.fullmatch(step.what):
        await _ask(world, _runtime(world, called["who"]))
    elif called := _GOES.fullmatch(step.what):
        member = world.member(_runtime(world, called["who"]))
        member.leave.set()
        await member.left.wait()
    elif not is_remark(step):
        raise StageError(
            f"nobody knows how to do the call {step.what!r}; say 'RA.alloc.allocate(scheme=...)', "
            "'RA goes', or 'rule: ...' for what is only recalled"
        )


def is_remark(step: CallStep) -> bool:
    """Say whether a call only recalls a rule: nobody does anything."""
    return _REMARK.match(step.what) is not None


def _runtime(world: World, name: str) -> str:
    """Find a runtime by its address, its name, or its name without the r in front."""
    names = (name, name.lower(), f"r{name}")
    found = (one.url for one in world.cast.runtimes if {one.url, one.name} & {*names})
    url = next(found, None)
    if url is None:
        raise StageError(f"{name} is no runtime of the scenario")
    return url


async def _ask(world: World, asking: str) -> None:
    others = [one.url for one in world.cast.runtimes if one.url != asking]
    if len(others) != 1:
        raise StageError(f"{asking} has no other, or several: the scenario must name one")
    asker, asked = world.cast.spokesman(asking), world.cast.spokesman(others[0])
    await want_link(world, (asking, others[0]), asker or "", asked or "")


async def _allocate(world: World, step: CallStep, name: str, given: Mapping[str, str]) -> None:
    unknown = sorted(given.keys() - _KNOWN - REUSE)
    if unknown:
        raise StageError(f"the address allocation of {name} takes no {', '.join(unknown)}")
    if given.keys() & REUSE:
        await do_reuse(world, step, _runtime(world, name), given)
        return
    number = given.get("number", "1")
    if not number.isdecimal():
        raise StageError(f"number must be a whole number, not {number!r}")
    member = world.member(_runtime(world, name))
    to = address_allocation(member.role.domain)
    await member.runtime.order(
        "address-allocation",
        MessageType.CREATE,
        to,
        {"scheme": given.get("scheme", "hyperty"), "value": {"number": int(number)}},
    )


def _arguments(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(",") if part.strip())
    return {name.strip(): value.strip().strip("'\"") for name, _, value in pairs}
