"""Every number has a name, a unit and a source."""

import ast
import inspect
from itertools import pairwise

import pytest

from specs import limits

NAMES = [name for name in vars(limits) if name.isupper()]


def docstrings():
    body = ast.parse(inspect.getsource(limits)).body
    return {
        one.target.id: after.value.value
        for one, after in pairwise(body)
        if isinstance(one, ast.AnnAssign) and isinstance(after, ast.Expr)
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_limit_tells_its_unit_and_source(name):
    text = docstrings().get(name, "")
    assert text.endswith(".")
    assert "(" in text or "over this" in text


@pytest.mark.parametrize("name", NAMES)
def test_every_limit_is_a_positive_number(name):
    assert getattr(limits, name) > 0


def test_limits_that_nest_do_so():
    assert limits.MAX_MESSAGE_BYTES <= limits.MAX_FRAME_BYTES <= limits.OUTBOX_BYTES
    assert limits.DIAL_TIMEOUT < limits.P2P_TIMEOUT <= limits.REPLY_TIMEOUT
    assert limits.GOODBYE_TIMEOUT < limits.DRAIN_TIMEOUT
