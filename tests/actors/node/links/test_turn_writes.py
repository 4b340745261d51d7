"""At the end of a turn of the bus links are written to at once, for a slice of time (L1)."""

import pytest

from actors.node.links.connection import TurnWrites
from fsm.session.outbox_budget import OutboxBudget
from specs.limits.protocol import WRITE_SLICE
from tests.actors.node.links import port_ends
from tests.actors.node.links.port_ends import Clock, End, Tasks, entry
from transports.errors import CloseReason


@pytest.fixture
async def open_end():
    """Make ends of links over sockets."""
    ends: list[End] = []

    def make(turn: TurnWrites, *, is_tight: bool = False) -> End:
        budget = OutboxBudget(1 << 30)
        ends.append(port_ends.open_end(len(ends), Tasks(), budget, is_tight=is_tight))
        ends[-1].connection.turn = turn
        return ends[-1]

    yield make
    for end in ends:
        await end.aclose()


async def test_what_is_cut_in_the_turn_comes_back_and_is_not_written(open_end):
    turn = TurnWrites(Clock())
    end = open_end(turn)
    one = entry(1)
    end.connection.put(one)

    assert end.connection.cut(CloseReason.SLOW_CONSUMER) == [one]
    turn.write()
    assert end.lines() == []
    assert end.started == 1


async def test_tasks_of_links_that_cannot_be_written_to_are_all_woken_at_once(open_end):
    """So simulated runs, whose links are never written to at once, depend on no clock (I-X3)."""
    clock = Clock()
    turn = TurnWrites(clock)
    ends = [open_end(turn, is_tight=True) for _ in range(5)]
    for end in ends:
        end.connection.put(entry(1, 200_000))
    turn.write()
    for end in ends:
        end.connection._is_working = False
        end.connection.is_idle = True
        end.connection.put(entry(2))
    clock.step = 2 * WRITE_SLICE
    turn.write()

    assert turn.is_settled
    assert [end.started for end in ends] == [2] * 5
