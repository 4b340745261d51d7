"""The wire protocol between a node stub and its node: what differs between its forms.

A wire is made for one link. It dials, writes session controls, and converts messages to frames
and back; `fsm.session.stub_client` decides when, for every form in the same way. The module of a
form says what the form cannot do.
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
    """The answer to a request of the node to the stub itself.

    Attributes:
        line: The answer as it is written.
    """

    line: bytes


@final
@attrs.frozen(slots=True)
class Stray:
    """An answer of the node that belongs to no request."""

    message: Message


Item: TypeAlias = Message | BadLine | SessionAnswered | Reply | Stray

Asked: TypeAlias = bytes | SessionAnswered | None
"""What a session control becomes: a line to write; an answer without the node; or None: the link
itself is asked for a sign of life.
"""


class NodeWire(ABC):
    """One form of the wire protocol, for one link.

    Args:
        context: The context of the stub.
    """

    def __init__(self, context: StubContext) -> None:
        self._stub = context.url
        self._config = context.config
        self._network = context.network

    @abstractmethod
    async def dial(self) -> Link:
        """Open the link.

        If cancelled, nothing is left open.

        Raises:
            DialError: The node cannot be reached, refuses, or does not answer in time.
        """

    @abstractmethod
    def ask(self, method: SessionMethod, token: str | None) -> Asked:
        """Return a session control as it is written.

        Args:
            method: The control.
            token: To re-open: the token of the session. To open: credentials, if the form has a
                place for them.
        """

    @abstractmethod
    def read(self, frame: bytes) -> Sequence[Item]:
        """Read a frame; never raises: what is not a message becomes a `BadLine`."""

    @abstractmethod
    def write(self, message: Message) -> bytes:
        """Return a message as one line, without its end.

        Raises:
            BadMessageError: Its body is not JSON, or it is larger than `MAX_FRAME_BYTES`.
        """

    @abstractmethod
    def frames(self, lines: Iterable[bytes]) -> Iterable[bytes]:
        """Return frames with these lines, in order."""


WireMaker: TypeAlias = Callable[[], NodeWire]
"""Makes the wire of one link."""
