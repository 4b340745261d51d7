import pytest

from tests.support.garbage import collected
from tests.support.runtime.links import PLACES, open_pair, open_place


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
