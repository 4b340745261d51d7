"""A sender may say how a link to its receiver is set up; the record has the last word (RES-16)."""

import attrs
import pytest

from fsm.effects import LinkHint, hint_of
from fsm.registry.resolve.searches import RequesterPlan
from specs.message import Message, MessageType
from tests.support.runtime.registry_core import CRQ, HB, PHB, PQ, RB, REACH, RECORD, call, with_node

HINT = LinkHint(PHB, CRQ)


def hinted(hint=HINT, to=HB, **kwargs):
    registry = with_node(**kwargs)
    return registry, registry.feed(call.ask(to, REACH, hint=hint))


def refusals(effects):
    return [effect.why for effect in effects if effect.name == "refuse_hint"]


def test_the_link_is_begun_while_the_record_is_still_read():
    registry, effects = hinted()
    assert effects[1:] == [call.read_record(HB), call.set_path(PQ)]
    assert registry.feed(call.path_set(PQ)) == [call.deploy(PQ, RequesterPlan(RB, PHB, CRQ))]


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
