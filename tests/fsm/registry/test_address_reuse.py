"""Which kept address a hyperty has again (ALC-02, SC-10; allocate-address, steps 8 to 13)."""

import pytest

from fsm.registry.allocation import AddressReuse, Purpose

CHAT = Purpose("hyperty", "hyperty-catalogue://catalogue.a.ex/.well-known/hyperty/Chat")
OTHER = Purpose("hyperty", "hyperty-catalogue://catalogue.a.ex/.well-known/hyperty/Other")
NAMELESS = Purpose("hyperty")
H1, H2 = "hyperty://a.ex/h1", "hyperty://a.ex/h2"


@pytest.fixture
def kept():
    core = AddressReuse()
    core.keep(H1, CHAT)
    core.keep(H2, CHAT)
    return core


def test_another_purpose_misses(kept):
    assert kept.take_alike(OTHER) is None
    assert len(kept) == 2


def test_an_unidentifiable_hyperty_reuses_no_address():
    core = AddressReuse()
    core.keep(H1, NAMELESS)
    assert core.take_alike(NAMELESS) is None
    assert core.take(H1, NAMELESS)


@pytest.mark.parametrize(("address", "purpose", "is_had"), [
    (H2, CHAT, True),
    (H2, OTHER, False),
    ("hyperty://a.ex/unknown", CHAT, False),
])  # fmt: skip
def test_a_requested_address_is_given_or_none(kept, address, purpose, is_had):
    assert kept.take(address, purpose) is is_had
    assert kept.take(address, purpose) is False
