"""Whether owners consent, read off what passes: nobody's word but theirs (S3, T4, M-38..M-45)."""

import pytest

from fsm.sync.subscriptions import ConsentCore
from specs.limits.protocol import MAX_SUBSCRIPTIONS, REPLY_TIMEOUT
from specs.message import Message, MessageType

OBJ, SUB = "comm://a.ex/o1", "comm://a.ex/o1/subscription"
RA, RB, RC = [f"hyperty-runtime://a.ex/{name}" for name in ("ra", "rb", "rc")]
HA, HB, HB2 = "hyperty://a.ex/ha", "hyperty://a.ex/hb", "hyperty://a.ex/hb2"
OWNERS = {OBJ: RA, SUB: RA, HA: RA, HB: RB, HB2: RB}
SUBSCRIBE, READ, UNSUBSCRIBE = MessageType.SUBSCRIBE, MessageType.READ, MessageType.UNSUBSCRIBE


class Paths:
    """The table of paths: a runtime has one on the object; notes the verdicts."""

    def __init__(self):
        self.verdicts = []

    def observes(self, runtime, entity):
        return (runtime, entity) == (RB, OBJ)

    def consent(self, *observer):
        self.verdicts.append(("consent", *observer))

    def decline(self, *observer):
        self.verdicts.append(("decline", *observer))

    def withdraw(self, *observer):
        self.verdicts.append(("withdraw", *observer))


class LoneConsents(ConsentCore):
    """Returns the verdict on each message; None: there is none."""

    def __init__(self, owner_of=OWNERS.get):
        super().__init__(Paths(), owner_of)

    def passed(self, message, by, now):
        verdicts = self._port.verdicts = []
        super().passed(message, by, now)
        assert len(verdicts) <= 1
        return verdicts[0] if verdicts else None


def core():
    return LoneConsents()


def asked(id_=1, observer=HB, type_=SUBSCRIBE, to=SUB):
    if type_ is READ:
        return Message(id_, READ, observer, OBJ)
    return Message(id_, type_, f"{RB}/sm", to, {"source": observer})


def answer(request, code, **body):
    if code < 300 and request.type is not UNSUBSCRIBE:
        body = {"value": {"version": 1}, **body}
    reported = {"code": code, **body}
    return Message(request.id, MessageType.RESPONSE, request.to, request.from_, reported)


def verdict(request, code, by=RA, after=1.0):
    one = core()
    assert one.passed(request, RB, 0.0) is None
    return one.passed(answer(request, code), by, after)


@pytest.mark.parametrize("code", [300, 400, 401, 403, 404, 409, 500, 599])
def test_a_no_of_the_owner_is_a_refusal(code):
    assert verdict(asked(), code) == ("decline", OBJ, RB, HB)


@pytest.mark.parametrize("request_", [asked(), asked(to=OBJ), asked(type_=READ)])
def test_an_owner_that_cannot_decide_now_refuses_nobody(request_):
    """It is asked again, and an observer that it has keeps its path meanwhile."""
    assert verdict(request_, 503) is None


@pytest.mark.parametrize(
    ("code", "is_no"), [(401, True), (403, True), (404, True), (408, False), (500, False)]
)
def test_a_read_that_fails_for_the_moment_refuses_no_observer(code, is_no):
    assert verdict(asked(type_=READ), code) == (("decline", OBJ, RB, HB) if is_no else None)


@pytest.mark.parametrize("code", [200, 401, 404])
def test_a_read_of_one_attribute_decides_nothing(code):
    """MSG-11: an attribute that is absent is answered 404, too, and one may be an object."""
    read = Message(1, READ, HB, OBJ, {"attribute": "a"})
    assert verdict(read, code) is None


@pytest.mark.parametrize("by", [RB, RC, None])
def test_consent_by_another_runtime_does_not_count(by):
    assert verdict(asked(), 200, by=by) is None


def test_a_provisional_answer_prolongs_the_wait():
    one = core()
    one.passed(asked(), RB, 0.0)

    assert one.passed(answer(asked(), 100), RA, 10.0) is None
    assert one.passed(answer(asked(), 200), RA, 20.0) == ("consent", OBJ, RB, HB)


@pytest.mark.parametrize("other", [asked(observer=HB2), asked(type_=READ)])
def test_consent_to_an_id_that_two_requests_share_counts_for_neither(other):
    other = Message(1, other.type, f"{RB}/sm", SUB, other.body)
    one = core()
    one.passed(asked(), RB, 0.0)
    one.passed(other, RB, 0.0)

    assert one.passed(answer(asked(), 200), RA, 1.0) is None


def test_open_requests_are_bounded_and_forgotten_in_time():
    one = core()
    for id_ in range(1, 3 * MAX_SUBSCRIPTIONS):
        one.passed(asked(id_), RB, 0.0)
    assert len(one) == MAX_SUBSCRIPTIONS

    one.passed(asked(9999), RB, REPLY_TIMEOUT)

    assert len(one) == 1
