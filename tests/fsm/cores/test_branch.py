"""What leaves by a link waits for what went by the node before (I-B7, C-20)."""

import math

from hypothesis import given
from hypothesis import strategies as st

from fsm.cores.branch import BranchCore, Taken
from fsm.cores.pair_path import PairPathCore
from specs.limits import SWITCH_TIMEOUT
from specs.limits_sync import BRANCH_HELD
from specs.message import Message, MessageType

OBJ, CHANGES, NODE = "comm://a.ex/o", "comm://a.ex/o/changes", "stub/1"


def update(number):
    return Message(number, MessageType.UPDATE, OBJ, CHANGES)


def test_a_link_that_begins_at_rest_carries_at_once():
    assert BranchCore(-math.inf).take(update(1), 0.0) is Taken.GOES


def test_what_comes_too_soon_waits_in_order():
    branch = BranchCore(1.0)
    assert [branch.take(update(n), 0.5) for n in (1, 2)] == [Taken.WAITS] * 2
    assert branch.due(0.9) == ()
    assert branch.deadline() == 1.0
    # Its time is over, but the older ones have not gone.
    assert branch.take(update(3), 1.0) is Taken.WAITS
    assert [one.id for one in branch.due(1.0)] == [1, 2, 3]
    assert branch.deadline() == math.inf
    assert branch.take(update(4), 1.0) is Taken.GOES


def test_no_more_wait_than_there_is_room_for():
    branch = BranchCore(1.0)
    for number in range(1, BRANCH_HELD + 1):
        assert branch.take(update(number), 0.0) is Taken.WAITS
    assert branch.take(update(BRANCH_HELD + 1), 0.0) is Taken.FULL
    assert branch.last == (BRANCH_HELD, 0.0)


def test_a_branch_waits_as_long_as_what_the_pair_sent_may_be_under_way():
    paths = PairPathCore()
    assert paths.arrived_at(OBJ, CHANGES, 0.0) == -math.inf
    paths.send(update(1), NODE, 1.0)
    assert paths.arrived_at(OBJ, CHANGES, 1.1) == 1.0 + SWITCH_TIMEOUT
    assert paths.arrived_at(OBJ, CHANGES, 9.0) == 1.0 + SWITCH_TIMEOUT


def test_what_goes_by_the_node_waits_for_what_went_by_the_link():
    paths = PairPathCore()
    paths.went_otherwise(OBJ, CHANGES, 7, 1.0)
    assert paths.send(update(8), NODE, 1.1) == []
    assert paths.deadline() == 1.0 + SWITCH_TIMEOUT
    assert [one.message.id for one in paths.tick(1.0 + SWITCH_TIMEOUT)] == [8]


class Switch:
    """A sender's messages go by the node, and after a switch by a link; who gets which when?"""

    def __init__(self, on_the_way):
        self.arrived = []
        self._on_the_way = on_the_way
        self._paths = PairPathCore()
        self._branch = None

    def by_node(self, message, now):
        for forward in self._paths.send(message, NODE, now):
            self.arrived.append((now + self._on_the_way, forward.message.id))

    def by_link(self, message, now):
        if self._branch is None:
            self._branch = BranchCore(self._paths.arrived_at(OBJ, CHANGES, now))
        self.let_go(now)
        if self._branch.take(message, now) is Taken.GOES:
            self.arrived.append((now, message.id))

    def let_go(self, now):
        due = math.inf if self._branch is None else self._branch.deadline()
        if due <= now:
            self.arrived += [(due, message.id) for message in self._branch.due(due)]


@given(
    st.lists(st.floats(0.0, 0.2), min_size=1, max_size=20),
    st.integers(0, 19),
    st.floats(0.0, SWITCH_TIMEOUT),
)
def test_nothing_overtakes_where_a_link_takes_over(pauses, switch, on_the_way):
    """Any delay up to `SWITCH_TIMEOUT` by the node, none by the link: they arrive in order."""
    now, world = 0.0, Switch(on_the_way)
    for number, pause in enumerate(pauses, start=1):
        now += pause
        (world.by_node if number <= switch else world.by_link)(update(number), now)
    world.let_go(now + 2 * SWITCH_TIMEOUT)
    assert [id_ for _, id_ in sorted(world.arrived)] == list(range(1, len(pauses) + 1))
