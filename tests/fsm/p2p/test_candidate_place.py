"""Which places candidates may lead to, by who names them (T10)."""

import attrs
import pytest

from fsm.p2p.dialling import DialPolicy, LinkPolicy, P2pUse, PeerPolicy, Place, place_of
from specs.bodies.object import Candidate

RB = "hyperty-runtime://b.ex/rb"
KINDS = ("unix", "tcp", "websocket")
HERE = DialPolicy(KINDS, b"this machine")
THERE = DialPolicy(KINDS, b"another machine")
MACHINE, NETWORK, ANYWHERE, NOWHERE = Place.MACHINE, Place.NETWORK, Place.ANYWHERE, Place.NOWHERE

HOSTS = [
    ("127.0.0.1", MACHINE),
    ("127.9.9.9", MACHINE),
    ("[::1]", MACHINE),
    ("localhost", MACHINE),
    ("10.0.0.7", NETWORK),
    ("172.16.0.1", NETWORK),
    ("192.168.1.1", NETWORK),
    ("169.254.169.254", NETWORK),
    ("100.64.0.1", NETWORK),
    ("[fe80::1]", NETWORK),
    ("[fd00::1]", NETWORK),
    ("printer", NETWORK),
    ("runtime.example.org", NETWORK),
    ("8.8.8.8", ANYWHERE),
    ("[2606:4700::1]", ANYWHERE),
    ("0.0.0.0", NOWHERE),  # noqa: S104 - nobody listens there
    ("[::]", NOWHERE),
    ("224.0.0.1", NOWHERE),
    ("127.1", NOWHERE),
    ("0x7f000001", NOWHERE),
    ("2130706433", NOWHERE),
    ("[::ffff:127.0.0.1]", NOWHERE),
    ("[::ffff:10.0.0.1]", NOWHERE),
    ("[64:ff9b::a00:1]", NOWHERE),
    ("", NOWHERE),
]


@pytest.mark.parametrize(("host", "place"), HOSTS)
def test_a_host_is_reached_from(host, place):
    assert place_of("tcp", f"{host}:22") is place
    assert place_of("websocket", f"ws://{host}:80/p2p") is place


def test_a_unix_socket_is_of_its_machine_for_any_name():
    assert place_of("unix", "8.8.8.8:22") is MACHINE


def test_an_invalid_address_leads_nowhere():
    assert place_of("tcp", "[") is NOWHERE
    assert place_of("websocket", "ws://[") is NOWHERE


# ---- this machine


def near(kind="tcp", address="127.0.0.1:22"):
    return Candidate(kind, address, "00")


@pytest.mark.parametrize("candidate", [near(), near("unix", "/x"), near("tcp", "[::1]:1")])
def test_a_place_of_this_machine_is_dialled_if_its_sender_is_on_it(candidate):
    assert HERE.allows(HERE.sign_candidate(candidate), RB)
    assert not HERE.allows(THERE.sign_candidate(candidate), RB)
    assert not HERE.allows(candidate, RB)


@pytest.mark.parametrize(
    "change", [{"address": "127.0.0.1:23"}, {"secret": "01"}, {"kind": "websocket"}]
)
def test_a_proof_is_of_one_candidate(change):
    """Who was notified of one place of this machine makes no other of it."""
    proven = HERE.sign_candidate(near())
    assert not HERE.allows(attrs.evolve(proven, **change), RB)


def test_a_proof_may_be_any_text():
    assert not HERE.allows(attrs.evolve(near(), host="\u00e9"), RB)


def test_a_foreign_address_reveals_nothing_of_its_machine():
    assert HERE.sign_candidate(near(address="8.8.8.8:22")).host is None


# ---- this network

LAN = near(address="10.0.0.7:22")


def naming(wanted, peer="b.ex"):
    return attrs.evolve(
        HERE, links=LinkPolicy(P2pUse.WHENEVER_POSSIBLE, (PeerPolicy(peer, wanted),))
    )


@pytest.mark.parametrize(
    ("policy", "is_known"),
    [
        (HERE, False),
        (naming(P2pUse.WHENEVER_POSSIBLE), True),
        (naming(P2pUse.WHEN_ASKED, RB), True),
        (naming(P2pUse.REQUIRED, "c.ex"), False),
        (naming(P2pUse.NEVER), False),
    ],
    ids=["nobody is named", "the domain", "the runtime", "another", "named as unwanted"],
)
def test_a_private_place_is_for_peers_that_are_named(policy, is_known):
    """It is neither dialled for others nor reported to them."""
    assert policy.allows(LAN, RB) is is_known
    assert policy.offers("tcp", LAN.address, RB) is is_known


def test_a_public_place_is_for_all_and_no_place_for_none():
    everybody = naming(P2pUse.REQUIRED)
    for policy in (HERE, everybody):
        assert policy.allows(near(address="8.8.8.8:22"), RB)
        assert policy.offers("tcp", "8.8.8.8:0", RB)
        assert not policy.allows(near(address="0.0.0.0:22"), RB)
        assert not policy.offers("tcp", "0.0.0.0:0", RB)


def test_a_kind_that_is_not_wanted_is_not_dialled():
    assert not attrs.evolve(HERE, kinds=("unix",)).allows(near(address="8.8.8.8:22"), RB)
