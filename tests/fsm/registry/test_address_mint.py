"""Names that a node knows again without a list of them (I-A1, T3)."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.registry.allocation import ENTROPY, AddressMint

MINT, OTHER = AddressMint(b"one node"), AddressMint(b"another node")
R = "hyperty-runtime://a.ex/ra"
RANDOM = st.binary(min_size=ENTROPY, max_size=ENTROPY)


@given(random=RANDOM)
def test_a_name_is_a_uuid_and_known_again(random):
    name = MINT.name(random, R)

    assert UUID(name).version == 4
    assert str(UUID(name)) == name
    assert MINT.is_own(f"hyperty://a.ex/{name}")
    assert MINT.is_own(f"comm://a.ex/{name.upper()}/children/chat")


@given(random=RANDOM)
def test_another_node_or_the_same_after_a_restart_does_not_know_it(random):
    assert not OTHER.is_own(f"hyperty://a.ex/{MINT.name(random, R)}")


@given(name=st.uuids())
def test_a_name_that_a_peer_made_does_not_look_so(name):
    assert not MINT.is_own(f"hyperty://a.ex/{name}")


@given(one=RANDOM, other=RANDOM)
def test_other_random_bytes_make_another_name(one, other):
    """Of 64 bits a UUID keeps 60."""
    kept = [(int.from_bytes(b) & ~(0xF << 12)) for b in (one, other)]

    assert (MINT.name(one, R) == MINT.name(other, R)) == (kept[0] == kept[1])


@pytest.mark.parametrize(
    "address",
    ["", "hyperty://a.ex", "hyperty://a.ex/1", f"hyperty://a.ex/{'g' * 36}"],
)
def test_an_invalid_name_is_none(address):
    assert not MINT.is_own(address)


@given(random=RANDOM)
def test_the_runtime_of_an_allocated_name_is_known_from_the_name(random):
    address = f"comm://a.ex/{MINT.name(random, R)}"

    assert MINT.made_for(address, R)
    assert not MINT.made_for(address, f"{R}2")
    assert not OTHER.made_for(address, R)
