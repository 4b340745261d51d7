"""Whoever types the commands."""

import pytest

from tests.support.runtime.stub_publisher import Desk


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)
