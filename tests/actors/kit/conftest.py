import pytest
import structlog


@pytest.fixture(autouse=True)
def log_lines():
    """What was logged; crashes are reported there and nowhere else."""
    with structlog.testing.capture_logs() as lines:
        yield lines


@pytest.fixture
def diary() -> list[str]:
    return []
