"""Which places candidates may lead to, by who names them (T10)."""

import attrs
import pytest

from fsm.p2p.dialling import DialPolicy, Place, place_of
from specs.bodies.object import Candidate

RB = "hyperty-runtime://b.ex/rb"
KINDS = ("unix", "tcp", "websocket")
HERE = DialPolicy(KINDS, b"this machine")
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


# ---- this machine


def near(kind="tcp", address="127.0.0.1:22"):
    return Candidate(kind, address, "00")


def test_a_foreign_address_reveals_nothing_of_its_machine():
    assert HERE.sign_candidate(near(address="8.8.8.8:22")).host is None


# ---- this network


def test_a_kind_that_is_not_wanted_is_not_dialled():
    assert not attrs.evolve(HERE, kinds=("unix",)).allows(near(address="8.8.8.8:22"), RB)
