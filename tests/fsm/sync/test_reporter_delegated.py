"""The reporter's end of an object that is handed over: it stands still, or goes on (SYN-26)."""

from fsm.effects import Refused
from fsm.engine import Step
from fsm.machines.sync.object_subscription import OBJECT_SUBSCRIPTION, Trigger
from fsm.sync.delegation import Watcher
from fsm.sync.reporter import AllowedObservers, ReporterCore
from fsm.sync.reporter_io import (
    Authorised,
    ChangeAsked,
    DelegatedTo,
    DeleteAsked,
    Denied,
    Granted,
    Held,
    Published,
    Released,
    ReporterAsked,
    SubscribeAsked,
    UnsubscribeAsked,
)
from specs.bodies.sync import Change, ChangeObject, DataObject
from specs.reply_code import Code

URL, HA, HB, HC = "comm://a.ex/o", "hyperty://a.ex/ha", "hyperty://b.ex/hb", "hyperty://a.ex/hc"
RUNTIME, SM = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb/sm"
SET = ChangeObject(URL, "t", 1)


def reporter():
    core = ReporterCore(DataObject(HA, RUNTIME, {"t": 0}, URL, 7))
    core.feed(Authorised(HB))
    core.feed(SubscribeAsked(HB, SM))
    return core


def kinds(effects, *wanted):
    return [one for one in effects if isinstance(one, wanted)]


def test_while_an_object_is_held_nothing_changes_and_no_observer_joins():
    core = reporter()
    assert core.feed(Held()) == []
    for happened in (ChangeAsked(HA, SET), DeleteAsked(HA)):
        assert [one.code for one in kinds(core.feed(happened), Refused)] == [Code.UNAVAILABLE]
    (denied,) = core.feed(SubscribeAsked(HC, SM))
    assert (type(denied), denied.code) == (Denied, Code.UNAVAILABLE)
    assert (core.snapshot.version, core.observers) == (7, (HB,))


def test_while_an_object_is_held_no_observer_leaves_and_none_is_invited():
    """Who goes to the new end is known already."""
    core = reporter()
    core.feed(Held())
    for happened in (UnsubscribeAsked(HB, SM), Authorised(HC)):
        (refused,) = core.feed(happened)
        assert (type(refused), refused.code) == (Refused, Code.UNAVAILABLE)
    assert core.handed().watchers == (Watcher(HB, SM),)
    assert HC not in core.handed().authorised
    core.feed(Released())
    assert kinds(core.feed(UnsubscribeAsked(HB, SM)), Step)
    assert core.observers == ()


def test_an_absent_observer_may_unsubscribe_while_the_object_is_held():
    core = reporter()
    core.feed(Held())
    assert core.feed(UnsubscribeAsked(HC, SM)) == []


def test_an_observer_that_waits_for_the_reporter_must_ask_again():
    core = reporter()
    assert kinds(core.feed(SubscribeAsked(HC, SM)), ReporterAsked)
    (denied,) = kinds(core.feed(Held()), Denied)
    assert (denied.observer, denied.code) == (HC, Code.UNAVAILABLE)


def test_released_it_goes_on_as_before():
    core = reporter()
    core.feed(Held())
    core.feed(Released())
    assert kinds(core.feed(ChangeAsked(HA, SET)), Published)
    assert kinds(core.feed(SubscribeAsked(HB, SM)), Granted)


def test_another_component_of_the_runtime_goes_on_with_the_next_version():
    core = reporter()
    (published,) = core.feed(DelegatedTo(HC))
    assert published == Published(Change(8, value={"t": 0}, source=HC))
    assert kinds(core.feed(ChangeAsked(HA, SET)), Refused)
    (published,) = core.feed(ChangeAsked(HC, SET))
    assert (published.change.version, published.change.source) == (9, HC)


def test_another_runtime_goes_on_with_all_that_is_known_of_it():
    old = reporter()
    handed = old.handed()
    assert handed.watchers == (Watcher(HB, SM),)
    new = ReporterCore(handed.thing, AllowedObservers(handed.authorised, is_public=handed.public))
    taken = new.take(handed.watchers, HC)
    (published,) = kinds(taken, Published)
    assert (published.change.version, published.change.source) == (8, HC)
    assert (new.observers, new.runtimes) == (old.observers, old.runtimes)
    given = old.give()
    assert old.observers == ()
    moves = [(one.old, one.cause, one.new) for one in kinds([*given, *taken], Step)]
    rows = [row for row in OBJECT_SUBSCRIPTION.rows if row.trigger.endswith("-over")]
    assert {(row.source, row.trigger, row.target) for row in rows} <= {*moves}
    assert {row.trigger for row in rows} == {Trigger.HAND_OVER, Trigger.TAKE_OVER}
