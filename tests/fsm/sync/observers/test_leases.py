"""Subscriptions that last a time: both ends' clocks, and the reporter's core (SYN-20)."""

import math

from hypothesis import given
from hypothesis import strategies as st

from fsm.engine import Step
from fsm.sync.leases import RenewalsCore
from fsm.sync.stored import ObserverKept
from specs.bodies.object import DataObject
from specs.limits.sync import LEASE_SLACK
from tests.support.lone_report import kinds, lone_report, said, told

HA, HB, SM = "hyperty://a.ex/ha", "hyperty://b.ex/hb", "hyperty-runtime://b.ex/rb/sm"
URL = "comm://a.ex/o"
LIFE = 60
ASKED = ("subscribe", HB, SM, LIFE)
RENEWED = {"renewed": True, "lease": LIFE}


def observed(asked=ASKED):
    core = lone_report(DataObject(HA, "hyperty-runtime://a.ex/ra", {}, URL))
    told(core, ("allow", HA, HB))
    told(core, asked)
    return core


def causes(effects):
    return [one.cause for one in effects if isinstance(one, Step)]


# --- the reporter's core


def test_a_grant_says_how_long_it_lasts():
    core = lone_report(DataObject(HA, "hyperty-runtime://a.ex/ra", {}, URL))
    told(core, ("allow", HA, HB))
    granted = told(core, ASKED)[-1]
    assert granted == ("grant", HB, core.snapshot, {"lease": LIFE})
    assert (core.deadline(), core.lease_of(HB)) == (LIFE, LIFE)
    assert core.observers == (HB,)


def test_a_renewal_shows_the_object_only_to_observers_with_another_version():
    core = observed()
    step, renewed = told(core, ("subscribe", HB, SM, LIFE, 1))
    assert (step.cause, renewed) == ("renew", ("grant", HB, None, RENEWED))
    step, granted = told(core, ("subscribe", HB, SM, LIFE, 2))
    assert (step.cause, granted) == ("renew", ("grant", HB, core.snapshot, RENEWED))
    assert core.snapshot.version == 1


def test_a_renewal_by_another_sync_manager_or_for_another_time_is_shown_the_object():
    """So that a store has it, too."""
    for asked in (("subscribe", HB, SM, 30, 1), ("subscribe", HB, f"{SM}2", LIFE, 1)):
        (granted,) = said(told(observed(), asked))
        assert granted[2] is not None


def test_an_observer_without_renewal_ends_and_may_ask_again():
    core = observed()
    over = told(core, ("wait", LIFE))
    assert causes(over) == ["expire"]
    assert ("cut_off", HB, SM, True) in over
    assert (core.observers, core.deadline()) == ((), math.inf)
    again = told(core, ("subscribe", HB, SM, LIFE, 1))
    assert again[-1] == ("grant", HB, core.snapshot, {"lease": LIFE})


def test_an_expelled_observer_does_not_resume_and_may_ask_like_a_new_one():
    core = observed()
    told(core, ("expel", HA, HB))
    (denied,) = told(core, ("subscribe", HB, SM, LIFE, 1))
    assert denied[2] == 403
    assert kinds(told(core, ASKED)) == ["ask"]


def test_an_observer_without_leases_has_none():
    core = observed(("subscribe", HB, SM))
    assert (core.lease_of(HB), told(core, ("wait", 10 * LIFE))) == (None, [])
    assert core.observers == (HB,)
    assert causes(told(core, ("subscribe", HB, SM))) == []


def test_a_resumed_subscription_keeps_its_lease():
    core = lone_report(DataObject(HA, "hyperty-runtime://a.ex/ra", {}, URL))
    core.do("restore", [ObserverKept(URL, HB, SM, LIFE)])
    assert (core.lease_of(HB), core.deadline()) == (LIFE, LIFE)


# --- the reporter's clock


def test_a_lease_is_over_after_its_life_unless_it_begins_anew():
    core = observed()
    told(core, ("wait", 30), ASKED)
    assert told(core, ("wait", 30)) == []
    assert core.deadline() == 30 + LIFE
    assert causes(told(core, ("wait", 30))) == ["expire"]


def test_a_lease_that_ended_is_not_over_later():
    core = observed()
    told(core, ("unsubscribe", HB, SM))
    assert (core.deadline(), told(core, ("wait", LIFE))) == (math.inf, [])


def test_after_a_leap_of_the_clock_there_is_time_for_one_renewal():
    core = observed()
    woken = 10_000.0
    assert told(core, ("wait", woken)) == []
    assert core.deadline() == woken + LIFE / 3
    assert causes(told(core, ("wait", LIFE / 3))) == ["expire"]


def test_a_little_late_is_no_leap():
    assert causes(told(observed(), ("wait", LIFE + LEASE_SLACK))) == ["expire"]


# --- the observer's clock


@given(chance=st.floats(0, 1), life=st.integers(1, 10_000))
def test_a_renewal_is_due_at_about_a_third_of_the_life(chance, life):
    renewals = RenewalsCore()
    renewals.granted(URL, HB, life, (0, chance))
    assert life / 4 - 1e-9 <= renewals.deadline() <= life / 3 + 1e-9
    assert renewals.due(renewals.deadline()) == [(URL, HB)]
    assert renewals.deadline() == math.inf


@given(chances=st.lists(st.floats(0, 1), min_size=1, max_size=8), life=st.integers(1, 10_000))
def test_one_that_is_not_answered_is_made_again_before_the_lease_is_over(chances, life):
    renewals = RenewalsCore()
    now = 0.0
    renewals.granted(URL, HB, life, (now, 0))
    for chance in chances:
        before, now = now, renewals.deadline()
        assert before < now
        assert renewals.due(now) == [(URL, HB)]
        renewals.unanswered(URL, HB, (now, chance))
        assert renewals.deadline() - now <= life / 12 + 1e-6
    assert len(chances) > 7 or now < life


def test_lasting_and_ended_subscriptions_are_not_renewed():
    renewals = RenewalsCore()
    renewals.granted(URL, HB, LIFE, (0, 0))
    renewals.granted(URL, HB, math.inf, (1, 0))
    assert (len(renewals), renewals.deadline()) == (0, math.inf)
    renewals.granted(URL, HB, LIFE, (0, 0))
    renewals.ended(URL, HB)
    renewals.unanswered(URL, HB, (1, 0))
    assert (len(renewals), renewals.deadline()) == (0, math.inf)


def test_a_renewal_that_was_answered_is_due_by_its_last_answer():
    renewals = RenewalsCore()
    renewals.granted(URL, HB, LIFE, (0, 0))
    renewals.granted(URL, HB, LIFE, (15, 0))
    assert renewals.due(20) == []
    assert renewals.deadline() == 35
