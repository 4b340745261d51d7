"""Does the calls of a scenario, and takes in what a peer wrote in a form of its own."""

import re
from collections.abc import Mapping
from typing import Final

from actors.play.script import CallStep, IngestStep
from actors.play.stage_error import StageError
from actors.play.world import World
from specs.address import address_allocation
from specs.body import Allocate, AllocationWish
from specs.errors import ProtoflyError
from specs.message import MessageType
from specs.normalise import normalise
from transports.bodies import write_body

__all__ = ["do_call", "ingest"]

_CALL: Final = re.compile(r"(?P<runtime>\w+)\.(?P<part>\w+)\.(?P<function>\w+)\((?P<given>[^)]*)\)")
_REMARK: Final = re.compile(r"[\w -]+: ")
"""A call that recalls a rule, `tie-break: ...`; there is nothing to do."""

_KNOWN: Final = frozenset({"scheme", "number"})


async def do_call(world: World, step: CallStep) -> None:
    """Call a function of a runtime's part.

    Raises:
        StageError: It cannot be called so.
    """
    call = _CALL.match(step.what)
    if call is None and _REMARK.match(step.what):
        return
    if call is None or (call["part"], call["function"]) != ("alloc", "allocate"):
        raise StageError(
            f"nobody knows how to do the call {step.what!r}; say 'RA.alloc.allocate(scheme=...)', "
            "or 'rule: ...' for what is only recalled"
        )
    await _allocate(world, call["runtime"], _arguments(call["given"]))


async def _allocate(world: World, name: str, given: Mapping[str, str]) -> None:
    unknown = sorted(given.keys() - _KNOWN)
    if unknown:
        raise StageError(
            f"the address allocation of {name} takes no {', '.join(unknown)}: "
            "addresses are not reused yet"
        )
    runtime = next(
        (one for one in world.cast.runtimes if one.name == name.lower()),
        None,
    )
    if runtime is None:
        raise StageError(f"{name} is no runtime of the scenario")
    number = int(given.get("number", "1"))
    member, to = world.member(runtime.url), address_allocation(runtime.domain)
    wish = Allocate(given.get("scheme", "hyperty"), AllocationWish(number))
    await member.runtime.order("address-allocation", MessageType.CREATE, to, write_body(wish))


def _arguments(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(",") if part.strip())
    return {name.strip(): value.strip().strip("'\"") for name, _, value in pairs}


def ingest(step: IngestStep) -> None:
    """Bring a message into normal form, and compare.

    Raises:
        StageError: It is not the one the scenario expects.
    """
    try:
        seen = normalise(step.raw)
    except ProtoflyError as error:
        raise StageError(f"the message of step {step.number} is not taken in: {error}") from error
    if seen != step.normal:
        raise StageError(f"step {step.number} becomes {seen}, not {step.normal}")
