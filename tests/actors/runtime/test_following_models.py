"""Models of an application go along with links, stubs and objects, and can break none."""

import pytest
import trio
import trio.testing

import actors
from actors.hyperties import Caller
from actors.kit.counters import Counters
from actors.kit.supervision.supervisor import open_supervisor
from actors.runtime.following import Followers, StepFeed
from actors.runtime.hop_trace import HopTrace
from fsm.engine import Entity
from fsm.machines.sync.observer_copy import OBSERVER_COPY, Condition, Trigger
from specs.identity import SenderIdentity
from specs.limits import protocol as limits
from specs.message import Message, MessageType
from specs.reply_code import Code
from tests.support.trace.memory import MemoryTracer
from transports.link import Kind

OBJECT, OBSERVER = "comm://a.example/o", "hyperty://a.example/h"


class Model:
    """Keeps what it is called with."""

    def __init__(self, key):
        self.key = key
        self.heard = []

    def on_enter_live(self, event):
        self._hear("live", event)

    def on_exit_live(self, event):
        self._hear("not live", event)

    def on_enter_in_progress(self, event):
        self._hear("in-progress", event)

    def _hear(self, what, event):
        step = event.kwargs["step"]
        self.heard.append((what, step.cause))


class Awaited(Model):
    is_live = trio.Event()

    def on_enter_live(self, event):
        super().on_enter_live(event)
        self.is_live.set()


class Failing(Model):
    def on_exit_live(self, event):
        super().on_exit_live(event)
        raise RuntimeError("not my day")


class Sluggish(Model):
    async def on_enter_live(self, event):
        """Never awaited."""


@pytest.fixture
async def feed():
    return StepFeed(MemoryTracer())


@pytest.fixture
async def followers(feed):
    async with open_supervisor("followers") as supervisor:
        yield Followers(feed, supervisor)


@pytest.fixture
def copy():
    return Entity(OBSERVER_COPY, f"{OBJECT}|{OBSERVER}")


def reported(feed, entity, *triggers, given=frozenset()):
    for trigger in triggers:
        feed.step("sm", entity.step(trigger, given=given))


async def test_a_model_follows_a_direct_link(protofly_domain, autojump_clock):
    async with protofly_domain("ra", "rb", kinds=(Kind.TCP,)) as domain:
        there = domain["rb"].url
        links = await domain["ra"].follow("p2p_connection", Awaited, about=there)
        stubs = await domain["ra"].follow("stub_connection", Model)
        outsiders = await domain["ra"].follow(
            "p2p_connection", Model, about="hyperty-runtime://b/x"
        )
        caller, other = [await domain[one].deploy(Caller) for one in ("ra", "rb")]
        await caller.request(other.url, 1)
        await Awaited.is_live.wait()
        (link,) = links.models.values()
        assert link.heard == [("in-progress", "object-returned"), ("live", "established")]
        assert domain["ra"].url in link.key
        assert there in link.key
        assert [stub.state for stub in stubs.models.values()] == ["live"] * len(stubs.models)
    assert (link.state, link.heard[-1]) == ("disconnected", ("not live", "closed"))
    assert outsiders.models == {}
    assert links.missed == links.errors == 0


async def test_a_model_begins_where_the_first_step_that_is_seen_begins(feed, followers, copy):
    reported(feed, copy, Trigger.OBSERVE)
    following = await followers.follow("observer_copy", Model, OBJECT)
    reported(feed, copy, Trigger.SNAPSHOT)
    await trio.testing.wait_all_tasks_blocked()
    (model,) = following.models.values()
    assert (model.state, model.heard) == ("live", [("live", "snapshot")])


async def test_a_model_goes_where_a_guard_led_its_entity(feed, followers, copy):
    following = await followers.follow("observer_copy", Model)
    reported(feed, copy, Trigger.OBSERVE, Trigger.SNAPSHOT)
    reported(feed, copy, Trigger.CHANGED, given={Condition.GAP})
    await following.stop()
    (model,) = following.models.values()
    assert (model.state, model.heard[-1]) == ("stale", ("not live", "changed"))


async def test_a_model_that_fails_fails_alone_and_goes_on(feed, followers, copy, caplog):
    failing = await followers.follow("observer_copy", Failing)
    other = await followers.follow("observer_copy", Model)
    reported(feed, copy, Trigger.OBSERVE, Trigger.SNAPSHOT, Trigger.DELETED)
    await trio.testing.wait_all_tasks_blocked()
    assert [one.state for one in failing.models.values()] == ["deleted"]
    assert [len(one.heard) for one in other.models.values()] == [2]
    assert (failing.errors, other.errors) == (1, 0)
    assert "not my day" in caplog.text


@pytest.mark.parametrize("make", [lambda key: 1 / 0, Sluggish, lambda key: object()])
async def test_an_invalid_model_is_logged_and_counted(feed, followers, copy, make):
    following = await followers.follow("observer_copy", make)
    reported(feed, copy, Trigger.OBSERVE)
    await following.stop()
    assert following.errors == 1


async def test_steps_that_come_too_fast_are_counted_and_the_model_catches_up(feed, followers, copy):
    following = await followers.follow("observer_copy", Model)
    reported(feed, copy, Trigger.OBSERVE, Trigger.SNAPSHOT)
    reported(feed, copy, *[Trigger.CHANGED] * limits.MAILBOX, Trigger.DELETED)
    assert following.missed == 2
    await trio.testing.wait_all_tasks_blocked()
    reported(feed, Entity(OBSERVER_COPY, copy.key), Trigger.OBSERVE)
    await following.stop()
    assert [one.state for one in following.models.values()] == ["syncing"]


async def test_an_entity_that_begins_anew_has_another_model(feed, followers, copy):
    made = []
    following = await followers.follow("observer_copy", lambda key: made.append(key) or Model(key))
    reported(feed, copy, Trigger.OBSERVE, Trigger.DELETED)
    reported(feed, Entity(OBSERVER_COPY, copy.key), Trigger.OBSERVE)
    await following.stop()
    assert made == [copy.key] * 2
    assert list(following.models) == [copy.key]


async def test_a_stopped_model_follows_no_more_steps(feed, followers, copy):
    async with await followers.follow("observer_copy", Model) as following:
        reported(feed, copy, Trigger.OBSERVE)
    reported(feed, copy, Trigger.SNAPSHOT)
    await following.stop()
    assert [one.state for one in following.models.values()] == ["syncing"]
    assert following.missed == 0


async def test_models_of_what_is_over_are_not_kept_for_ever(feed, followers, monkeypatch):
    monkeypatch.setattr("actors.runtime.following.MODELS_FOLLOWING", 2)
    following = await followers.follow("observer_copy", Model)
    for key, triggers in {"a": [], "b": [Trigger.DELETED], "c": [], "d": []}.items():
        reported(feed, Entity(OBSERVER_COPY, key), Trigger.OBSERVE, *triggers)
    await following.stop()
    assert list(following.models) == ["a", "c", "d"]


async def test_following_does_not_change_the_trace(copy):
    plain, fed = MemoryTracer(), MemoryTracer()
    step = copy.step(Trigger.OBSERVE)
    for tracer in (plain, StepFeed(fed)):
        tracer.step("sm", step)
    assert plain.records == fed.records


async def test_a_denied_message_names_its_user_in_a_trace_with_names():
    sender = SenderIdentity("hyperty-runtime://a.example/ra", "user://idp.example/alice")
    message = Message(1, MessageType.READ, OBSERVER, OBJECT, identity=sender)
    tracer = MemoryTracer(names=True)
    HopTrace(StepFeed(tracer), "bus", Counters()).record_denial(message, "ra", Code.FORBIDDEN, "no")
    assert {fact.user for fact in tracer.facts} == {"user://idp.example/alice"}


async def test_no_machine_of_that_name_can_be_followed(followers):
    with pytest.raises(actors.UnknownMachineError, match="nearest is 'p2p_connection'"):
        await followers.follow("p2p_conection", Model)
    with pytest.raises(ValueError, match="only where a trace is kept"):
        await followers.follow("transaction", Model)
