"""Plugin for pytest with three fixtures: a trace recorder, a faulty network, and domains."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from actors.testing.chaos.network import ChaosNetwork
    from actors.testing.domains import Domains
    from actors.testing.recorder import Recorder

__all__ = ["protofly_chaos", "protofly_domain", "protofly_trace"]


@pytest.fixture
def protofly_trace() -> "Recorder":
    """Return a recorder of nodes and runtimes; `assert_conformant()` judges the run."""
    from actors.testing.recorder import Recorder  # noqa: PLC0415

    return Recorder()


@pytest.fixture
def protofly_chaos() -> "ChaosNetwork":
    """Return a network in memory; toxics add faults to its links.

    `chaos.toxic(Latency(0.2), ("ra", "rb"))` delays all frames between ra and rb.
    """
    from actors.testing.domains import chaos  # noqa: PLC0415

    return chaos()


@pytest.fixture
def protofly_domain(protofly_chaos: "ChaosNetwork", protofly_trace: "Recorder") -> "Domains":
    """Return an opener of domains in memory, such as one with the runtimes ra and rb.

    `async with protofly_domain("ra", "rb") as domain:`

    Args:
        protofly_chaos: The network of all domains of the test.
        protofly_trace: The recorder of all processes of the test.
    """
    from actors.testing.domains import Domains  # noqa: PLC0415

    return Domains(protofly_chaos, protofly_trace)
