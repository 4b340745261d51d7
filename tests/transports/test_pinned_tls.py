"""Mutual TLS with pinned certificates: over real sockets, and as the network in memory has it."""

import ssl
from functools import partial

import pytest
import trio

from actors.keys.certificate import make_certificate
from tests.support.runtime.links import leaving_together, open_place
from transports.errors import DialError, LinkError
from transports.link import FRAMED, Everybody
from transports.tls import PinnedTls

PLACES = [f"{family}-{kind}" for family in ("memory", "system", "chaos_memory") for kind in FRAMED]


@pytest.fixture(params=PLACES)
async def place(request, tmp_path):
    async with open_place(request.param, tmp_path) as opened:
        yield opened


def ends(listener=None, dialler=None):
    """Two ends that expect each other, unless another certificate is to be shown."""
    own, other = make_certificate(), make_certificate()
    here, there = PinnedTls(lambda: listener or own), PinnedTls(lambda: dialler or other)
    here.pin(other.der)
    there.pin(own.der)
    return here, there, own, other


async def meeting(place, listening, dialling):
    """Dial, and let each end receive what the other one sends first; raise what fails."""
    gate = Everybody(listening)
    async with place.network.listen(place.kind, place.where, gate=gate) as listener:
        address = place.dialled(listener.address)
        heard = []

        async def accept():
            link = await listener.accept()
            async with leaving_together(link):
                heard.append((await link.receive(), link.peer_certificate))
                await link.send(b"welcome")

        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(accept)
                dialled = await place.network.dial(place.kind, address, tls=dialling)
                async with leaving_together(dialled):
                    await dialled.send(b"hello")
                    heard.append((await dialled.receive(), dialled.peer_certificate))
        return heard


async def test_two_ends_that_expect_each_other_meet_by_their_certificates(place):
    here, there, own, other = ends()
    heard = await meeting(place, here.listening, there.dialling)
    assert heard == [(b"hello", other.der), (b"welcome", own.der)]


def unknown(here, there):
    listening, dialling = PinnedTls(make_certificate), PinnedTls(make_certificate)
    listening.pin(there.dialling.own)
    dialling.pin(here.listening.own)
    return listening, dialling


def plain_context():
    """A client without a certificate, which accepts any of the server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def older(there):
    context = there.dialling
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


CASES = {
    "the listener is another": lambda here, there: (
        unknown(here, there)[0].listening,
        there.dialling,
    ),
    "the dialler is another": lambda here, there: (
        here.listening,
        unknown(here, there)[1].dialling,
    ),
    "the dialler is not known yet": lambda here, there: (
        PinnedTls(make_certificate).listening,
        there.dialling,
    ),
    "the dialler knows nobody": lambda here, there: (
        here.listening,
        PinnedTls(make_certificate).dialling,
    ),
    "the listener has no TLS": lambda here, there: (None, there.dialling),
    "the dialler has no TLS": lambda here, there: (here.listening, None),
}
ONLY_SOCKETS = {
    "the dialler shows no certificate": lambda here, there: (here.listening, plain_context()),
    "the dialler speaks TLS 1.2 only": lambda here, there: (here.listening, older(there)),
}


@pytest.mark.parametrize("case", [*CASES, *ONLY_SOCKETS])
async def test_no_byte_passes_between_ends_that_do_not_expect_each_other(place, case, request):
    if case in ONLY_SOCKETS and "memory" in request.node.callspec.params["place"]:
        return
    here, there, *_ = ends()
    listening, dialling = (CASES | ONLY_SOCKETS)[case](here, there)
    with pytest.raises(BaseExceptionGroup) as raised:
        await meeting(place, listening, dialling)
    assert raised.value.split((DialError, LinkError))[1] is None


def test_a_pinned_certificate_is_never_replaced():
    here, there, _, other = ends()
    here.pin(make_certificate().der)
    assert (here.peer, here.listening.peer) == (other.der, other.der)
    assert there.dialling is there.dialling


UNREADABLE = {
    "nothing": b"",
    "no DER": b"none",
    "zeros": bytes(100_000),
    "a part of one": make_certificate().der[:-1],
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_certificate_that_cannot_be_read_lets_nobody_in(name):
    peer = UNREADABLE[name]
    tls = PinnedTls(make_certificate)
    tls.pin(peer)
    tls.pin(make_certificate().der)
    for context in (tls.listening, tls.dialling):
        assert (context.peer, context.get_ca_certs()) == (peer, [])


def test_a_private_key_is_in_no_text():
    shown = make_certificate()
    assert "PRIVATE" not in repr(shown)
    assert "PRIVATE" not in repr(partial(PinnedTls, lambda: shown))
