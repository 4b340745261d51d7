"""A Message BUS with a registry that is the test itself."""

import pytest

from tests.support.runtime.runtime_parts import open_bus


@pytest.fixture
async def world():
    async with open_bus() as world:
        yield world
