import pytest
from trio.testing import MockClock

from tests.support.garbage import collected
from tests.support.runtime.links import PLACES, open_pair, open_place


@pytest.fixture
def hasty_clock():
    """Time at five times its speed, for patience that the real system tries.

    It does not jump: real sockets keep the real time they need.
    """
    return MockClock(rate=5.0)


@pytest.fixture(params=PLACES)
async def place(request, tmp_path):
    with collected():
        async with open_place(request.param, tmp_path) as place:
            yield place


@pytest.fixture
async def pair(place):
    async with open_pair(place) as pair:
        yield pair


@pytest.fixture(params=["dialler", "acceptor"])
def ends(request, pair):
    """The sending and the receiving end, both ways round."""
    return pair.ends(request.param)
