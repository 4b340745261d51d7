"""The pytest plugin: three fixtures, and nothing else.

They need no plugin for Trio: what they give is opened inside the test, on whatever clock
runs there. Everything is imported when a test first asks for it.
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from actors.testing.domains import Domains
    from actors.testing.recorder import Recorder
    from transports.chaos.network import ChaosNetwork

__all__ = ["protofly_chaos", "protofly_domain", "protofly_trace"]


@pytest.fixture
def protofly_trace() -> "Recorder":
    """Record what nodes and runtimes do; `assert_conformant()` judges it."""
    from actors.testing.recorder import Recorder  # noqa: PLC0415

    return Recorder()


@pytest.fixture
def protofly_chaos() -> "ChaosNetwork":
    """Carry links in memory, and harm them by toxics: `chaos.toxic(Latency(0.2), ("ra", "rb"))`."""
    from actors.testing.domains import chaos  # noqa: PLC0415

    return chaos()


@pytest.fixture
def protofly_domain(protofly_chaos: "ChaosNetwork", protofly_trace: "Recorder") -> "Domains":
    """Open domains in memory, such as one with the runtimes ra and rb.

    `async with protofly_domain("ra", "rb") as domain:`
    """
    from actors.testing.domains import Domains  # noqa: PLC0415

    return Domains(protofly_chaos, protofly_trace)
