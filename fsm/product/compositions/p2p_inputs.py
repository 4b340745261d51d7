"""Inputs of the P2P stubs of the compositions: messages, links of the transport, and requests.

A message to a stub names the end, and with it the link, that it is for.
"""

from typing import final

import attrs
from typing_extensions import override

from fsm.p2p import link_io as do
from fsm.p2p import link_io as seen
from fsm.registry.resolve.port import RequesterPlan

__all__ = [
    "Closed",
    "Deployed",
    "Disconnect",
    "Invited",
    "Knock",
    "Known",
    "Leave",
    "Listening",
    "Observed",
    "Opened",
    "ToRegistry",
    "ToStub",
    "address",
    "handler_of",
    "runtime_of",
    "short",
]


def address(runtime: str) -> str:
    """The address of a runtime `a`, `b` or `c`."""
    return f"hyperty-runtime://{runtime}.ex/r{runtime}"


def runtime_of(stub: str) -> str:
    """Return the runtime of a stub: `a`, `b` or `c`."""
    return stub.removeprefix("hyperty-runtime://")[0]


def handler_of(runtime: str) -> str:
    """The address of a runtime's handler stub."""
    return f"{address(runtime)}/p2phandler/1"


@final
@attrs.frozen(slots=True)
class ToStub:
    """The inputs of one end of a link."""

    end: str
    happened: seen.SideInput

    @override
    def __str__(self) -> str:
        """Describe it in words."""
        return f"{type(self.happened).__name__} for {short(self.end)}"


@final
@attrs.frozen(slots=True)
class Known:
    """Presence of the end that listeners are wanted for."""

    is_known: bool


@final
@attrs.frozen(slots=True)
class ToRegistry:
    """Reports of one end of a link to its registry.

    Attributes:
        remote: The runtime at the other side.
    """

    end: str
    remote: str
    report: do.SideEffect | Known

    @override
    def __str__(self) -> str:
        """Describe it in words."""
        match self.report:
            case do.Announce(state):
                return f"{short(self.end)} is {state}"
            case Known(knows):
                return f"{short(self.end)} is {'known' if knows else 'unknown'}"
            case report:
                return f"{type(report).__name__} of {short(self.end)}"


@final
@attrs.frozen(slots=True)
class Disconnect:
    """A handler is to end a link, or all links to a runtime (M-12)."""

    named: str


@final
@attrs.frozen(slots=True)
class Listening:
    """A handler is asked for the listeners of a link (M-05)."""

    end: str


@final
@attrs.frozen(slots=True)
class Leave:
    """The runtime goes: all links end, and nothing begins any more."""


@final
@attrs.frozen(slots=True)
class Invited:
    """A requester invites to its object (M-34)."""

    url: str
    requester: str


@final
@attrs.frozen(slots=True)
class Observed:
    """An end observes an object of the other runtime (M-36)."""

    url: str
    end: str


@final
@attrs.frozen(slots=True)
class Knock:
    """A link is dialled; it has the name of the dial."""

    link: str
    at: str


@final
@attrs.frozen(slots=True)
class Opened:
    """A link that was dialled is open at its other end."""

    link: str
    end: str


@final
@attrs.frozen(slots=True)
class Closed:
    """A link has ended, or is not taken."""

    link: str
    loss: seen.Loss = seen.Loss.BROKEN


def short(end: str) -> str:
    """The address of an end without its scheme."""
    return end.removeprefix("hyperty-runtime://")


@final
@attrs.frozen(slots=True)
class Deployed:
    """A requester stub is deployed."""

    end: str
    plan: RequesterPlan
