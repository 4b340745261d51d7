"""Order of a pair at both ends, over paths of any speed that lose and repeat (I-B7, C-20)."""

from collections import deque

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm.bus.receiving_order import NODE_PATH, PairOrderCore
from fsm.bus.sending_order import Announce, PairPathCore
from fsm.bus.transactions import DeduplicationWindow
from fsm.p2p.transfer import Behind
from specs.limits.p2p import HELD_BYTES, ORDER_SENT, ORDER_WAITS
from specs.limits.protocol import REPLY_TIMEOUT
from tests.support.chance import examples
from tests.support.wire.wire import A, B, C, answer, ask

NODE, LINK = "node-stub", "hyperty-runtime://a.ex/ra/p2prequester/1"
THERE = "hyperty-runtime://b.ex/rb/p2phandler/1/conn/1"
THEIR_STUB = "hyperty-runtime://b.ex/rb/protostub/1"
OWN_STUB = "hyperty-runtime://a.ex/ra/protostub/1"


def brought(message, via=(THEIR_STUB, OWN_STUB)):
    """Return a message as the node brings it."""
    return attrs.evolve(message, body={**message.body, "via": list(via)})


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
@given(st.lists(st.sampled_from([step for step in STEPS if step != "lost"]), max_size=60))
def test_while_the_node_loses_nothing_everything_arrives(steps):
    """However slow it is: as long as it is not slower than a request waits."""
    steps = [step for step in steps if step != "time"]
    world, sent = run(steps, ask)
    assert world.given == list(range(1, sent + 1))
    assert not world.refused
