"""The allocation table against a model of it (I-A1..I-A7)."""

import pytest

from fsm.effects import Refused
from fsm.engine import Step
from fsm.registry.allocation import ENTROPY, AddressMint, AllocationCore, AllocationPort
from specs.limits.protocol import MAX_ADDRESSES
from tests.support.link_calls import RecordingPort
from tests.support.lone_paths import lone_addresses

OWNERS = ["hyperty-runtime://a.ex/r1", "hyperty-runtime://a.ex/r2", "r3"]
MINT = AddressMint(b"secret of a node")
MADE_FOR = {
    f"hyperty://a.ex/{MINT.name(bytes([n]) * ENTROPY, OWNERS[n % 3])}": OWNERS[n % 3]
    for n in range(21)
}
MADE = list(MADE_FOR)
CLAIMED = [f"hyperty://a.ex/{n}" for n in range(20)]


def refusals(outcome):
    return [outcome.code] if isinstance(outcome, Refused) else []


class SmallDomain(AllocationCore):
    most, most_released = 3, 2


def test_a_domain_has_no_more_than_its_share():
    core = lone_addresses(core=SmallDomain)
    assert not refusals(core.allocate("r1", ("a://a.ex/1", "a://a.ex/2", "a://a.ex/3")))

    assert refusals(core.allocate("r2", ("a://a.ex/4",))) == [503]
    assert refusals(core.claim("r2", ("a://a.ex/4",))) == [503]
    assert refusals(core.bind("r2", "a://b.ex/4")) == [503]
    core.release("r1", "over")
    assert not refusals(core.allocate("r2", ("a://a.ex/4",)))
    assert AllocationCore.most >= 100 * MAX_ADDRESSES


def test_tombstones_are_bounded_and_beyond_that_no_address_is_claimed():
    """I-A1 holds on: what was released is not forgotten, so nobody else gets it."""
    core = lone_addresses(MINT, SmallDomain)
    core.claim("r1", (CLAIMED[0], CLAIMED[1]))
    core.release("r1", "over")

    assert refusals(core.claim("r2", (CLAIMED[0],))) == [403]
    assert refusals(core.claim("r2", (CLAIMED[2],))) == [413]
    assert not refusals(core.allocate("r2", (MADE[0],)))
    assert AllocationCore.most_released >= 10**6


@pytest.mark.parametrize("address", [MADE[0], CLAIMED[0]])
def test_only_its_last_runtime_gets_a_released_address_again(address):
    """ALC-02, SYN-25, RT-03: what was stored comes back at its address, I-A1."""
    core, (mine, other) = (AllocationCore(port := RecordingPort(AllocationPort), MINT), OWNERS[:2])
    (core.allocate if address in MADE else core.claim)(mine, (address,))
    core.release(mine, "over")

    assert refusals(core.claim(other, (address,))) == [403]
    port.take()
    assert core.claim(mine, (address,)) is None
    steps = [(one.old, one.new) for one in port.take() if isinstance(one, Step)]
    assert steps == [("released", "allocated")]
    assert core.owner_of(address) == mine
    assert refusals(core.claim(other, (address,))) == [403]
