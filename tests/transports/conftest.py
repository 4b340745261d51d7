import gc

import pytest

from tests.support.links import PLACES, open_pair, open_place


@pytest.fixture(params=PLACES)
async def place(request, tmp_path):
    async with open_place(request.param, tmp_path) as place:
        yield place
    gc.collect()  # a socket left open would warn, and a warning is an error


@pytest.fixture
async def pair(place):
    async with open_pair(place) as pair:
        yield pair


@pytest.fixture(params=["dialler", "acceptor"])
def ends(request, pair):
    """The sending and the receiving end, both ways round."""
    return pair.ends(request.param)
