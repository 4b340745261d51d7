"""A composition that does not hold, among those that the command knows."""

from types import MappingProxyType

import attrs
import pytest

from fsm.commands import product as commands_product
from fsm.explore.composition import Bounds
from fsm.explore.compositions.catalogue import COMPOSITIONS


@pytest.fixture
def flawed(monkeypatch):
    """Its name; its requests end only if they are answered at once."""
    whole = COMPOSITIONS["transaction"]
    bounds = Bounds(losses=1, duplicates=0)
    toy = attrs.evolve(whole, name="toy", ends=whole.ends[:1], bounds=bounds)
    plans = MappingProxyType({**COMPOSITIONS, "toy": toy})
    monkeypatch.setattr(commands_product, "COMPOSITIONS", plans)
    return "toy"
