"""Who speaks which wire form of a node: over WebSockets, and by requests."""

from tests.support.wire import wire_peer
from tests.support.wire.wire_peer import WirePeer
from tests.support.wire.wire_rest import RestPeer

FORMS: dict[str, type[WirePeer]] = {**wire_peer.FORMS, RestPeer.form: RestPeer}
