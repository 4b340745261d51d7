"""Whoever types the commands."""

import pytest

from tests.support.runtime.stub_publisher import StubPublisher


@pytest.fixture
def publisher(tmp_path):
    return StubPublisher(tmp_path)
