"""A group of changes that could not be made durable leaves no trace in the registry (R13)."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.engine import Step
from fsm.registry import registration
from fsm.registry.records import Answered, By, Create, Find, Read, Search, Touch
from specs.limits.node import MAX_DOMAIN_RECORDS, MAX_RECORDS
from specs.limits.protocol import REGISTRATION_EXPIRES, REGISTRATION_GRAVE
from tests.support.lone_registry import LoneRegistry, leave, tell

URLS = [f"hyperty://a.ex/{n}" for n in range(3)]
USER = "user://idp.ex/bob"


def create(url, by="r1", **more):
    return Create(url, by, by, {"url": url, "runtime": by, "user": USER, **more})


CHANGES = st.one_of(
    st.builds(create, st.sampled_from(URLS), st.sampled_from(["r1", "r2"])),
    st.builds(Touch, st.sampled_from(URLS), st.just("r1"), st.just({"user": "user://idp.ex/eve"})),
    st.builds(Touch, st.sampled_from(URLS), st.just("r1"), st.just({"status": "disconnected"})),
    st.just(leave("r1")),
    st.just(tell.tick()),
)
TIMES = st.sampled_from([0.0, REGISTRATION_EXPIRES, 2 * REGISTRATION_GRAVE])


def seen(core, now):
    """All that anybody can ask."""
    searches = [Find(Search(by, v)) for by, v in [(By.USER, USER), (By.USER, "user://idp.ex/eve")]]
    asked = [*(Read(url) for url in URLS), *searches]
    answers = [shown(core.feed(one, now)) for one in asked]
    return [core.row(url) for url in URLS], answers, len(core)


def shown(effects):
    """An answer; what a search finds comes in no order."""
    (answer,) = effects
    value = answer.value
    found = sorted(one["url"] for one in value) if isinstance(value, list) else value
    return answer.code, found


@given(st.lists(CHANGES, max_size=8), st.lists(st.tuples(CHANGES, TIMES), max_size=8))
def test_after_a_revert_all_is_as_it_was(durable, lost):
    core, twin = LoneRegistry(), LoneRegistry()
    for one in durable:
        core.feed(one, 0.0)
        twin.feed(one, 0.0)
    core.settle()
    for one, now in lost:
        core.feed(one, now)
    core.revert()

    assert seen(core, 1.0) == seen(twin, 1.0)
    for one in (create(URLS[0]), Touch(URLS[1], "r1", {}), leave("r1", "gone")):
        assert steps(core.feed(one, 2.0)) == steps(twin.feed(one, 2.0))


def steps(effects):
    """The key, old and new state of each step. The records of a runtime end in no order."""
    return sorted((one.key, one.old, one.new) for one in effects if isinstance(one, Step))


def test_a_settled_record_is_not_reverted():
    core = LoneRegistry()
    core.feed(create(URLS[0]), 0.0)
    core.settle()
    core.feed(create(URLS[1]), 0.0)
    core.revert()
    assert [core.row(url) is not None for url in URLS] == [True, False, False]


def test_a_record_whose_time_is_over_is_not_read_as_live():
    core = LoneRegistry()
    core.feed(create(URLS[0], expires=60), 0.0)
    (answer,) = core.feed(Read(URLS[0]), 60.0)
    assert (answer.code, answer.value[0]["status"]) == (408, "disconnected")


def test_a_runtime_has_only_so_many_records():
    core = LoneRegistry()
    for number in range(MAX_RECORDS):
        core.feed(create(f"hyperty://a.ex/n{number}"), 0.0)
    assert core.feed(create("hyperty://a.ex/more"), 0.0)[0].code == 413
    assert core.feed(create("hyperty://a.ex/n0"), 0.0)[-1].code == 200
    assert core.feed(create("hyperty://a.ex/more", "r2"), 0.0)[-1].code == 200


def test_a_registry_has_only_so_many_records(monkeypatch):
    monkeypatch.setattr(registration, "MAX_DOMAIN_RECORDS", 2)
    core = LoneRegistry()
    for url in URLS[:2]:
        core.feed(create(url, url), 0.0)
    assert core.feed(create(URLS[2], "r3"), 0.0)[0].code == 503
    assert core.feed(create(URLS[0], URLS[0]), 0.0)[-1].code == 200
    core.feed(leave(URLS[0], "gone"), 0.0)
    core.feed(tell.tick(), 10 * REGISTRATION_EXPIRES + REGISTRATION_GRAVE)
    assert core.feed(create(URLS[2], "r3"), 0.0)[-1].code == 200
    assert MAX_DOMAIN_RECORDS >= 100 * MAX_RECORDS


@pytest.mark.parametrize("handler", ["hyperty-runtime://a.ex/rb/p2phandler/1", "r2/p2phandler/1"])
def test_an_update_cannot_name_the_handler_of_another(handler):
    core = LoneRegistry()
    core.feed(create(URLS[0]), 0.0)
    (answer,) = core.feed(Touch(URLS[0], "r1", {"p2pHandler": handler}), 0.0)
    assert answer == Answered(403, "the P2P handler is not the runtime's own")


CATALOGUE = "hyperty-catalogue://catalogue.a.ex/.well-known"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("p2pHandler", "r1/protostub/1"),
        ("p2pHandler", "r1/p2prequester/1"),
        ("p2pRequester", f"{CATALOGUE}/protocolstub/default"),
        ("p2pRequester", f"{CATALOGUE}/protostub/P2PHandler"),
        ("p2pRequester", f"{CATALOGUE}/hyperty/Chat"),
    ],
)
def test_a_record_cannot_name_a_stub_that_is_known_to_be_of_another_kind(name, value):
    """I-G6, ADR-07, CAT-10: neither when it is made nor later."""
    core = LoneRegistry()
    core.feed(create(URLS[0]), 0.0)
    (changed,) = core.feed(Touch(URLS[0], "r1", {name: value}), 0.0)
    made = create(URLS[1])
    made = attrs.evolve(made, value={**made.value, name: value})
    refused = core.feed(made, 0.0)[-1]
    for answer in (changed, refused):
        assert answer.code == 400
        assert value in answer.why


@pytest.mark.parametrize("name", ["P2PRequester", "P2PRequesterProtoStub"])
def test_a_record_may_name_any_stub_that_may_be_a_requester(name):
    core = LoneRegistry()
    core.feed(create(URLS[0]), 0.0)
    fields = {"p2pHandler": "r1/p2phandler/1", "p2pRequester": f"{CATALOGUE}/protostub/{name}"}
    assert core.feed(Touch(URLS[0], "r1", fields), 0.0)[-1].code == 200


def test_a_lost_end_of_a_record_moves_no_key():
    """The steps of a lost group are reported to nobody, so the next life is the second one."""
    core = LoneRegistry()
    core.feed(create(URLS[1]), 0.0)
    core.feed(Touch(URLS[1], "r1", {"status": "disconnected"}), 0.0)
    core.settle()
    core.feed(tell.tick(), 172800.0)
    core.revert()
    assert steps(core.feed(create(URLS[0]), 2.0)) == [(URLS[0], None, "live")]
