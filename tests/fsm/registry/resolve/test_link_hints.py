"""A sender may say how a link to its receiver is set up; the record has the last word (RES-16)."""

import attrs
import pytest

from fsm.effects import LinkHint, hint_of
from fsm.p2p.dialling import P2pUse
from fsm.registry.resolve.searches import RequesterPlan
from specs.limits.p2p import LINK_HINTS
from specs.message import Message, MessageType
from tests.support.runtime.registry_core import (
    CRQ,
    HB,
    PHB,
    PQ,
    RA,
    RB,
    REACH,
    RECORD,
    S1,
    call,
    with_node,
)

HINT = LinkHint(PHB, CRQ)


def hinted(hint=HINT, to=HB, **kwargs):
    registry = with_node(**kwargs)
    return registry, registry.feed(call.ask(to, REACH, hint=hint))


def refusals(effects):
    return [effect.why for effect in effects if effect.name == "refuse_hint"]


def live(registry):
    registry.feed(call.path_set(PQ), call.stub_deployed(PQ))
    for value in ("created", "in-progress", "live"):
        registry.status(PQ, value)


def test_the_link_is_begun_while_the_record_is_still_read():
    registry, effects = hinted()
    assert effects[1:] == [call.read_record(HB), call.set_path(PQ)]
    assert registry.feed(call.path_set(PQ)) == [call.deploy(PQ, RequesterPlan(RB, PHB, CRQ))]


def test_without_a_hint_nothing_is_begun_before_the_record_is_read():
    _, effects = hinted(None)
    assert effects[1:] == [call.read_record(HB)]


def test_a_hint_sends_no_message_anywhere_until_the_record_confirms_it():
    registry, _ = hinted()
    live(registry)
    assert registry.route() == S1
    confirmed = registry.feed(call.record_read(HB, RECORD))
    assert refusals(confirmed) == []
    assert registry.route() == PQ


OTHER = attrs.evolve(RECORD, p2p_handler=f"{RB}/p2phandler/2")
ELSEWHERE = attrs.evolve(
    RECORD, runtime=RA.replace("ra", "rz"), p2p_handler=None, p2p_requester=None
)


@pytest.mark.parametrize("record", [OTHER, ELSEWHERE, None], ids=["other", "elsewhere", "none"])
@pytest.mark.parametrize("is_up", [True, False], ids=["live", "begun"])
def test_a_hint_that_the_record_does_not_confirm_loses_its_entry(record, is_up):
    registry, _ = hinted()
    if is_up:
        live(registry)
    effects = registry.feed(call.record_read(HB, record))
    (why,) = refusals(effects)
    assert RB in why
    assert call.disconnect(PQ, RB, PQ) in effects
    assert call.undeploy(PQ) in effects
    assert [entry.plan for entry in registry.core.links()] != [RequesterPlan(RB, PHB, CRQ)]
    assert registry.route() == S1


def test_a_link_that_another_record_confirms_is_kept():
    registry, _ = hinted()
    other = "hyperty://b.ex/other"
    registry.ask(other)
    registry.feed(call.record_read(other, attrs.evolve(RECORD, url=other)))
    live(registry)
    assert len(refusals(registry.feed(call.record_read(HB, None)))) == 1
    assert registry.route(other) == PQ
    assert registry.route() == S1


def test_a_wrong_hint_does_not_keep_the_next_link_to_the_same_runtime_away():
    registry, _ = hinted()
    registry.feed(call.record_read(HB, None))
    other = "hyperty://b.ex/other"
    registry.ask(other)
    effects = registry.feed(call.record_read(other, attrs.evolve(RECORD, url=other)))
    assert any(effect.name == "set_path" for effect in effects)


BAD = [
    LinkHint("no address", CRQ),
    LinkHint(PHB, "no address"),
    LinkHint(RB, CRQ),
    LinkHint("hyperty://b.ex/hb", CRQ),
    LinkHint(PHB, CRQ.replace("b.ex", "evil.ex")),
    LinkHint(PHB, CRQ.replace("P2PRequester", "default")),
]


@pytest.mark.parametrize("hint", BAD, ids=str)
def test_a_hint_that_names_no_stubs_of_one_runtime_is_refused_at_once(hint):
    _, effects = hinted(hint)
    assert len(refusals(effects)) == 1
    assert not any(effect.name == "set_path" for effect in effects)
    assert call.read_record(HB) in effects


@pytest.mark.parametrize("use", [P2pUse.NEVER, P2pUse.WHEN_ASKED])
def test_a_hint_sets_up_no_link_that_is_not_wanted(use):
    _, effects = hinted(wanted=use)
    assert not any(effect.name == "set_path" for effect in effects)


def test_a_hint_that_leads_back_here_is_not_followed():
    own = LinkHint(f"{RA}/p2phandler/1", CRQ.replace("b.ex", "a.ex"))
    _, effects = hinted(own)
    assert not any(effect.name == "set_path" for effect in effects)


def test_a_known_record_counts_and_no_hint():
    registry = with_node()
    registry.ask()
    registry.feed(call.record_read(HB, attrs.evolve(RECORD, p2p_handler=None, p2p_requester=None)))
    effects = registry.feed(call.ask(HB, REACH, hint=HINT))
    assert not any(effect.name == "set_path" for effect in effects)


def test_the_number_of_unconfirmed_hints_is_limited():
    registry = with_node()
    begun = []
    for number in range(LINK_HINTS + 5):
        runtime = f"hyperty-runtime://b.ex/r{number}"
        hint = LinkHint(f"{runtime}/p2phandler/1", CRQ)
        effects = registry.feed(call.ask(f"hyperty://b.ex/{number}", REACH, hint=hint))
        begun += [effect for effect in effects if effect.name == "set_path"]
    assert len(begun) == LINK_HINTS


BODIES = [
    ({"p2pHandler": PHB, "p2pRequester": CRQ}, HINT),
    ({"p2pHandler": PHB}, None),
    ({"p2pRequester": CRQ}, None),
    ({"p2pHandler": 7, "p2pRequester": CRQ}, None),
    ({}, None),
]


@pytest.mark.parametrize(("body", "hint"), BODIES)
def test_a_hint_is_two_texts_of_the_body(body, hint):
    assert hint_of(Message(1, MessageType.CREATE, "hyperty://a.ex/1", HB, body)) == hint
