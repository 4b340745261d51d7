"""The pace that a node asks of a stub, as the stub understands it (R11)."""

import pytest

from actors.runtime.stubs.wire import pace_of
from fsm.limits.rates import Rate
from specs.bodies.session import SessionGranted
from specs.limits.protocol import LEAST_PACE


@pytest.mark.parametrize(
    ("rate", "burst", "pace"),
    [
        (100.0, 20, Rate(100.0, 20)),
        (1e-320, 1, Rate(LEAST_PACE, 1)),
        (1e9, 5, Rate(1e9, 5)),
        (0.0, 5, None),
        (100.0, None, None),
        (None, 5, None),
    ],
)
def test_a_node_cannot_hold_a_stub_up_for_ever(rate, burst, pace):
    assert pace_of(SessionGranted("token", rate=rate, burst=burst)) == pace
