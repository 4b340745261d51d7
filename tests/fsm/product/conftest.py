"""A composition that does not hold, among those that the command knows."""

from types import MappingProxyType

import attrs
import pytest

from fsm.commands import product as commands_product
from fsm.compositions.catalogue import COMPOSITIONS
from fsm.product.bounds import Bounds
from fsm.product.composition import Plan
from tests.support.toy_product import CALL, Call, Deadline, toy


@pytest.fixture
def flawed(monkeypatch):
    """Its name: a lost question is waited for without end."""
    waits = attrs.evolve(CALL, deadlines=(Deadline(Call.ASKED, None, None, "without end"),))
    plan = Plan("toy", lambda _, bounds: toy(waits, bounds=bounds), Bounds(losses=1, duplicates=0))
    plans = MappingProxyType({**COMPOSITIONS, "toy": plan})
    monkeypatch.setattr(commands_product, "COMPOSITIONS", plans)
    return "toy"
