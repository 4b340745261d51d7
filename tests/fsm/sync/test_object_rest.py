"""What of data objects outlives the process (SYN-25, SYN-28, I-D2, I-D9)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fsm.engine import Step
from fsm.sync import reporter_io as core
from fsm.sync.reporter import AllowedObservers, ReporterCore
from fsm.sync.stored import (
    ChildrenKept,
    CopyForgotten,
    CopyKept,
    HomeForgotten,
    HomeKept,
    ObjectForgotten,
    ObjectKept,
    ObserverKept,
    Rest,
    SessionKept,
    asked_for,
    begun,
    kept,
)
from specs.bodies.sync import ChangeObject, DataObject
from tests.support.chance import examples

URL, ALICE = "comm://a.ex/o", "hyperty://a.ex/alice"
CREATED = DataObject(ALICE, "hyperty-runtime://a.ex/ra", {"n": 0}, URL, schema="s", name="todo")
OBSERVERS = [f"hyperty://b.ex/{name}" for name in ("bob", "carol", "dave")]
MANAGERS = [f"hyperty-runtime://b.ex/{name}/sm" for name in ("rb", "rc")]

who = st.sampled_from(OBSERVERS)
INPUTS = st.one_of(
    st.builds(core.Authorised, who),
    st.builds(core.AllowAsked, st.just(ALICE), who),
    st.builds(core.ExpelAsked, st.just(ALICE), who),
    st.builds(core.SubscribeAsked, who, st.sampled_from(MANAGERS)),
    st.builds(core.ReporterAccepted, who),
    st.builds(core.ReporterRefused, who, st.just("no")),
    st.builds(core.UnsubscribeAsked, who, st.sampled_from(MANAGERS)),
    st.builds(
        core.ChangeAsked,
        st.sampled_from([ALICE, OBSERVERS[0]]),
        st.builds(ChangeObject, st.just(URL), st.sampled_from(["n", "m"]), st.integers(0, 9)),
    ),
)


def seen(reported):
    """What of a core anybody could tell."""
    said = {who: reported.guests.said_of(who) for who in OBSERVERS}
    managers = {who: reported._observers.manager_of(who) for who in reported.observers}
    return reported.snapshot, managers, said, reported.guests.is_public


class Stored:
    """A core, what is written of it, and what was said before it was written."""

    def __init__(self, *, is_public):
        self.core = ReporterCore(CREATED, AllowedObservers((OBSERVERS[2],), is_public=is_public))
        self.rest = Rest()
        self.rest.follow(begun(self.core))
        self.reported = 1

    def feed(self, happened):
        before = self.core.snapshot
        effects = self.core.feed(happened)
        self.rest.follow(kept(before, effects, self.core))
        published = [one.change.version for one in effects if isinstance(one, core.Published)]
        self.reported = max([self.reported, *published])

    def crash(self):
        self.core, effects = self.rest.objects[URL].revived()
        return effects


@settings(max_examples=examples(80))
@given(st.booleans(), st.lists(st.lists(INPUTS, max_size=6), max_size=5))
def test_after_a_crash_all_is_as_it_was_reported_and_versions_go_on(is_public, lives):
    stored = Stored(is_public=is_public)
    for inputs in lives:
        for happened in inputs:
            stored.feed(happened)
        before = seen(stored.core)
        effects = stored.crash()
        assert seen(stored.core) == before
        assert stored.core.snapshot.version == stored.reported
        entered = [one.new for one in effects if isinstance(one, Step)]
        assert entered == ["requested", "active"] * len(stored.core.observers)
    last = stored.core.snapshot.version
    stored.feed(core.ChangeAsked(ALICE, ChangeObject(URL, "n", 1)))
    assert stored.core.snapshot.version == last + 1


@given(st.lists(INPUTS, max_size=10))
def test_of_a_deleted_object_nothing_stays(inputs):
    stored = Stored(is_public=True)
    stored.rest.follow([ChildrenKept(URL, {"a": 1})])
    for happened in (*inputs, core.DeleteAsked(ALICE), core.ObserversNotified(), *inputs):
        stored.feed(happened)
    assert stored.rest == Rest()


def test_a_refused_change_writes_nothing():
    stored = Stored(is_public=False)
    before = stored.core.snapshot
    asked = core.ChangeAsked(OBSERVERS[0], ChangeObject(URL, "n", 1))
    assert kept(before, stored.core.feed(asked), stored.core) == []


def test_a_reporter_takes_up_what_has_its_schema_and_name():
    """M-51."""
    other = DataObject(OBSERVERS[0], ALICE, {}, "comm://a.ex/2", schema="s", name="todo")
    unnamed = DataObject(ALICE, ALICE, {}, "comm://a.ex/3", schema="s")
    objects = [CREATED, other, unnamed]
    assert asked_for(objects, ALICE, "s", "todo") == [CREATED]
    assert asked_for(objects, ALICE, "s", None) == [unnamed]
    assert asked_for(objects, ALICE, None, None) == [CREATED, unnamed]
    assert asked_for(objects, ALICE, "t", "todo") == []


def test_values_beside_objects_are_stored_by_their_own_rule():
    rest = Rest()
    copy = CopyKept(URL, OBSERVERS[0], 3, {"n": 3})
    rest.follow([copy, HomeKept(ALICE, "d"), SessionKept("a.ex", "t"), ObjectKept(CREATED)])
    assert rest.tenants == {ALICE, OBSERVERS[0]}
    rest.follow([CopyForgotten(URL, OBSERVERS[0]), HomeForgotten(ALICE), ObjectForgotten(URL)])
    rest.follow([ObserverKept(URL, OBSERVERS[0], MANAGERS[0])])
    assert rest == Rest(sessions={"a.ex": "t"})
