import pytest
from trio.testing import MockClock

from tests.support.nats_server import needs_server, run_server
from tests.transports.engine.engines import NatsPlace, open_memory_place


@pytest.fixture(params=["memory", pytest.param("nats", marks=needs_server)])
def kind(request):
    return request.param


@pytest.fixture
def clock(kind):
    """Time that jumps, where nothing outside this process takes part; for tests to ask for."""
    return MockClock(autojump_threshold=0) if kind == "memory" else None


@pytest.fixture(scope="module")
def module_server():
    with run_server() as server:
        yield server


@pytest.fixture
def server(module_server):
    """A server that runs, whatever the test before has done to it."""
    module_server.start()
    return module_server


@pytest.fixture
async def place(kind, request):
    if kind == "nats":
        yield NatsPlace(request.getfixturevalue("server"))
        return
    async with open_memory_place() as place:
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
