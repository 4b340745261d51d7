"""When catalogues are asked, and what is done meanwhile (CAT-11, T14, S13)."""

import pytest
import trio
import trio.testing

from tests.support.catalogues import STUB_B, Publishing, client_of


@pytest.fixture
def domain():
    made = Publishing()
    made.offers()
    return made


async def test_a_cancelled_look_leaves_a_client_that_works(domain, autojump_clock):
    client = client_of(domain)
    with trio.CancelScope() as scope:
        scope.cancel()
        await client.find(STUB_B)
    assert await client.find(STUB_B)
