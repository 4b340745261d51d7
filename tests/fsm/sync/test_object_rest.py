"""What of data objects outlives the process (SYN-25, SYN-28, I-D2, I-D9)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm.engine import Step
from fsm.sync.stored import (
    ChildrenKept,
    CopyKept,
    Forgotten,
    GuestKept,
    HomeKept,
    ObjectKept,
    ObserverKept,
    Rest,
    SessionKept,
)
from specs.bodies.object import ChangeObject, DataObject
from tests.support.chance import examples
from tests.support.lone_report import kinds, lone_report, said, told

URL, ALICE = "comm://a.ex/o", "hyperty://a.ex/alice"
CREATED = DataObject(ALICE, "hyperty-runtime://a.ex/ra", {"n": 0}, URL, schema="s", name="todo")
OBSERVERS = [f"hyperty://b.ex/{name}" for name in ("bob", "carol", "dave")]
MANAGERS = [f"hyperty-runtime://b.ex/{name}/sm" for name in ("rb", "rc")]

who = st.sampled_from(OBSERVERS)
INPUTS = st.one_of(
    st.tuples(st.just("authorise"), who),
    st.tuples(st.sampled_from(["allow", "expel"]), st.just(ALICE), who),
    st.tuples(st.just("subscribe"), who, st.sampled_from(MANAGERS)),
    st.tuples(st.just("accept"), who, st.integers(1, 3)),
    st.tuples(st.just("refuse"), who, st.just("no"), st.integers(1, 3)),
    st.tuples(st.just("unsubscribe"), who, st.sampled_from(MANAGERS)),
    st.tuples(
        st.just("change"),
        st.sampled_from([ALICE, OBSERVERS[0]]),
        st.builds(ChangeObject, st.just(URL), st.sampled_from(["n", "m"]), st.integers(0, 9)),
    ),
)


def seen(reported):
    """What of an object anybody could tell."""
    may = {who: who in reported._allowed for who in OBSERVERS}
    may_not = {who: reported.is_public and who in reported._expelled for who in OBSERVERS}
    managers = {who: reported._subscriptions[who].manager for who in reported.observers}
    return reported.snapshot, managers, may, may_not, reported.is_public


class Stored:
    """A reported object, what is written of it, and what was said before it was written."""

    def __init__(self, *, is_public):
        self.core = lone_report(CREATED, OBSERVERS[2], is_public=is_public)
        self.rest = Rest()
        self.core.begin()
        self.reported = 1
        self.write()

    def write(self):
        kept = self.core.port.kept
        self.rest.follow(kept)
        kept.clear()

    def feed(self, happened):
        done = said(told(self.core, happened))
        self.write()
        published = [one[1].version for one in done if kinds([one]) == ["publish"]]
        self.reported = max([self.reported, *published])

    def crash(self):
        there, guests = self.rest.find(ObjectKept, URL), self.rest.rows(GuestKept, URL)
        allowed = [one.guest for one in guests if one.may]
        expelled = tuple(one.guest for one in guests if not one.may)
        terms = {"expelled": expelled, "is_public": there.is_public}
        self.core = lone_report(there.value, *allowed, **terms)
        return told(self.core, ("restore", tuple(self.rest.rows(ObserverKept, URL))))


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
    stored.feed(("change", ALICE, ChangeObject(URL, "n", 1)))
    assert stored.core.snapshot.version == last + 1


@given(st.lists(INPUTS, max_size=10))
def test_of_a_deleted_object_nothing_stays(inputs):
    stored = Stored(is_public=True)
    stored.rest.follow([ChildrenKept(URL, {"a": 1})])
    for happened in (*inputs, ("delete", ALICE), ("notified",), *inputs):
        stored.feed(happened)
    assert not list(stored.rest)


def test_a_refused_change_writes_nothing():
    stored = Stored(is_public=False)
    told(stored.core, ("change", OBSERVERS[0], ChangeObject(URL, "n", 1)))
    assert stored.core.port.kept == []


@pytest.mark.parametrize(
    "asked",
    [
        ("change", ALICE, ChangeObject(URL, "n", 1)),
        ("subscribe", OBSERVERS[2], MANAGERS[0]),
        ("expel", ALICE, OBSERVERS[2]),
        ("delete", ALICE),
    ],
    ids=lambda asked: asked[0],
)
def test_what_is_said_is_to_be_written_before(asked):
    """SYN-25: what waits for the disk is what follows."""
    said_before, core = [], lone_report(CREATED, OBSERVERS[2])
    core.port.keep = lambda _change: said_before.append(tuple(said(core.port.done)))
    assert said(told(core, asked))
    assert said_before
    assert set(said_before) == {()}


def test_values_beside_objects_are_stored_by_their_own_rule():
    rest = Rest()
    copy = CopyKept(URL, OBSERVERS[0], 3, {"n": 3})
    rest.follow([copy, HomeKept(ALICE, "d"), SessionKept("a.ex", "t"), ObjectKept(URL, CREATED)])
    assert rest.tenants == {ALICE, OBSERVERS[0]}
    gone = (CopyKept, (URL, OBSERVERS[0])), (HomeKept, (ALICE,)), (ObjectKept, (URL,))
    rest.follow([Forgotten(*one) for one in gone])
    rest.follow([ObserverKept(URL, OBSERVERS[0], MANAGERS[0])])
    assert list(rest) == [SessionKept("a.ex", "t")]
