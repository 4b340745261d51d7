"""The wire forms a node speaks: one door per path (DESIGN section 8).

Behind its door every link looks the same: messages in normal form, sessions opened
by session control. A door is made anew for each link and may keep what it learns.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeAlias, final

from typing_extensions import override

from fsm.cores.node_session_terms import Liveness, Parcel
from specs.message import Message
from transports.codec import BadLine, decode_frame, frames

__all__ = ["Door", "Item", "LinkDoor"]

Item: TypeAlias = Message | BadLine


class Door(ABC):
    """How one link writes the protocol.

    Attributes:
        liveness: How it is noticed that the peer is gone.
    """

    liveness: ClassVar[Liveness]

    def greeting(self) -> Sequence[Message]:
        """Return what the peer means by having come."""
        return ()

    @abstractmethod
    def read(self, frame: bytes) -> Sequence[Item]:
        """Read a frame; never raises, what is no message is a `BadLine`."""

    @abstractmethod
    def write(self, parcels: Sequence[Parcel]) -> Iterable[bytes]:
        """Write messages as frames, in order."""


@final
class LinkDoor(Door):
    """`/link`, subprotocol `protofly.v1`: normal form, a frame is lines."""

    liveness = Liveness.PINGED

    @override
    def read(self, frame: bytes) -> Sequence[Item]:
        return decode_frame(frame)

    @override
    def write(self, parcels: Sequence[Parcel]) -> Iterable[bytes]:
        return frames(parcel.line for parcel in parcels)
