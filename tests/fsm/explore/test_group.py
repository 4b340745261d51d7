"""The compositions of a group's nodes find each rule that is left out (I-M2).

They hold as they are: see `test_compositions.py`.
"""

import attrs
import pytest

from fsm.explore.compositions.catalogue import COMPOSITIONS
from fsm.explore.explorer import Fault, explore
from fsm.group.membership import MembershipCore
from fsm.group.moves import MovesCore
from fsm.group.rows import RowsCore
from tests.fsm.flawed_tables import flawed, led_to, without_deadline, without_row

pytestmark = pytest.mark.timeout(240)

A_LOOK = 60_000
"""States after which a search for a seeded flaw is given up."""


def found(name):
    """The first thing that is found without duplicates: none of these flaws needs one."""
    whole = COMPOSITIONS[name]
    whole = attrs.evolve(whole, bounds=attrs.evolve(whole.bounds, duplicates=0))
    return [one.subject or one.fault for one in explore(whole, A_LOOK, Fault).findings]


def no_fencing(patch):
    patch.setattr(MembershipCore, "tick", lambda self, now: None)
    patch.setattr(MembershipCore, "may_write", lambda self, now: self._has_lease)


def fenced_by_a_timer_only(patch):
    patch.setattr(MembershipCore, "may_write", lambda self, now: self._has_lease)


def fenced_too_late(patch):
    patch.setattr("specs.limits.group.GROUP_TERM", 10.5)


def lease_counted_from_the_answer(patch):
    real = MembershipCore._take_written
    patch.setattr(
        MembershipCore,
        "_take_written",
        lambda self, revision, _, now: real(self, revision, now, now),
    )


def epoch_not_raised(patch):
    def keep(self, row, before):
        self.own[row.runtime] = attrs.evolve(row, epoch=before.epoch if before else 1)
        return self.own[row.runtime]

    patch.setattr(MovesCore, "keep", keep)


def expected_revision_left_out(patch):
    real = RowsCore._due
    patch.setattr(
        RowsCore,
        "_due",
        lambda self, now: (attrs.evolve(put, expected=None) for put in real(self, now)),
    )


def conflict_taken_as_done(patch):
    def take_conflict(self, number, value, revision):
        self.take_written(number, revision)

    patch.setattr(RowsCore, "take_conflict", take_conflict)


def unknown_outcome_taken_as_done(patch):
    def take_silence(self, number, now):
        if number in self._keys:
            self.take_written(number, self._flights[self._keys[number]].expected + 1)

    patch.setattr(RowsCore, "take_silence", take_silence)


def unknown_outcome_left_so(patch):
    patch.setattr(RowsCore, "take_silence", lambda self, number, now: None)


def stale_row_applied(patch):
    patch.setattr(RowsCore, "_is_news", lambda self, key, news: True)


def copy_not_given_up(patch):
    patch.setattr(MovesCore, "_yield", lambda self, runtime, to, why: None)


def row_in_its_name_kept(patch):
    real = MovesCore.take_row

    def take_row(self, row, here):
        if row.holder != here or row.runtime in self.own:
            real(self, row, here)

    patch.setattr(MovesCore, "take_row", take_row)


def nobody_tidies_up(patch):
    patch.setattr(MembershipCore, "tidies", lambda self, key: False)


NOT_A_MEMBER = "a node takes itself for a member, and the engine does not"
OVER = "Node a is no member by its own clock, and a session is open there."
NOT_NEXT = "a session changes its node, and its epoch is not the next one"
UNKNOWN = "the engine makes a write over a row that its node did not know"
OLDER = "a node applies an older version of a row than it knows"
TWICE = "Two nodes have heard all, and have one session (I-M2)."
DIFFERS = {f"Node {node} has heard all, and its mirror is not as the engine." for node in "ab"}
STUCK = {Fault.DEADLOCK, Fault.LIVELOCK}

# fmt: off
FLAWS = [
    ("group-fence", no_fencing,                    {OVER}),
    ("group-lease", no_fencing,                    {NOT_A_MEMBER}),
    ("group-lease", fenced_by_a_timer_only,        {NOT_A_MEMBER}),
    ("group-lease", fenced_too_late,               {NOT_A_MEMBER}),
    ("group-lease", lease_counted_from_the_answer, {NOT_A_MEMBER}),
    ("group",       epoch_not_raised,              {NOT_NEXT}),
    ("group",       expected_revision_left_out,    {UNKNOWN}),
    ("group-fence", expected_revision_left_out,    {UNKNOWN}),
    ("group",       conflict_taken_as_done,        {TWICE} | DIFFERS),
    ("group",       unknown_outcome_taken_as_done, {TWICE} | DIFFERS),
    ("group",       unknown_outcome_left_so,       STUCK),
    ("group",       stale_row_applied,             {OLDER}),
    ("group-fence", copy_not_given_up,             {TWICE}),
    ("group",       row_in_its_name_kept,          STUCK),
    ("group-death", nobody_tidies_up,              STUCK),
]
# fmt: on


@pytest.mark.parametrize(
    ("name", "flaw", "wanted"), FLAWS, ids=[f"{name}-{flaw.__name__}" for name, flaw, _ in FLAWS]
)
def test_a_rule_that_is_left_out_is_found(name, flaw, wanted, monkeypatch):
    flaw(monkeypatch)

    assert set(found(name)) & wanted


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
