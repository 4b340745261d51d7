"""The Connection objects of a link, as its peer sees them."""

from fsm.p2p.dialling import Believed
from specs.addresses.address import runtime_of
from specs.bodies.object import ConnectionData
from specs.identity import SenderIdentity
from tests.support.link_calls import Call, tell


def believed(data: ConnectionData) -> Call:
    """An offer or answer that is proven to be of the runtime of its owner."""
    identity = SenderIdentity(runtime_of(data.owner))
    return tell.peer_object_seen(data, Believed(identity, f"of {identity.runtime}"))
