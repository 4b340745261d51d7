"""Messages between two registries about the entities of their runtimes (P2P-23..26)."""

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
    """Return the address at which a runtime's registry reports changes of its entities."""
    return f"{registry_of(runtime)}{_CHANGES}"


# ---- what happens


@final
@attrs.frozen(slots=True)
class Asked:
    """The other registry subscribes to changes, over a link (M-08)."""

    request: Message
    remote: str
    link: str


@final
@attrs.frozen(slots=True)
class LeaveAsked:
    """The other registry ends its subscription (M-10). Idempotent."""

    request: Message
    remote: str


@final
@attrs.frozen(slots=True)
class LocalLive:
    """A hyperty or object of this runtime can be reached. Idempotent."""

    url: str


@final
@attrs.frozen(slots=True)
class LocalGone:
    """A hyperty or object of this runtime can no longer be reached. Idempotent."""

    url: str


@final
@attrs.frozen(slots=True)
class SnapshotRead:
    """The answer to `Ask`.

    Attributes:
        ask: Its number.
        urls: Addresses of the entities there; None: the other registry does not answer.
    """

    remote: str
    ask: int
    urls: tuple[str, ...] | None
    why: str = ""


@final
@attrs.frozen(slots=True)
class Told:
    """The other registry reports over a link which entities came or went (M-09)."""

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
    """Send the changes of this registry over a link, too."""

    link: str


@final
@attrs.frozen(slots=True)
class Unfollow:
    """Send the changes of this registry over a link no longer."""

    link: str


@final
@attrs.frozen(slots=True)
class Answer:
    """Answer a request of the other registry, before any later change is reported."""

    message: Message


@final
@attrs.frozen(slots=True)
class Publish:
    """Report to all followers which entity came or went here (M-09)."""

    operation: Operation
    url: str


@final
@attrs.frozen(slots=True)
class Listen:
    """Deliver the changes of a remote registry to this registry."""

    remote: str


@final
@attrs.frozen(slots=True)
class Unlisten:
    """Deliver the changes of a remote registry no longer. Idempotent."""

    remote: str


@final
@attrs.frozen(slots=True)
class Ask:
    """Subscribe at the other registry (M-08); the host answers `SnapshotRead` with this number."""

    remote: str
    ask: int


Effect: TypeAlias = Step | Follow | Unfollow | Answer | Publish | Listen | Unlisten | Ask | Listed
