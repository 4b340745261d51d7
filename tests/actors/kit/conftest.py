import pytest

from tests.support.log import captured_log


@pytest.fixture(autouse=True)
def log_lines():
    """What was logged; crashes are reported there and nowhere else."""
    with captured_log() as lines:
        yield lines


@pytest.fixture
def diary() -> list[str]:
    return []
