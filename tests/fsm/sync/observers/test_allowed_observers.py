"""Allowances, expulsions and the public, as the reporter's end decides (SYN-11, SYN-18, SYN-21)."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.effects import Refused, RowChanged
from fsm.sync.reporter import ReportedObject
from specs.bodies.object import DataObject
from specs.limits.sync import MAX_ALLOWED_OBSERVERS, MAX_UNDECIDED
from specs.reply_code import Code
from specs.trace import Op
from tests.support.lone_report import ReportPort, kinds, lone_report, said, told

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


def test_only_listed_hyperties_observe_without_a_decision():
    core = reporter(HB)
    assert kinds(subscribe(core)) == ["grant"]
    assert kinds(subscribe(core, HC)) == ["ask"]


def test_the_reporter_of_a_public_object_is_not_asked():
    core = reporter(is_public=True)
    assert kinds(subscribe(core)) == ["grant"]
    assert core.may_read(HC)


def test_an_allowed_observer_reads_before_it_observes():
    core = reporter()
    assert not core.may_read(HB)
    assert fed(core, ("allow", HA, HB)) == []
    assert core.may_read(HB)
    assert not core.may_read(HC)


@pytest.mark.parametrize("wanted", ["allow", "expel"])
def test_only_the_reporter_allows_or_expels(wanted):
    core = reporter(HB)
    subscribe(core)
    for outsider in (HB, HC, SM, URL):
        assert fed(core, (wanted, outsider, HB)) == [
            Refused(Code.FORBIDDEN, "only the reporter may")
        ]
    assert core.observers == (HB,)
    assert core.may_read(HB)


@pytest.mark.parametrize("wanted", ["allow", "expel"])
def test_of_a_deleted_object_no_hyperty_is_allowed_or_expelled(wanted):
    core = reporter(HB)
    fed(core, ("delete", HA))
    (refused,) = fed(core, (wanted, HA, HB))
    assert refused.code is Code.NOT_FOUND


def test_an_expelled_observer_ends_and_loses_its_allowance():
    core = reporter(HB)
    subscribe(core)
    step, row, *effects = told(core, ("expel", HA, HB))
    assert (step.old, step.new, step.cause) == ("active", "removed", "unsubscribe")
    assert row == RowChanged(Op.DEL, "observers", URL, HB, "sm")
    assert effects == [("cut_off", HB, SM, False)]
    assert (core.observers, core.runtimes, core.may_read(HB)) == ((), (), False)
    assert kinds(subscribe(core)) == ["ask"]


def test_of_very_many_expelled_observers_the_last_are_known_after_a_restart():
    """SYN-18, SYN-25: they are stored in the order in which they were expelled."""
    expelled = tuple(f"hyperty://b.ex/{number}" for number in range(MAX_ALLOWED_OBSERVERS + 1))
    created = DataObject(HA, RA, {}, URL)
    core = ReportedObject(created, ReportPort(), expelled=expelled, is_public=True)
    assert not core.may_read(expelled[-1])
    assert core.may_read(expelled[0])


def test_an_observer_expelled_during_the_decision_is_refused():
    core = reporter()
    subscribe(core)
    denied, cut = fed(core, ("expel", HA, HB))
    assert (denied[2], denied[3]) == (Code.FORBIDDEN, "the reporter expelled the observer")
    assert cut == ("cut_off", HB, SM, False)
    assert fed(core, ("accept", HB, 1)) == []


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


def test_a_public_object_asks_about_an_expelled_observer_until_it_is_allowed_again():
    core = reporter(is_public=True)
    subscribe(core)
    fed(core, ("expel", HA, HB))
    assert not core.may_read(HB)
    (asked,) = subscribe(core)
    fed(core, ("refuse", HB, "no", asked[2]), ("allow", HA, HB))
    assert kinds(subscribe(core)) == ["grant"]


def test_the_memory_of_allowed_observers_is_bounded():
    core = reporter(is_public=True)
    for number in range(MAX_ALLOWED_OBSERVERS):
        assert core.do("authorise", f"{HB}{number}") is None
        core.expel(HA, f"{HC}{number}")
    assert core.do("authorise", HB) is not None
    assert core.do("authorise", f"{HB}0") is None
    core.expel(HA, HC)
    assert core.may_read(f"{HC}0")
    assert not core.may_read(HC)


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


# --- any order ------------------------------------------------------------------------------


@attrs.frozen
class Decide:
    """The reporter answers one of the questions it was asked about somebody, or none."""

    who: str
    yes: bool
    back: int

    def reported(self, asked):
        about = [question for _, observer, question in asked if observer == self.who]
        question = about[-1 - self.back] if self.back < len(about) else 0
        return ("accept", self.who, question) if self.yes else ("refuse", self.who, "no", question)


def put_in_order(core, inputs):
    """Call one after the other; yield what it was, and what came of it."""
    asked = []
    for one in inputs:
        happened = one.reported(asked) if isinstance(one, Decide) else one
        effects = told(core, happened)
        yield happened, effects
        asked += [each for each in said(effects) if kinds([each]) == ["ask"]]


WHO = st.sampled_from([HB, HC])
BY = st.sampled_from([HA, HB])
INPUTS = st.one_of(
    st.tuples(st.just("authorise"), WHO),
    st.tuples(st.just("allow"), BY, WHO),
    st.tuples(st.just("expel"), BY, WHO),
    st.tuples(st.just("subscribe"), WHO, st.just(SM)),
    st.builds(Decide, WHO, st.booleans(), st.integers(0, 3)),
    st.tuples(st.just("unsubscribe"), WHO, st.just(SM)),
)


@given(st.lists(INPUTS, max_size=40), st.booleans(), st.booleans())
def test_an_observer_was_always_admitted_after_its_last_expulsion(inputs, is_public, is_listed):
    """I-D9: by an allowance, the reporter's yes to its question, or everybody's right."""
    core = reporter(*([HB] if is_listed else []), is_public=is_public)
    allowed = {HB} if is_listed else set()
    expelled, asked = set(), {}
    for happened, effects in put_in_order(core, inputs):
        match happened:
            case ("authorise", who) | ("allow", "hyperty://a.ex/ha", who):
                allowed.add(who)
                expelled.discard(who)
            case ("expel", "hyperty://a.ex/ha", who):
                allowed.discard(who)
                asked.pop(who, None)
                expelled.add(who)
                assert who not in core.observers
        for effect in said(effects):
            match effect:
                case ("ask", who, question):
                    assert who not in allowed
                    assert not is_public or who in expelled
                    asked[who] = question
                case ("grant", who, *_):
                    is_free = who in allowed or (is_public and who not in expelled)
                    is_decided = happened == ("accept", who, asked.get(who))
                    was_in = happened[0] == "subscribe" and who not in _added(effects)
                    assert is_free or is_decided or was_in
                    asked.pop(who, None)
                case ("deny", who, *_):
                    asked.pop(who, None)


def _added(effects):
    return {each.val for each in effects if isinstance(each, RowChanged) and each.op is Op.ADD}


@given(st.lists(INPUTS, max_size=40))
def test_each_question_has_one_answer_and_each_request_too(inputs):
    core, waiting = reporter(), set()
    for happened, effects in put_in_order(core, [*inputs, ("delete", HA)]):
        if happened[0] == "subscribe":
            waiting.add(happened[1])
        for effect in said(effects):
            if kinds([effect])[0] in {"grant", "deny"}:
                waiting.discard(effect[1])
        if happened[0] in {"allow", "expel"}:
            is_refused = any(isinstance(each, Refused) for each in effects)
            assert is_refused is (happened[1] != HA)
    assert not waiting


def test_no_more_observe_than_may_be_allowed():
    """Also where nobody has to be asked."""
    core = reporter(is_public=True)
    for number in range(MAX_ALLOWED_OBSERVERS):
        assert kinds(subscribe(core, f"{HB}{number}")) == ["grant"]
    (denied,) = subscribe(core, HC)
    assert denied[2] is Code.UNAVAILABLE
