"""The compositions of a group's nodes find each rule that is left out (I-M2).

They hold as they are: see `test_compositions.py`.
"""

import attrs
import pytest

from fsm.explore.compositions.catalogue import COMPOSITIONS
from fsm.explore.explorer import Fault, explore
from tests.fsm.flawed_tables import flawed, led_to, without_deadline, without_row

pytestmark = pytest.mark.timeout(240)

A_LOOK = 60_000
"""States after which a search for a seeded flaw is given up."""

A_GLANCE = 10_000
"""States among which most planted flaws of a core are."""


def found(name, most=A_LOOK):
    """The first thing that is found without duplicates: none of these flaws needs one."""
    whole = COMPOSITIONS[name]
    whole = attrs.evolve(whole, bounds=attrs.evolve(whole.bounds, duplicates=0))
    return [one.subject or one.fault for one in explore(whole, most, Fault).findings]


@pytest.mark.parametrize(
    ("name", "most"),
    [("group", A_LOOK), *[(f"group-{why}", A_GLANCE) for why in ("fence", "lease", "death")]],
)
def test_cores_as_they_are_have_no_flaw(name, most):
    """The flaws of a core are planted."""
    assert found(name, most) == []


TABLES = [
    ("group-lease", lambda: without_deadline("group_membership", "member")),
    ("group-fence", lambda: without_row("group_membership", "member", "fence")),
    ("group-fence", lambda: without_row("group_membership", "fenced", "join")),
    ("group-lease", lambda: without_row("group_membership", "joining", "admit")),
    ("group-fence", lambda: led_to("group_membership", "member", "fence", "member")),
]


@pytest.mark.parametrize(("name", "table"), TABLES)
def test_a_flaw_of_the_machine_is_found(name, table):
    with flawed("group_membership", table()):
        assert found(name)
