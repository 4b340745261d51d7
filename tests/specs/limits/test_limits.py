"""Every number has a name, a unit and a source."""

import ast
import inspect
import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import specs.limits
from specs.limits import node as limits_node
from specs.limits import protocol as limits

MODULES = [
    import_module(f"specs.limits.{file.stem}")
    for file in sorted(Path(specs.limits.__path__[0]).glob("[!_]*.py"))
]
LIMITS = {
    name: (module, value)
    for module in MODULES
    for name, value in vars(module).items()
    if name.isupper()
}


def docstrings(module):
    body = ast.parse(inspect.getsource(module)).body
    return {
        one.target.id: after.value.value
        for one, after in pairwise(body)
        if isinstance(one, ast.AnnAssign) and isinstance(after, ast.Expr)
    }


def test_every_limit_reports_its_unit_and_source():
    reported = {name: text for module in MODULES for name, text in docstrings(module).items()}
    texts = {name: reported.get(name, "") for name in LIMITS}
    assert {name for name, text in texts.items() if not text.endswith(".")} == set()
    assert {name for name, text in texts.items() if not re.search(r"\(|over this", text)} == set()


def test_every_limit_is_a_positive_number():
    assert {name: value for name, (_, value) in LIMITS.items() if value <= 0} == {}


def test_no_limit_stands_in_two_files():
    names = [name for module in MODULES for name in vars(module) if name.isupper()]
    assert len(names) == len(set(names))


def test_limits_that_nest_do_so():
    assert limits.MAX_MESSAGE_BYTES <= limits.MAX_FRAME_BYTES <= limits.OUTBOX_BYTES
    assert limits.DIAL_TIMEOUT < limits.P2P_TIMEOUT <= limits.REPLY_TIMEOUT
    assert limits.GOODBYE_TIMEOUT < limits.DRAIN_TIMEOUT
    assert limits_node.KEYS_TIMEOUT < limits_node.LOGIN_TIMEOUT < limits.OPEN_TIMEOUT
    assert limits_node.CLOCK_SKEW < limits_node.TOKEN_LIFE
