"""The door of runtimes whose link is made of HTTP requests (CON-06)."""

from collections.abc import Iterable, Sequence
from typing import Final, final

from typing_extensions import override

from actors.kit.tally import Form
from actors.node.links.acceptor import Door, Item
from fsm.session.node_session_io import Liveness, Parcel
from fsm.session.peer_form import PeerForm
from transports.codec import decode_frame

__all__ = ["REST", "RestDoor"]

REST: Final = "/rest"
"""By which the front door knows it; no WebSocket is served there."""


@final
class RestDoor(Door):
    """Normal form; what is posted is lines, and each message that is asked for has a number.

    Every request is a sign of life, so nobody is pinged by messages.
    """

    wire = Form.REST
    liveness = Liveness.BY_LINK
    form = PeerForm.OWN

    @override
    def read(self, frame: bytes) -> Sequence[Item]:
        return decode_frame(frame)

    @override
    def write(self, parcels: Sequence[Parcel]) -> Iterable[bytes]:
        return [parcel.line for parcel in parcels]
