"""What can break, recognised from the words of a fault step.

| words | what happens | to what |
|---|---|---|
| `TCP reset`, `transport lost` | it breaks at once | the link of a session |
| `the link is cut` | it breaks at once | a P2P link, or of a session: whose step is next |
| `vanishes` | it leaves the network, and says nothing | the runtime of a session |
| `ICE never completes` | nothing passes between its ends | a P2P link |
| `data channel closed`, `L1 closes` | it breaks at once | a P2P link |

The session is that of the next step of one. The P2P link is the one the words name, else
that of the next step of a P2P connection, else the only one there is.
Words that are not known are an error: a fault is not skipped.
"""

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, final

import attrs

from actors.play.entities import session_of
from actors.play.links import pair_of_state
from actors.play.roles import Pair
from actors.play.script import FaultStep, StateStep
from actors.play.stage_error import StageError
from actors.play.world import World

__all__ = ["Fault", "break_it", "fault_of"]


@final
class Fault(Enum):
    """What happens."""

    SESSION_CUT = auto()
    PROCESS_LOST = auto()
    LINK_MUTE = auto()
    LINK_CUT = auto()
    NEXT_CUT = auto()


_WORDS: Final[Mapping[str, Fault]] = {
    r"\b(tcp|transport|socket|connection) (is )?(reset|lost|cut)\b": Fault.SESSION_CUT,
    r"\b(peer|runtime|process|stub) (vanishes|disappears|crashes)\b": Fault.PROCESS_LOST,
    r"\bthe link is cut\b": Fault.NEXT_CUT,
    r"\bice (never|does not|cannot) complete": Fault.LINK_MUTE,
    r"\b(data channel|link|\w*\d\w*) (is )?(closed|closes|lost|breaks|broken)\b": Fault.LINK_CUT,
}


def fault_of(words: str) -> Fault:
    """Say what words mean.

    Raises:
        StageError: They are not known.
    """
    for pattern, fault in _WORDS.items():
        if re.search(pattern, words, re.IGNORECASE):
            return fault
    raise StageError(
        f"nobody knows how to do the fault {words!r}; say 'TCP reset', 'peer vanishes', "
        "'ICE never completes', or 'data channel closed'; write a message that is lost as "
        'its step, with "drop": "lost"'
    )


def break_it(world: World, step: FaultStep) -> None:
    """Let a fault happen.

    Raises:
        StageError: The words are not known, or nothing is there that could break.
    """
    match fault_of(step.what):
        case Fault.SESSION_CUT:
            node, runtime = _session(world, step)
            if not world.air.cut(runtime, node):
                raise StageError(f"{runtime} has no link to {node} that could be reset")
        case Fault.NEXT_CUT:
            break_it(world, attrs.evolve(step, what=_next_link(world, step)))
        case Fault.PROCESS_LOST:
            world.air.lose(_session(world, step)[1])
        case Fault.LINK_MUTE:
            world.air.mute(_link(world, step))
        case Fault.LINK_CUT:
            one, other = _link(world, step)
            if not world.air.cut(one, other):
                raise StageError(f"{one} and {other} have no link that could be closed")


def _session(world: World, step: FaultStep) -> tuple[str, str]:
    """Return node and runtime of the session that the next step of one is of."""
    for one in world.scenario.steps:
        if one.number > step.number and isinstance(one, StateStep) and one.machine == "session":
            return session_of(world, one)
    raise StageError(f"no step of a session says whose link {step.what!r} is about")


def _next_link(world: World, step: FaultStep) -> str:
    """Say in other words which link is cut: of a session, if the next step of any is of one."""
    behind = (one for one in world.scenario.steps if one.number > step.number)
    states = (one for one in behind if isinstance(one, StateStep))
    machines = (one.machine for one in states if one.machine in {"session", "stub", "p2p", "link"})
    return "transport lost" if next(machines, "") in {"session", "stub"} else "link closed"


def _link(world: World, step: FaultStep) -> Pair:
    links = world.cast.links
    named = next((pair for name, pair in links.items() if name in step.what.split()), None)
    if named is not None:
        return named
    behind = (one for one in world.scenario.steps if one.number > step.number)
    shown = next((pair for one in behind if (pair := pair_of_state(one)) is not None), None)
    only = next(iter(links.values())) if len(set(links.values())) == 1 else None
    if shown is None and only is None:
        raise StageError(f"no step of a P2P connection says which link {step.what!r} is about")
    return shown or only or ("", "")
