"""The records a runtime follows: one path for all who want to hear of one (REG-16, M-29)."""

import attrs
import pytest

from fsm.effects import Answer
from fsm.registry import record_watch
from fsm.registry.record_watch import (
    Follow,
    Left,
    NodeForgot,
    RecordWatch,
    RenewWatch,
    SetWatch,
    Unfollow,
    Unwatch,
    UnwatchRecord,
    Watch,
    WatchRemoved,
    WatchSet,
)
from specs.message import refuse, reply_to
from specs.reply_code import Code
from tests.support.wire.wire import A, B, ask

HB = "hyperty://b.ex/hb"
YES, NO = reply_to(ask(9), Code.OK), refuse(ask(9), Code.FORBIDDEN, "the node will not")


def watch(id_=1, by=A):
    return Watch(ask(id_, from_=by), HB)


def unwatch(id_=2, by=A):
    return Unwatch(ask(id_, from_=by), HB)


def ok(wanted):
    return Answer(reply_to(wanted.request, Code.OK))


@pytest.fixture
def core():
    return RecordWatch()


@pytest.fixture
def set_up(core):
    core.feed(watch())
    core.feed(WatchSet(HB, YES))
    return core


def test_the_listeners_come_before_the_path_and_the_answer_after_it(core):
    assert core.feed(watch()) == [Follow(HB, None), Follow(HB, A), SetWatch(HB)]
    assert core.feed(WatchSet(HB, YES)) == [ok(watch())]
    assert HB in core


def test_a_second_watcher_shares_the_path(set_up):
    assert set_up.feed(watch(3, B)) == [Follow(HB, B), ok(watch(3, B))]
    assert set_up.feed(unwatch()) == [Unfollow(HB, A), ok(unwatch())]


def test_a_follower_that_joins_during_the_set_up_of_a_path_waits_for_it(core):
    core.feed(watch())
    assert core.feed(watch(3, B)) == [Follow(HB, B)]
    assert core.feed(WatchSet(HB, YES)) == [ok(watch()), ok(watch(3, B))]


def test_asked_twice_it_is_answered_twice_and_followed_once(set_up):
    assert set_up.feed(watch(3)) == [ok(watch(3))]


@pytest.mark.parametrize("end", [unwatch(), Left(A)])
def test_the_last_leaving_follower_removes_the_path(set_up, end):
    effects = set_up.feed(end)
    assert effects[:2] == [Unfollow(HB, A), UnwatchRecord(HB)]
    assert set_up.feed(WatchRemoved(HB)) == [Unfollow(HB, None)]
    assert HB not in set_up


def test_a_component_without_subscription_can_unsubscribe(core):
    assert core.feed(unwatch()) == [ok(unwatch())]
    assert core.feed(Left(A)) == []


def test_a_follower_that_joins_during_the_removal_of_a_path_has_it_set_again(set_up):
    set_up.feed(unwatch())
    assert set_up.feed(watch(3)) == [Follow(HB, A)]
    assert set_up.feed(WatchRemoved(HB)) == [SetWatch(HB)]
    assert set_up.feed(WatchSet(HB, YES)) == [ok(watch(3))]


def test_a_follower_that_leaves_during_the_set_up_is_refused_and_the_path_removed(core):
    core.feed(watch())
    unfollow, refused, done = core.feed(unwatch())
    assert (unfollow, refused.message.code, done) == (Unfollow(HB, A), Code.GONE, ok(unwatch()))
    assert core.feed(WatchSet(HB, YES)) == [UnwatchRecord(HB)]


def test_a_node_that_refuses_leaves_nothing_behind(core):
    core.feed(watch())
    unfollow, refused, last = core.feed(WatchSet(HB, NO))
    assert (unfollow, last) == (Unfollow(HB, A), Unfollow(HB, None))
    assert refused.message.code == Code.FORBIDDEN
    assert refused.message.body["description"] == "the node will not"
    assert HB not in core


def test_an_unknown_code_is_passed_on_as_an_internal_error(core):
    core.feed(watch())
    _, refused, _ = core.feed(WatchSet(HB, attrs.evolve(YES, body={"code": 418})))
    assert refused.message.code == Code.INTERNAL


def test_a_path_a_node_forgot_is_set_again_for_the_same_watchers(set_up):
    assert set_up.feed(NodeForgot(frozenset({HB}))) == [RenewWatch(HB)]
    assert set_up.feed(NodeForgot(frozenset({HB}))) == []
    assert set_up.feed(WatchSet(HB, YES)) == []
    assert set_up.feed(NodeForgot(frozenset())) == []


def test_watchers_outlast_a_renewal_in_vain(set_up):
    set_up.feed(NodeForgot(frozenset({HB})))
    assert set_up.feed(WatchSet(HB, NO)) == []
    assert set_up.feed(NodeForgot(frozenset({HB}))) == [RenewWatch(HB)]
    assert set_up.feed(WatchSet(HB, NO)) == []
    assert set_up.feed(Left(A)) == [Unfollow(HB, A), Unfollow(HB, None)]


def test_a_runtime_follows_only_so_many(monkeypatch, core):
    monkeypatch.setattr(record_watch, "_CAPACITY", 1)
    core.feed(watch())
    (refused,) = core.feed(Watch(ask(3), "hyperty://b.ex/another"))
    assert refused.message.code == Code.TOO_LARGE
