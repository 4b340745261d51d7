"""Order across a path switch at the end that sends (C-20, I-B7, I-R9)."""

from fsm.bus.sending_order import Announce, PairPathCore
from fsm.p2p.transfer import Behind
from specs.limits.protocol import REPLY_TIMEOUT, STUB_QUEUE
from tests.support.wire.wire import A, B, answer, ask

NODE, LINK = "node-stub", "hyperty-runtime://a.ex/ra/p2prequester/1"


def sent(forwards):
    return [(forward.message.id, forward.route) for forward in forwards]


def test_a_request_answered_after_the_switch_is_not_announced_beside_an_answer():
    core = PairPathCore()
    core.send(answer(ask(7, from_=B, to=A)), NODE, 0.0)
    core.send(ask(1), NODE, 0.0)
    core.send(ask(2), LINK, 0.0)
    left = Behind(A, B, f"{B}#7>{A}!200", answers=frozenset({7}))
    assert core.settled(ask(1), 0.0) == [Announce(left, LINK)]


def test_a_stub_that_gives_nothing_back_is_not_waited_for_for_ever():
    core = PairPathCore()
    core.send(ask(1), LINK, 0.0)
    core.send(ask(2), NODE, 0.0)
    core.send(ask(3), NODE, 0.0)
    assert core.deadline() == REPLY_TIMEOUT
    assert core.tick(REPLY_TIMEOUT - 0.01) == []
    assert sent(core.tick(REPLY_TIMEOUT)) == [(3, NODE)]


def test_no_more_messages_wait_than_the_limit_allows():
    core = PairPathCore()
    core.send(ask(1), LINK, 0.0)
    for number in range(2, STUB_QUEUE + 3):
        assert core.send(ask(number), NODE, 0.0) is not None
    assert core.send(ask(STUB_QUEUE + 3), NODE, 0.0) is None
