"""How a node stub speaks to its node: what differs from one wire form to the next.

A wire is made for one link and forgotten with it. It dials, says how session control
looks, and turns messages into frames and back; when to do so is decided by
`fsm.session.stub_client`, for every form in the same way. What one form cannot do its own
module says.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, final

import attrs

from actors.runtime.stubs.stub import StubContext
from fsm.session.stub_client_io import SessionAnswered
from specs.bodies.word import SessionMethod
from specs.message import Message
from transports.codec import BadLine
from transports.link import Link

__all__ = ["Asked", "Item", "NodeWire", "Reply", "Stray", "WireMaker"]


@final
@attrs.frozen(slots=True)
class Reply:
    """The node asked the stub itself something, and this is the answer.

    Attributes:
        line: As it is written.
    """

    line: bytes


@final
@attrs.frozen(slots=True)
class Stray:
    """The node answered what nobody asked."""

    message: Message


Item: TypeAlias = Message | BadLine | SessionAnswered | Reply | Stray

Asked: TypeAlias = bytes | SessionAnswered | None
"""What becomes of a session control: it is written; or it needs no node to be answered; or
the link itself is asked for a sign of life."""


class NodeWire(ABC):
    """One wire form over one link.

    Args:
        context: Of the stub that speaks.
    """

    def __init__(self, context: StubContext) -> None:
        self._stub = context.url
        self._config = context.config
        self._network = context.network

    @abstractmethod
    async def dial(self) -> Link:
        """Open the link.

        Cancelled: nothing is left open.

        Raises:
            DialError: Nobody there, refused, or no answer in time.
        """

    @abstractmethod
    def ask(self, method: SessionMethod, token: str | None) -> Asked:
        """Say something about the session.

        Args:
            method: What is wanted.
            token: To re-open: of the session. To open: credentials, where a form has a
                place for them.
        """

    @abstractmethod
    def read(self, frame: bytes) -> Sequence[Item]:
        """Read a frame; never raises, what is no message is a `BadLine`."""

    @abstractmethod
    def write(self, message: Message) -> bytes:
        """Write a message as one line, without its end.

        Raises:
            BadMessageError: Its body is no JSON, or larger than any frame.
        """

    @abstractmethod
    def frames(self, lines: Iterable[bytes]) -> Iterable[bytes]:
        """Put lines into frames, in order."""


WireMaker: TypeAlias = Callable[[], NodeWire]
"""Makes the wire of one link."""
