"""A composition that does not hold, among those that the command knows."""

from types import MappingProxyType

import attrs
import pytest

from fsm.commands import product as commands_product
from fsm.product.composition import Bounds, Plan
from fsm.product.compositions.catalogue import COMPOSITIONS


def restless(bounds):
    """Requests that end only if they are answered at once."""
    whole = COMPOSITIONS["transaction"].compose(bounds)
    return attrs.evolve(whole, name="toy", ends=whole.ends[:1])


@pytest.fixture
def flawed(monkeypatch):
    """Its name."""
    plan = Plan("toy", restless, Bounds(losses=1, duplicates=0))
    plans = MappingProxyType({**COMPOSITIONS, "toy": plan})
    monkeypatch.setattr(commands_product, "COMPOSITIONS", plans)
    return "toy"
