"""Which steps of a scenario are cues: the player does them, no actor would by itself.

| step | is a cue when |
|---|---|
| message | a hyperty sends it from its own address, or forges one in its sandbox |
| | it is a change of an object that a hyperty reports |
| | it is of an object that nobody in the cast reports |
| | session control asks who somebody is: somebody has to log in |
| | it is session control a stub sends, written out: the actors do not show theirs |
| | a node puts it on a wire and it is dropped for what it says: the frame is forged |
| | a part of a runtime asks a node, and nothing in the scenario makes it (`errands`) |
| step of a connection | a link begins; who wants it must ask for something |
| step of a session | it is closed: its runtime leaves |
| resolve | no message beside it goes there: somebody must ask |
| time, fault, call | always |

A message seen again at a later hop is never one. Everything else the actors must do; what
a peer wrote in a form of its own (`ingest`) is read and compared, nobody sends it.
"""

from enum import Enum, auto
from typing import Final, final

from actors.play.atlas import is_hyperty
from actors.play.cast import Cast
from actors.play.errands import is_errand
from actors.play.hop import Ride
from actors.play.links import begins
from actors.play.objects import is_object
from actors.play.script import (
    CallStep,
    FaultStep,
    Flag,
    MessageStep,
    ResolveStep,
    Scenario,
    StateStep,
    Step,
    TimeStep,
)
from specs.address import domain_of, identity_manager, is_backend, session_manager
from specs.child import parent_of
from specs.message import Message, MessageType

__all__ = ["Cue", "cue_of"]

_SANDBOX: Final = "sandbox"
_CLOSED: Final = "closed"
_OWN_KINDS: Final = {
    TimeStep: "TIME_PASSES",
    FaultStep: "FAULT",
    CallStep: "CALL",
}


@final
class Cue(Enum):
    """What the player does."""

    HYPERTY_SENDS = auto()
    HYPERTY_ANSWERS = auto()
    REPORTER_CHANGES = auto()
    PEER_SENDS = auto()
    STUB_CONTROLS = auto()
    SOMEBODY_LOGS_IN = auto()
    FRAME_FORGED = auto()
    PART_ASKS = auto()
    LINK_BEGINS = auto()
    SESSION_ENDS = auto()
    SOMEBODY_ASKS = auto()
    TIME_PASSES = auto()
    FAULT = auto()
    CALL = auto()


def cue_of(scenario: Scenario, cast: Cast, step: Step) -> Cue | None:
    """Say what a step wants of the player; None: it is the actors' to do."""
    match step:
        case MessageStep():
            return None if Flag.DUP in step.flags else _message(scenario, cast, step)
        case StateStep():
            return _state(step)
        case ResolveStep():
            return _resolve(scenario, cast, step)
        case TimeStep() | FaultStep() | CallStep():
            return Cue[_OWN_KINDS[type(step)]]
        case _:
            return None


def _message(scenario: Scenario, cast: Cast, step: MessageStep) -> Cue | None:
    message, first = step.message, step.hop.first
    sender = cast.atlas.hyperty(first)
    if sender is not None and (message.from_ == sender or first.root == _SANDBOX):
        return Cue.HYPERTY_ANSWERS if message.is_response else Cue.HYPERTY_SENDS
    if is_object(message.from_):
        return _by_object(cast, step)
    if Flag.CONTROL in step.flags:
        return Cue.STUB_CONTROLS if message.is_request else None
    if _is_forged(cast, step):
        return Cue.FRAME_FORGED
    if _is_login(message):
        return Cue.SOMEBODY_LOGS_IN
    return Cue.PART_ASKS if is_errand(scenario, step) else None


def _by_object(cast: Cast, step: MessageStep) -> Cue | None:
    """An object speaks by its sync manager, except when its content changes."""
    role = cast.object(step.message.from_)
    if role is None or step.message.is_response:
        return _of_children(cast, step)
    if role.reporter is None:
        return Cue.PEER_SENDS
    is_change = step.message.is_event and step.message.type is MessageType.UPDATE
    return Cue.REPORTER_CHANGES if is_change else None


def _of_children(cast: Cast, step: MessageStep) -> Cue | None:
    """Who reports an object answers itself what is said of its children."""
    is_answer = step.message.is_response and parent_of(step.message.from_) is not None
    by_hyperty = is_answer and cast.atlas.hyperty(step.hop.first) is not None
    return Cue.HYPERTY_ANSWERS if by_hyperty else None


def _is_forged(cast: Cast, step: MessageStep) -> bool:
    rides = [carrier.ride for carrier in step.hop.carriers[:1]]
    is_written = rides == [Ride.WIRE] and is_backend(cast.atlas.of(step.hop.first) or "")
    return is_written and step.drop is not None


def _is_login(message: Message) -> bool:
    domain = domain_of(message.to)
    ends = session_manager(domain), identity_manager(domain)
    return message.is_request and (message.from_, message.to) == ends


def _state(step: StateStep) -> Cue | None:
    if begins(step) is not None:
        return Cue.LINK_BEGINS
    ends = step.machine == "session" and step.new == _CLOSED
    return Cue.SESSION_ENDS if ends else None


def _resolve(scenario: Scenario, cast: Cast, step: ResolveStep) -> Cue | None:
    if not is_hyperty(step.to) or cast.atlas.runtime(step.at) is None:
        return None
    messages = [one for one in scenario.steps if isinstance(one, MessageStep)]
    before = [one.message.to for one in messages if one.number < step.number][-1:]
    behind = [one.message.to for one in messages if one.number > step.number][:1]
    return None if step.to in [*before, *behind] else Cue.SOMEBODY_ASKS
