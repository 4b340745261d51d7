"""Allowances, expulsions and the public, as the reporter's end decides (SYN-11, SYN-18, SYN-21)."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.effects import RowChanged
from fsm.engine import Step
from fsm.sync.reporter import AllowedObservers, ReporterCore
from fsm.sync.reporter_io import (
    AllowAsked,
    Authorised,
    CutOff,
    DeleteAsked,
    Denied,
    ExpelAsked,
    Granted,
    Obeyed,
    Question,
    Refused,
    ReporterAccepted,
    ReporterAsked,
    ReporterRefused,
    SubscribeAsked,
    UnsubscribeAsked,
)
from specs.bodies.sync import DataObject
from specs.limits.sync import MAX_ALLOWED_OBSERVERS, MAX_UNDECIDED
from specs.reply_code import Code
from specs.trace import Op

HA, HB, HC = (f"hyperty://a.ex/{name}" for name in ("ha", "hb", "hc"))
RA = "hyperty-runtime://a.ex/ra"
SM = "hyperty-runtime://b.ex/rb/sm"
URL = "comm://a.ex/o"


def reporter(*allowed, is_public=False):
    return ReporterCore(DataObject(HA, RA, {}, URL), AllowedObservers(allowed, is_public=is_public))


def said(effects):
    return [each for each in effects if not isinstance(each, Step | RowChanged)]


def fed(core, *inputs):
    return [effect for one in inputs for effect in said(core.feed(one))]


def subscribe(core, observer=HB):
    return said(core.feed(SubscribeAsked(observer, SM)))


def yes_to(asked):
    return ReporterAccepted(asked.observer, asked.question)


def no_to(asked):
    return ReporterRefused(asked.observer, "no", asked.question)


def test_only_listed_hyperties_observe_without_a_decision():
    core = reporter(HB)
    assert isinstance(subscribe(core)[0], Granted)
    assert isinstance(subscribe(core, HC)[0], ReporterAsked)


def test_the_reporter_of_a_public_object_is_not_asked():
    core = reporter(is_public=True)
    assert isinstance(subscribe(core)[0], Granted)
    assert core.may_read(HC)


def test_an_allowed_observer_reads_before_it_observes():
    core = reporter()
    assert not core.may_read(HB)
    assert fed(core, AllowAsked(HA, HB)) == [Obeyed()]
    assert core.may_read(HB)
    assert not core.may_read(HC)


@pytest.mark.parametrize("wanted", [AllowAsked, ExpelAsked])
def test_only_the_reporter_allows_or_expels(wanted):
    core = reporter(HB)
    subscribe(core)
    for outsider in (HB, HC, SM, URL):
        assert fed(core, wanted(outsider, HB)) == [Refused(Code.FORBIDDEN, "only the reporter may")]
    assert core.observers == (HB,)
    assert core.may_read(HB)


@pytest.mark.parametrize("wanted", [AllowAsked, ExpelAsked])
def test_of_a_deleted_object_no_hyperty_is_allowed_or_expelled(wanted):
    core = reporter(HB)
    fed(core, DeleteAsked(HA))
    (refused,) = fed(core, wanted(HA, HB))
    assert refused.code is Code.NOT_FOUND


def test_an_expelled_observer_ends_and_loses_its_allowance():
    core = reporter(HB)
    subscribe(core)
    step, row, *effects = core.feed(ExpelAsked(HA, HB))
    assert (step.old, step.new, step.cause) == ("active", "removed", "unsubscribe")
    assert row == RowChanged(Op.DEL, "observers", URL, HB, "sm")
    assert effects == [CutOff(HB, SM), Obeyed()]
    assert (core.observers, core.runtimes, core.may_read(HB)) == ((), (), False)
    assert isinstance(subscribe(core)[0], ReporterAsked)


def test_an_observer_expelled_during_the_decision_is_refused():
    core = reporter()
    subscribe(core)
    denied, cut, obeyed = fed(core, ExpelAsked(HA, HB))
    assert (denied.code, denied.why) == (Code.FORBIDDEN, "the reporter expelled the observer")
    assert (cut, obeyed) == (CutOff(HB, SM), Obeyed())
    assert fed(core, ReporterAccepted(HB, Question(1, 1))) == []


@pytest.mark.parametrize("decide", [yes_to, no_to])
def test_a_decision_is_about_the_question_it_answers_and_no_later_one(decide):
    core = reporter()
    (before,) = subscribe(core)
    fed(core, ExpelAsked(HA, HB))
    (after,) = subscribe(core)
    assert fed(core, decide(before)) == []
    assert not core.may_read(HB)
    assert len(fed(core, decide(after))) == 1


def test_an_expelled_reader_is_cut_off_too():
    """Its reading may have opened a path for its runtime."""
    assert fed(reporter(is_public=True), ExpelAsked(HA, HB)) == [CutOff(HB), Obeyed()]


def test_a_public_object_asks_about_an_expelled_observer_until_it_is_allowed_again():
    core = reporter(is_public=True)
    subscribe(core)
    fed(core, ExpelAsked(HA, HB))
    assert not core.may_read(HB)
    (asked,) = subscribe(core)
    fed(core, ReporterRefused(HB, "no", asked.question), AllowAsked(HA, HB))
    assert isinstance(subscribe(core)[0], Granted)


def test_the_memory_of_allowed_observers_is_bounded():
    guests = AllowedObservers(is_public=True)
    for number in range(MAX_ALLOWED_OBSERVERS):
        assert guests.allow(f"{HB}{number}")
        guests.expel(f"{HC}{number}")
    assert not guests.allow(HB)
    assert guests.allow(f"{HB}0")
    guests.expel(HC)
    assert guests.welcome(f"{HC}0") == "public"
    assert guests.welcome(HC) == ""


def test_an_invitation_beyond_the_limit_is_refused():
    core = reporter(*(f"{HB}{number}" for number in range(MAX_ALLOWED_OBSERVERS)))
    for wanted in (Authorised(HC), AllowAsked(HA, HC)):
        (refused,) = fed(core, wanted)
        assert refused.code is Code.TOO_LARGE


def test_no_more_wait_for_the_reporter_than_it_can_decide_on():
    core = reporter(HC)
    for number in range(MAX_UNDECIDED):
        assert isinstance(subscribe(core, f"{HB}{number}")[0], ReporterAsked)
    (denied,) = subscribe(core, HB)
    assert isinstance(denied, Denied)
    assert denied.code is Code.UNAVAILABLE
    assert isinstance(subscribe(core, HC)[0], Granted)
    fed(core, ReporterRefused(f"{HB}0", "no", Question(1, 1)))
    assert isinstance(subscribe(core, HB)[0], ReporterAsked)


# --- any order ------------------------------------------------------------------------------


@attrs.frozen
class Decide:
    """The reporter answers one of the questions it was asked about somebody, or none."""

    who: str
    yes: bool
    back: int

    def reported(self, asked):
        about = [one.question for one in asked if one.observer == self.who]
        question = about[-1 - self.back] if self.back < len(about) else Question(0, 0)
        if self.yes:
            return ReporterAccepted(self.who, question)
        return ReporterRefused(self.who, "no", question)


def put_in_order(core, inputs):
    """Feed one after the other; yield what it was, and what came of it."""
    asked = []
    for one in inputs:
        happened = one.reported(asked) if isinstance(one, Decide) else one
        effects = core.feed(happened)
        yield happened, effects
        asked += [each for each in effects if isinstance(each, ReporterAsked)]


WHO = st.sampled_from([HB, HC])
INPUTS = st.one_of(
    st.builds(Authorised, WHO),
    st.builds(AllowAsked, st.sampled_from([HA, HB]), WHO),
    st.builds(ExpelAsked, st.sampled_from([HA, HB]), WHO),
    st.builds(SubscribeAsked, WHO, st.just(SM)),
    st.builds(Decide, WHO, st.booleans(), st.integers(0, 3)),
    st.builds(UnsubscribeAsked, WHO, st.just(SM)),
)


@given(st.lists(INPUTS, max_size=40), st.booleans(), st.booleans())
def test_an_observer_was_always_admitted_after_its_last_expulsion(inputs, is_public, is_listed):
    """I-D9: by an allowance, the reporter's yes to its question, or everybody's right."""
    core = reporter(*([HB] if is_listed else []), is_public=is_public)
    allowed = {HB} if is_listed else set()
    expelled, asked = set(), {}
    for happened, effects in put_in_order(core, inputs):
        match happened:
            case Authorised(who) | AllowAsked("hyperty://a.ex/ha", who):
                allowed.add(who)
                expelled.discard(who)
            case ExpelAsked("hyperty://a.ex/ha", who):
                allowed.discard(who)
                asked.pop(who, None)
                expelled.add(who)
                assert who not in core.observers
        for effect in effects:
            match effect:
                case ReporterAsked(who, _, question):
                    assert who not in allowed
                    assert not is_public or who in expelled
                    asked[who] = question
                case Granted(who):
                    is_free = who in allowed or (is_public and who not in expelled)
                    is_yes = isinstance(happened, ReporterAccepted)
                    is_decided = is_yes and asked.get(who) == happened.question
                    was_in = isinstance(happened, SubscribeAsked) and who not in _added(effects)
                    assert is_free or is_decided or was_in
                    asked.pop(who, None)
                case Denied(who):
                    asked.pop(who, None)


def _added(effects):
    return {each.val for each in effects if isinstance(each, RowChanged) and each.op is Op.ADD}


@given(st.lists(INPUTS, max_size=40))
def test_each_question_has_one_answer_and_each_request_too(inputs):
    core, waiting = reporter(), set()
    for happened, effects in put_in_order(core, [*inputs, DeleteAsked(HA)]):
        if isinstance(happened, SubscribeAsked):
            waiting.add(happened.observer)
        for effect in effects:
            if isinstance(effect, Granted | Denied):
                waiting.discard(effect.observer)
        if isinstance(happened, AllowAsked | ExpelAsked):
            ends = [each for each in effects if isinstance(each, Obeyed | Refused)]
            assert len(ends) == 1
    assert not waiting


def test_no_more_observe_than_may_be_allowed():
    """Also where nobody has to be asked."""
    core = reporter(is_public=True)
    for number in range(MAX_ALLOWED_OBSERVERS):
        assert isinstance(subscribe(core, f"{HB}{number}")[0], Granted)
    (denied,) = subscribe(core, HC)
    assert isinstance(denied, Denied)
    assert denied.code is Code.UNAVAILABLE
