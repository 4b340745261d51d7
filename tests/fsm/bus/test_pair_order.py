"""Order of a pair at both ends, over paths of any speed that lose and repeat (I-B7, C-20)."""

import math
from collections import deque

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fsm.bus.receiving_order import NODE_PATH, PairOrderCore
from fsm.bus.sending_order import Announce, PairPathCore
from fsm.bus.transactions import DeduplicationWindow
from fsm.p2p.transfer import Behind
from specs.limits.p2p import HELD_BYTES, ORDER_HELD, ORDER_SENT, ORDER_WAITS
from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import Message, MessageType, instance_id
from tests.support.chance import examples
from tests.support.wire.wire import A, B, C, answer, ask

NODE, LINK = "node-stub", "hyperty-runtime://a.ex/ra/p2prequester/1"
THERE = "hyperty-runtime://b.ex/rb/p2phandler/1/conn/1"
THEIR_STUB = "hyperty-runtime://b.ex/rb/protostub/1"
OWN_STUB = "hyperty-runtime://a.ex/ra/protostub/1"


def brought(message, via=(THEIR_STUB, OWN_STUB)):
    """Return a message as the node brings it."""
    return attrs.evolve(message, body={**message.body, "via": list(via)})


def reported(number):
    return Message(number, MessageType.UPDATE, A, f"{B}/changes")


def test_a_message_by_a_link_waits_for_earlier_ones_by_the_node():
    core = PairOrderCore()
    core.announced(Behind(A, B, 2, 2), THERE, 0.0)
    assert core.arrives(ask(3), THERE, "third") == []
    assert core.arrives(ask(1), NODE_PATH, "first") == ["first"]
    assert core.given(ask(1), NODE_PATH, 1.0) == []
    assert core.arrives(ask(2), NODE_PATH, "second") == ["second"]
    assert core.given(ask(2), NODE_PATH, 9.0) == ["third"]
    assert (core.held, core.deadline()) == (0, math.inf)


def test_a_message_that_came_before_the_announcement_is_not_awaited():
    core = PairOrderCore()
    core.given(ask(2), NODE_PATH, 0.0)
    core.announced(Behind(A, B, 2, 2), THERE, 0.0)
    assert core.arrives(ask(3), THERE, "third") == ["third"]


def test_answers_are_waited_for_by_name():
    core = PairOrderCore()
    late = answer(ask(7))
    core.announced(Behind(B, A, "b", 0), THERE, 0.0)
    core.announced(Behind(B, A, f"{A}#7>{B}!200", 0), THERE, 0.0)
    assert core.arrives(answer(ask(8)), THERE, "eighth") == []
    assert core.given(late, NODE_PATH, 0.0) == ["eighth"]


def test_a_message_lost_by_the_node_is_awaited_until_its_sender_has_given_it_up():
    core = PairOrderCore()
    core.announced(Behind(A, B, 2, 2, 5.0), THERE, 100.0)
    assert core.arrives(ask(3), THERE, "third") == []
    assert core.deadline() == 100.0 + REPLY_TIMEOUT - 5.0
    assert core.tick(core.deadline() - 0.1) == []
    assert core.tick(core.deadline()) == ["third"]
    core.given(ask(3), THERE, 111.0)
    assert core.is_late(ask(2), NODE_PATH)
    assert not core.is_late(ask(4), NODE_PATH)


def test_a_younger_message_shows_that_all_missing_ones_are_lost():
    core = PairOrderCore()
    core.announced(Behind(A, B, 2, 2), THERE, 0.0)
    core.arrives(ask(3), THERE, "third")
    assert core.arrives(ask(4), NODE_PATH, "fourth") == ["third", "fourth"]


def test_an_answer_that_was_not_under_way_shows_that_what_was_is_lost():
    core = PairOrderCore()
    core.given(answer(ask(5)), NODE_PATH, 0.0)
    behind = Behind(B, A, f"{A}#7>{B}!200", answers=frozenset({6, 7}))
    core.announced(behind, THERE, 0.0)
    core.arrives(answer(ask(8)), THERE, "eighth")
    assert core.arrives(brought(answer(ask(5))), NODE_PATH, "fifth again") == ["fifth again"]
    assert core.arrives(brought(answer(ask(6))), NODE_PATH, "sixth") == ["sixth"]
    assert core.arrives(brought(answer(ask(9))), NODE_PATH, "ninth") == ["eighth", "ninth"]


@pytest.mark.parametrize(
    "via", [(), (OWN_STUB,), ("domain://msg-node.b.ex/protostub/a.ex", OWN_STUB)]
)
def test_a_refusal_on_the_way_says_nothing_of_the_answers_under_way(via):
    """Neither that of the own stub, nor that of a node: the peer's may still come."""
    core = PairOrderCore()
    core.announced(Behind(B, A, f"{A}#7>{B}!200", answers=frozenset({6, 7})), THERE, 0.0)
    core.arrives(answer(ask(8)), THERE, "eighth")
    refused = brought(answer(ask(9), 503), via)
    assert core.arrives(refused, NODE_PATH, "refused") == ["refused"]
    core.arrives(brought(answer(ask(7))), NODE_PATH, "seventh")
    assert core.given(brought(answer(ask(7))), NODE_PATH, 0.0) == ["eighth"]


def test_of_very_many_open_answers_the_older_ones_are_not_known():
    core = PairOrderCore()
    under_way = frozenset(range(100, 100 + ORDER_SENT))
    core.announced(Behind(B, A, f"{A}#163>{B}!200", answers=under_way), THERE, 0.0)
    core.arrives(answer(ask(170)), THERE, "by the link")
    assert core.arrives(brought(answer(ask(99))), NODE_PATH, "older") == ["older"]


def test_a_message_returned_twice_precedes_one_returned_once():
    """P2P-15: the link came back for a moment, and took the first two only."""
    paths = PairPathCore()
    asked = [ask(number) for number in range(1, 5)]
    for message in asked:
        paths.send(message, LINK, 0.0)
    for message in asked:
        paths.returned((message,), 0.0)
    for message in asked[:2]:
        assert [one.message for one in paths.send(message, LINK, 0.0) or ()] == [message]
    for message in asked[:2]:
        paths.returned((message,), 0.0)
    for message in reversed(asked[1:]):
        assert paths.send(message, NODE, 0.0) == []
    (drained,) = paths.send(asked[0], NODE, 0.0) or ()
    assert (drained.message, drained.route, drained.then) == (asked[0], LINK, NODE)
    paths.returned(asked[:1], 0.0)
    assert [one.message for one in paths.send(asked[0], NODE, 0.0) or ()] == asked


def test_a_message_of_which_two_copies_were_returned_waits_once():
    paths, (first, second) = PairPathCore(), [ask(1), ask(2)]
    for message in first, second:
        paths.send(message, LINK, 0.0)
    paths.returned((first, second), 0.0)
    assert not paths.waits(second)
    for _ in range(2):
        assert paths.send(second, NODE, 0.0) == []
        assert paths.waits(second)
    assert [one.message for one in paths.send(first, NODE, 0.0)] == [first]


def test_a_second_copy_that_a_link_gave_back_is_not_what_others_follow():
    """I-B7: its first copy comes before the answers that were sent between both."""
    paths, answers = PairPathCore(), [answer(ask(number)) for number in range(1, 5)]
    for message in answers[:3]:
        paths.send(message, NODE, 0.0)
    paths.send(answers[0], LINK, 0.0)
    paths.returned(tuple(answers[:1]), 0.0, by=LINK)
    (drained,) = paths.send(answers[0], NODE, 0.0)
    assert drained.then == NODE
    paths.returned(tuple(answers[:1]), 0.0, by=LINK)
    (again,) = paths.send(answers[0], NODE, 0.0)
    assert again.route == NODE
    (forward,) = paths.send(answers[3], LINK, 0.0)
    assert forward.behind.last == instance_id(answers[2])


def test_a_message_that_waits_at_the_stub_of_a_lost_link_is_not_passed():
    """P2P-15: the stub gives back each message when its turn comes."""
    paths = PairPathCore()
    first, second, third = (ask(number) for number in range(1, 4))
    paths.send(first, LINK, 0.0)
    paths.send(second, LINK, 0.0)
    paths.returned((first,), 0.0)
    paths.link_ended(LINK, 0.0)
    (drained,) = paths.send(first, NODE, 0.0) or ()
    assert (drained.route, drained.then) == (LINK, NODE)
    assert paths.send(third, NODE, 0.0) == []
    paths.returned((second,), 0.0)
    assert paths.returned((first,), 0.0).values()
    assert paths.send(second, NODE, 0.0) == []
    gone = [one.message for one in paths.send(first, NODE, 0.0) or ()]
    assert gone == [first, second, third]


def test_requests_of_a_pair_do_not_displace_its_answers_from_what_is_announced():
    paths = PairPathCore()
    for number in range(1, ORDER_SENT + 1):
        paths.send(reported(1000 + number), NODE, 0.0)
        paths.send(attrs.evolve(answer(ask(number)), from_=A, to=f"{B}/changes"), NODE, 0.0)
    behind = paths.behind(A, f"{B}/changes", 0.0)
    assert behind.answers == frozenset(range(1, ORDER_SENT + 1))


def test_a_repeat_by_the_link_reports_nothing_of_what_the_node_has_still_to_bring():
    core = PairOrderCore()
    core.announced(Behind(A, B, 2, 2), THERE, 0.0)
    core.arrives(ask(3), THERE, "third")
    assert core.arrives(ask(2), THERE, "second again") == []
    assert core.held == 2


def test_a_newer_announcement_takes_the_place_of_the_older_one():
    core = PairOrderCore()
    core.announced(Behind(A, B, 2, 2), THERE, 0.0)
    core.arrives(ask(3), THERE, "third")
    assert core.announced(Behind(A, B), THERE, 0.1) == ["third"]
    assert core.is_reached(A, B, THERE)


def test_a_waiting_message_does_not_wait_for_later_announcements():
    core = PairOrderCore()
    core.announced(Behind(A, B, 2, 2), THERE, 0.0)
    assert core.arrives(ask(3), THERE, "third") == []
    core.announced(Behind(A, B, 4, 4), THERE, 0.1)
    assert core.arrives(ask(5), THERE, "fifth") == []
    assert core.given(ask(2), NODE_PATH, 1.0) == ["third"]
    assert core.given(ask(4), NODE_PATH, 2.0) == ["fifth"]
    assert (core.held, core.deadline()) == (0, math.inf)


def test_a_request_by_the_node_reports_nothing_of_answers_that_take_another_connection():
    """Between two domains an answer returns by the connection of its request."""
    core = PairOrderCore()
    asked = Message(3, MessageType.READ, B, A)
    core.announced(Behind(B, A, f"{A}#7>{B}!200", 2, answers=frozenset({7})), THERE, 0.0)
    assert core.arrives(asked, THERE, "request") == []
    assert core.arrives(answer(ask(8)), THERE, "answer") == []
    assert core.given(Message(2, MessageType.READ, B, A), NODE_PATH, 1.0) == ["request"]
    assert core.arrives(Message(4, MessageType.READ, B, A), NODE_PATH, "fourth") == ["fourth"]
    assert not core.is_reached(B, A, THERE)
    assert core.given(answer(ask(7)), NODE_PATH, 2.0) == ["answer"]
    assert core.is_reached(B, A, THERE)


def test_late_messages_of_the_node_alone_are_repeats_and_no_concern_of_order():
    core = PairOrderCore()
    core.given(ask(5), NODE_PATH, 0.0)
    assert not core.is_late(ask(4), NODE_PATH)
    assert core.is_late(ask(4), THERE)
    assert not core.is_late(answer(ask(1)), THERE)


def test_a_repeat_by_the_node_lets_no_late_message_pass():
    core = PairOrderCore()
    core.given(ask(9), NODE_PATH, 0.0)
    core.given(ask(5), NODE_PATH, 1.0)
    assert core.is_late(ask(7), THERE)
    core.given(ask(9), THERE, 2.0)
    assert core.is_late(ask(8), NODE_PATH)


def test_what_has_waited_makes_room_for_what_waits_next():
    core = PairOrderCore()
    for number in range(1, 3 * HELD_BYTES // 60_000, 10):
        core.announced(Behind(A, B, number, number), THERE, 0.0)
        for later in range(number + 1, number + 10):
            large = Message(later, MessageType.CREATE, A, B, {"value": "x" * 60_000})
            assert core.arrives(large, THERE, later) == [], later
        assert len(core.given(ask(number), NODE_PATH, 0.0)) == 9
    assert core.held == 0


def test_no_more_messages_of_a_link_wait_than_the_limit_allows():
    core = PairOrderCore()
    core.announced(Behind(A, B, 1, 1), THERE, 0.0)
    for number in range(2, ORDER_HELD + 2):
        assert core.arrives(ask(number), THERE, number) == []
    assert core.arrives(ask(ORDER_HELD + 2), THERE, None) is None
    assert len(core.tick(REPLY_TIMEOUT)) == ORDER_HELD


def test_no_more_pairs_of_a_link_wait_than_the_limit_allows():
    core = PairOrderCore()
    for number in range(ORDER_WAITS + 1):
        core.announced(Behind(A, f"{B}/{number}", 1, 1), THERE, 0.0)
    assert core.arrives(ask(2, to=f"{B}/{ORDER_WAITS}"), THERE, "it") == ["it"]
    assert core.arrives(ask(2, to=f"{B}/0"), THERE, "it") == []
    core.given(ask(1, to=f"{B}/0"), NODE_PATH, 0.0)
    core.announced(Behind(A, C, 1, 1), THERE, 0.0)
    assert core.arrives(ask(2, to=C), THERE, "it") == []


def test_an_announcement_that_was_replaced_takes_no_memory():
    core, answers = PairOrderCore(), frozenset(range(ORDER_SENT))
    for number in range(1, HELD_BYTES // Behind(A, B, answers=answers).size + 3):
        core.announced(Behind(A, B, number, number, answers=answers), THERE, 0.0)
        assert core.deadline() == REPLY_TIMEOUT


class World:
    """A pair over a node and a link, each with any delay; the node loses and repeats."""

    def __init__(self):
        self.now = 0.0
        self.given, self.refused = [], []
        self.paths, self.order = PairPathCore(), PairOrderCore()
        self.seen = DeduplicationWindow()
        self.node, self.link = deque(), deque()
        self.unacknowledged, self.turned, self.rerouting = deque(), deque(), deque()
        self.is_up = True
        self.route = NODE

    def send(self, message):
        self.go(self.paths.send(message, self.route, self.now))

    def go(self, effects):
        for effect in effects:
            if isinstance(effect, Announce):
                self.link.append(effect.behind)
            elif effect.then is not None:
                self.turned.append(effect.message)
                self.turn()
            elif effect.route == LINK and self.is_up:
                if effect.behind is not None:
                    self.link.append(effect.behind)
                self.unacknowledged.append(effect.message)
                self.link.append(effect.message)
            elif effect.route == LINK:
                self.hand_back([effect.message])
            else:
                self.node.append(effect.message)

    def turn(self):
        if not self.unacknowledged and self.turned:
            turned, self.turned = list(self.turned), deque()
            self.hand_back(turned)

    def hand_back(self, messages):
        self.paths.returned(tuple(messages), self.now)
        self.rerouting.extend(messages)

    def reroute(self):
        """A route is found for a message that was given back."""
        if self.rerouting:
            self.send(self.rerouting.popleft())

    def node_brings(self, *, lost=False, again=False):
        if self.node:
            message = self.node[0] if again else self.node.popleft()
            if not lost:
                self.arrived(message, NODE_PATH)

    def link_brings(self):
        if not self.link:
            return
        item = self.link.popleft()
        if isinstance(item, Behind):
            self.take(self.order.announced(item, THERE, self.now))
            return
        self.arrived(item, THERE)
        if self.unacknowledged and self.unacknowledged[0] is item:
            self.unacknowledged.popleft()
            self.turn()

    def lose_link(self):
        """The sender gives the link up; what it wrote may come all the same."""
        if self.is_up:
            self.is_up, self.route = False, NODE
            owed, turned = tuple(self.unacknowledged), tuple(self.turned)
            self.unacknowledged.clear()
            self.turned.clear()
            self.hand_back(owed)
            self.hand_back(turned)
            self.paths.link_ended(LINK, 0.0)

    def has_link(self):
        self.is_up, self.route = True, LINK

    def go_by_node(self):
        """The link is up, and the sender wants the node."""
        self.route = NODE

    def arrived(self, message, path):
        due = self.order.arrives(message, path, (message, path))
        self.take(due or ())

    def take(self, due):
        queue = deque(due)
        while queue:
            message, path = queue.popleft()
            if not self.seen.is_new(message, self.now):
                continue
            if self.order.is_late(message, path):
                self.refused.append(message.id)
                continue
            self.given.append(message.id)
            queue.extend(self.order.given(message, path, self.now))

    def pass_time(self, seconds):
        self.now += seconds
        self.go(self.paths.tick(self.now))
        self.take(self.order.tick(self.now))

    def settle(self):
        """All that is on its way arrives, and all waits end."""
        for _ in range(3):
            while self.node or self.link or self.rerouting:
                self.reroute()
                self.node_brings()
                self.link_brings()
            self.pass_time(REPLY_TIMEOUT)


STEPS = (
    "send",
    "node",
    "link",
    "lost",
    "again",
    "lose link",
    "has link",
    "by node",
    "route",
    "time",
)


def run(steps, kind):
    world, sent = World(), 0
    acts = {
        "node": world.node_brings,
        "lost": lambda: world.node_brings(lost=True),
        "again": lambda: world.node_brings(again=True),
        "link": world.link_brings,
        "lose link": world.lose_link,
        "has link": world.has_link,
        "by node": world.go_by_node,
        "route": world.reroute,
        "time": lambda: world.pass_time(1.0),
    }
    for step in steps:
        if step == "send":
            sent += 1
            world.send(kind(sent))
        else:
            acts[step]()
    world.settle()
    assert world.given == sorted(set(world.given)), "given in order, and once"
    assert world.paths.held == world.order.held == 0, "nothing waits for ever"
    return world, sent


@settings(max_examples=examples(150))
@given(st.lists(st.sampled_from(STEPS), max_size=60), st.sampled_from([ask, reported]))
@example(["send", "has link", "send", "link", "link", "node"], ask)
@example(["send", "has link", "send", "lost", "link", "link", "time"], reported)
@example(["has link", "send", "lose link", "send", "node", "node", "link", "link"], ask)
def test_any_delay_loss_and_repetition_keeps_the_order_and_holds_nothing_for_ever(steps, kind):
    run(steps, kind)


@settings(max_examples=examples(150))
@given(st.lists(st.sampled_from([step for step in STEPS if step != "lost"]), max_size=60))
def test_while_the_node_loses_nothing_everything_arrives(steps):
    """However slow it is: as long as it is not slower than a request waits."""
    steps = [step for step in steps if step != "time"]
    world, sent = run(steps, ask)
    assert world.given == list(range(1, sent + 1))
    assert not world.refused
