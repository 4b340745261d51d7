"""Allowances, expulsions and the public, as the reporter's end decides (SYN-11, SYN-18, SYN-21)."""

import pytest

from specs.bodies.object import DataObject
from specs.limits.sync import MAX_ALLOWED_OBSERVERS, MAX_UNDECIDED
from specs.reply_code import Code
from tests.support.lone_report import kinds, lone_report, said, told

HA, HB, HC = (f"hyperty://a.ex/{name}" for name in ("ha", "hb", "hc"))
RA = "hyperty-runtime://a.ex/ra"
SM = "hyperty-runtime://b.ex/rb/sm"
URL = "comm://a.ex/o"


def reporter(*allowed, is_public=False):
    return lone_report(DataObject(HA, RA, {}, URL), *allowed, is_public=is_public)


def fed(core, *inputs):
    return said(told(core, *inputs))


def subscribe(core, observer=HB):
    return fed(core, ("subscribe", observer, SM))


def yes_to(asked):
    return ("accept", asked[1], asked[2])


def no_to(asked):
    return ("refuse", asked[1], "no", asked[2])


@pytest.mark.parametrize("decide", [yes_to, no_to])
def test_a_decision_is_about_the_question_it_answers_and_no_later_one(decide):
    core = reporter()
    (before,) = subscribe(core)
    fed(core, ("expel", HA, HB))
    (after,) = subscribe(core)
    assert fed(core, decide(before)) == []
    assert not core.may_read(HB)
    assert len(fed(core, decide(after))) == 1


def test_an_expelled_reader_is_cut_off_too():
    """Its reading may have opened a path for its runtime."""
    assert fed(reporter(is_public=True), ("expel", HA, HB)) == [("cut_off", HB, "", False)]


def test_an_invitation_beyond_the_limit_is_refused():
    core = reporter(*(f"{HB}{number}" for number in range(MAX_ALLOWED_OBSERVERS)))
    for wanted in (("authorise", HC), ("allow", HA, HC)):
        (refused,) = fed(core, wanted)
        assert refused.code is Code.TOO_LARGE


def test_no_more_wait_for_the_reporter_than_it_can_decide_on():
    core = reporter(HC)
    for number in range(MAX_UNDECIDED):
        assert kinds(subscribe(core, f"{HB}{number}")) == ["ask"]
    (denied,) = subscribe(core, HB)
    assert denied[2] is Code.UNAVAILABLE
    assert kinds(subscribe(core, HC)) == ["grant"]
    fed(core, ("refuse", f"{HB}0", "no", 1))
    assert kinds(subscribe(core, HB)) == ["ask"]
