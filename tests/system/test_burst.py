"""A burst of updates costs no honest subscriber its link (RELIABILITY L2, L3, MN-16).

A node process and real sockets; the subscribers are sockets that answer signs of life. A burst
raises `BenchError` if one of them loses its link or an update.
"""

import pytest

from bench.node.hostile import REACH, Size, burst
from bench.peers import raise_file_limit
from specs.limits.protocol import OUTBOX_BUDGET

MIB = 2**20
FEW = Size(subscribers=150, updates=20)
SILENT = Size(subscribers=20, updates=20, silent=200, letters=20)
ON_ITS_WAY = 32
"""MiB of what is in no queue of a link: read and not yet routed, and what Python keeps."""


@pytest.fixture(autouse=True)
def many_sockets():
    raise_file_limit()


@pytest.mark.timeout(300)
async def test_no_reading_subscriber_is_closed_in_a_burst():
    """L2: charged to each link, 3,000 updates of 10 kB would be four times this budget."""
    taken = await burst(FEW, "--outbox-budget", str(24 * MIB))

    assert taken.left == 0


@pytest.mark.timeout(300)
async def test_a_peer_that_does_not_read_is_closed_and_readers_are_unaffected():
    """L2, L3: 200 peers that do not read are sent messages of their own, 40 MB of text."""
    taken = await burst(SILENT, "--outbox-budget", str(32 * MIB))

    assert taken.left > 0
    assert taken.grown < 32 + ON_ITS_WAY


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_a_thousand_subscribers_get_a_hundred_updates():
    """L2, P1: with the limits as they are."""
    taken = await burst(Size())

    assert taken.left == 0
    assert taken.grown < REACH


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_the_budget_bounds_what_two_hundred_silent_peers_cost():
    """L2, L3: 200 MB of text to peers that do not read, beside a hundred that do."""
    taken = await burst(Size(subscribers=100, silent=200))

    assert taken.left > 0
    assert taken.grown < OUTBOX_BUDGET / MIB + ON_ITS_WAY
