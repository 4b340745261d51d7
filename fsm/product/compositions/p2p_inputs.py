"""Inputs of the P2P stubs of the compositions: messages, links of the transport, and requests.

A message to a stub names the end, and with it the link, that it is for.
"""

from collections.abc import Hashable
from typing import Final, final

import attrs
from typing_extensions import override

from fsm.machines.p2p_connection import State
from fsm.p2p.link_end import LinkEnd, Loss
from fsm.registry.resolve.port import RequesterPlan


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
    """A call of the core of one end of a link.

    Attributes:
        call: Name of the method.
        args: What it is given, without the time.
    """

    end: str
    call: str
    args: tuple[Hashable, ...] = ()

    def give(self, core: LinkEnd, now: float) -> None:
        """Make the call."""
        timed = {"now": now} if self.call in _TIMED else {}
        getattr(core, self.call)(*self.args, **timed)

    @override
    def __str__(self) -> str:
        """Describe it in words."""
        return f"{self.call.replace('_', ' ')} for {short(self.end)}"


_TIMED: Final = (
    *("start", "object_created", "peer_object_seen", "link_opened", "link_lost", "connect"),
    "time_over",
)
"""Calls that are given the time."""


@final
@attrs.frozen(slots=True)
class ToRegistry:
    """Reports of one end of a link to its registry.

    Attributes:
        remote: The runtime at the other side.
        report: Its state, or that it asks for the row, has ended, is gone when it is commanded, is
            known or unknown when listeners are wanted for it.
        why: The reason of its state.
    """

    end: str
    remote: str
    report: State | str
    why: str = ""

    @override
    def __str__(self) -> str:
        """Describe it in words."""
        return f"{short(self.end)} is {self.report}"


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
    loss: Loss = Loss.BROKEN


def short(end: str) -> str:
    """The address of an end without its scheme."""
    return end.removeprefix("hyperty-runtime://")


@final
@attrs.frozen(slots=True)
class Deployed:
    """A requester stub is deployed."""

    end: str
    plan: RequesterPlan
