"""What a domain publishes, and the code of a stub of it."""

import pytest

from tests.support.catalogues import Publishing, archive_of


@pytest.fixture
def domain():
    return Publishing()


@pytest.fixture
def archive(tmp_path):
    return archive_of(tmp_path / "code")
