"""Certificates of both ends of a link, for tests that dial candidates themselves."""

from actors.keys.certificate import make_certificate
from transports.tls import PinnedTls

HERE, THERE = make_certificate(), make_certificate()
"""The certificate of an end, and that of its peer."""


def own_tls(peer=THERE) -> PinnedTls:
    """The TLS of an end that expects its peer."""
    tls = PinnedTls(lambda: HERE)
    if peer is not None:
        tls.pin(peer.der)
    return tls


def peer_tls(shown=THERE) -> PinnedTls:
    """The TLS of the peer, or of whoever shows another certificate."""
    tls = PinnedTls(lambda: shown)
    tls.pin(HERE.der)
    return tls
