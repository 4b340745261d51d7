"""What two registries tell each other of what lives in their runtimes (P2P-23..26)."""

from typing import Final, TypeAlias, final

import attrs

from fsm.engine import Step
from fsm.registry.resolve.effects import LinkNews
from fsm.registry.resolve.inputs import Listed
from specs.addresses.address import runtime_of
from specs.bodies.word import Operation
from specs.message import Message

__all__ = [
    "Answer",
    "Ask",
    "Asked",
    "Effect",
    "Follow",
    "Input",
    "LeaveAsked",
    "Listen",
    "LocalGone",
    "LocalLive",
    "Publish",
    "SnapshotRead",
    "TimePassed",
    "Told",
    "Unfollow",
    "Unlisten",
    "changes_of",
    "registry_of",
]

_REGISTRY: Final = "/registry"
_CHANGES: Final = "/changes"


def registry_of(runtime: str) -> str:
    """Return the address of a runtime's registry."""
    return f"{runtime_of(runtime)}{_REGISTRY}"


def changes_of(runtime: str) -> str:
    """Return where a runtime's registry tells of what comes and goes there."""
    return f"{registry_of(runtime)}{_CHANGES}"


# ---- what happens


@final
@attrs.frozen(slots=True)
class Asked:
    """The other registry asks, over a link, to be told (M-08)."""

    request: Message
    remote: str
    link: str


@final
@attrs.frozen(slots=True)
class LeaveAsked:
    """It asks to be told no more (M-10); repeated is fine."""

    request: Message
    remote: str


@final
@attrs.frozen(slots=True)
class LocalLive:
    """A hyperty or object of this runtime can be reached; repeated is fine."""

    url: str


@final
@attrs.frozen(slots=True)
class LocalGone:
    """It cannot any more; repeated is fine."""

    url: str


@final
@attrs.frozen(slots=True)
class SnapshotRead:
    """The answer to `Ask`.

    Attributes:
        ask: Its number.
        urls: What lives there; None: the other registry does not tell.
    """

    remote: str
    ask: int
    urls: tuple[str, ...] | None
    why: str = ""


@final
@attrs.frozen(slots=True)
class Told:
    """The other registry tells of what came or went, over a link (M-09)."""

    remote: str
    link: str
    operation: Operation
    urls: tuple[str, ...]


@final
@attrs.frozen(slots=True)
class TimePassed:
    """The deadline may have passed."""


Input: TypeAlias = (
    LinkNews | Asked | LeaveAsked | LocalLive | LocalGone | SnapshotRead | Told | TimePassed
)


# ---- what is to be done


@final
@attrs.frozen(slots=True)
class Follow:
    """Have what is told of changes here sent out by a link, too."""

    link: str


@final
@attrs.frozen(slots=True)
class Unfollow:
    """End it."""

    link: str


@final
@attrs.frozen(slots=True)
class Answer:
    """Answer a request of the other registry, before anything that is told after."""

    message: Message


@final
@attrs.frozen(slots=True)
class Publish:
    """Tell all who follow what came or went here (M-09)."""

    operation: Operation
    url: str


@final
@attrs.frozen(slots=True)
class Listen:
    """Have what a remote registry tells of changes delivered to the own one."""

    remote: str


@final
@attrs.frozen(slots=True)
class Unlisten:
    """End it; repeated is fine."""

    remote: str


@final
@attrs.frozen(slots=True)
class Ask:
    """Ask the other registry to tell (M-08); answer `SnapshotRead` with this number."""

    remote: str
    ask: int


Effect: TypeAlias = Step | Follow | Unfollow | Answer | Publish | Listen | Unlisten | Ask | Listed
