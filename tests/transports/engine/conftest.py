import pytest
from trio.testing import MockClock

from tests.transports.engine.engines import open_memory_place

KINDS = {"memory": open_memory_place}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def clock(kind):
    """Time that jumps, where nothing outside this process takes part; for tests to ask for."""
    return MockClock(autojump_threshold=0) if kind == "memory" else None


@pytest.fixture
async def place(kind):
    async with KINDS[kind]() as place:
        yield place


@pytest.fixture
async def engine(place):
    async with place.open() as engine:
        yield engine


@pytest.fixture
async def other(place):
    """A handle of another node."""
    async with place.open() as engine:
        yield engine
