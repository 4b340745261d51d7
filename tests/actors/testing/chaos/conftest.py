import pytest

from tests.actors.testing.chaos.chaos_scene import open_scene
from tests.support.runtime.links import PLACES, open_pair, open_place


@pytest.fixture
async def scene():
    async with open_scene() as scene:
        yield scene


@pytest.fixture(params=PLACES)
async def place(request, tmp_path):
    async with open_place(request.param, tmp_path) as place:
        yield place


@pytest.fixture
async def pair(place):
    async with open_pair(place) as pair:
        yield pair
