"""Which sandbox processes may start beside others (T16)."""

import re

import pytest

from fsm.limits.shares import SandboxAdmission, SandboxTotals
from specs.limits.foreign_code import SANDBOXES
from specs.limits.protocol import SANDBOX_CPU, SANDBOX_MEMORY

AMPLE = SANDBOXES * SANDBOX_MEMORY


def entered(totals, *, is_grouped):
    """Start as many as possible; return how many these are, and why there are no more."""
    admission = SandboxAdmission(totals, is_grouped=is_grouped)
    count = 0
    while (refusal := admission.enter()) is None:
        count += 1
    return count, refusal


@pytest.mark.parametrize(
    ("totals", "count", "why"),
    [
        (SandboxTotals(3 * SANDBOX_MEMORY, 64.0), 3, "raise --sandbox-memory"),
        (SandboxTotals(4 * SANDBOX_MEMORY - 1, 64.0), 3, "raise --sandbox-memory"),
        (SandboxTotals(AMPLE, 4 * SANDBOX_CPU / 86_400), 4, "raise --sandbox-cpu"),
        (SandboxTotals(2 * AMPLE, 64.0), SANDBOXES, "run already"),
    ],
    ids=["memory", "a part of a process", "processor time", "number"],
)
def test_the_sum_of_all_limits_stays_within_the_totals(totals, count, why):
    started, refusal = entered(totals, is_grouped=False)
    assert started == count
    assert re.search(rf"\b{count} .*run already", refusal)
    assert why in refusal


def test_in_a_cgroup_only_the_number_counts():
    assert entered(SandboxTotals(SANDBOX_MEMORY, 0.05), is_grouped=True)[0] == SANDBOXES


def test_one_that_has_ended_makes_room_for_one_more():
    admission = SandboxAdmission(SandboxTotals(SANDBOX_MEMORY), is_grouped=False)
    assert admission.enter() is None
    assert admission.enter() is not None
    admission.leave()
    assert admission.enter() is None
    assert admission.enter() is not None


@pytest.mark.parametrize("totals", [(SANDBOX_MEMORY - 1,), (SANDBOX_MEMORY, 0.01)])
def test_totals_allow_at_least_one_process(totals):
    with pytest.raises(ValueError, match=">="):
        SandboxTotals(*totals)
