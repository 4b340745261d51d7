"""At the end of a turn of the bus links are written to at once, for a slice of time (L1)."""

import gc
import math
from collections import deque

import pytest

from actors.node.limits import NodeLimits
from actors.node.links.connection import TurnWrites
from fsm.limits.rates import Rate
from fsm.session.outbox_budget import OutboxBudget
from specs.limits.protocol import FRAME_MESSAGES, WRITE_SLICE
from tests.support.node import port_ends
from tests.support.node.node_peer import RA, RB, open_world
from tests.support.node.port_ends import Clock, End, Tasks, entry
from transports.errors import CloseReason
from transports.system import open_system_network


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


async def test_what_a_link_got_in_a_turn_is_written_at_its_end(open_end):
    turn = TurnWrites(Clock())
    end = open_end(turn)
    entries = [entry(1), entry(2)]
    for one in entries:
        assert end.connection.put(one)
    assert end.lines() == []

    turn.write()
    assert end.lines() == [one.line for one in entries]
    assert (end.started, end.tasks.sent, end.budget.used) == (0, 2, 0)
    assert turn.is_settled


async def test_a_link_that_has_written_everything_keeps_no_empty_queues(open_end):
    turn = TurnWrites(Clock())
    end = open_end(turn)
    end.connection.refill([entry(1), entry(2)])
    end.connection.put(entry(3))
    while end.connection.waiting:
        turn.add(end.connection)
        turn.write()
    assert end.tasks.sent == 3
    assert [one for one in gc.get_referents(end.connection) if isinstance(one, deque)] == []


async def test_the_task_of_a_link_writes_what_its_socket_does_not_take(open_end):
    turn = TurnWrites(Clock())
    end = open_end(turn, is_tight=True)
    end.connection.put(entry(1, 200_000))
    turn.write()

    assert end.started == 1
    assert end.connection.is_begun
    assert (end.tasks.sent, end.connection.take()[0].message.id) == (0, 1)
    assert end.budget.used > 500_000  # as a line, as it was read, and as a frame
    end.connection.put(entry(2))
    turn.write()
    assert end.started == 1


async def test_more_than_a_frame_is_left_to_the_task_of_the_link(open_end):
    turn = TurnWrites(Clock())
    end = open_end(turn)
    for number in range(FRAME_MESSAGES + 1):
        end.connection.put(entry(number + 1))
    turn.write()

    assert len(end.lines()) == FRAME_MESSAGES
    assert (end.connection.waiting, end.started) == (1, 1)


async def test_what_is_cut_in_the_turn_comes_back_and_is_not_written(open_end):
    turn = TurnWrites(Clock())
    end = open_end(turn)
    one = entry(1)
    end.connection.put(one)

    assert end.connection.cut(CloseReason.SLOW_CONSUMER) == [one]
    turn.write()
    assert end.lines() == []
    assert end.started == 1


async def test_a_link_that_is_left_has_its_last_words_written_by_its_task(open_end):
    turn = TurnWrites(Clock())
    end = open_end(turn)
    end.connection.put(entry(1))
    end.connection.finish(CloseReason.DONE)
    turn.write()

    assert end.lines() == []
    assert end.connection.waiting == 1
    assert end.started == 1


async def test_a_link_that_is_held_is_written_to_when_it_is_released(open_end):
    turn = TurnWrites(Clock())
    end = open_end(turn)
    end.connection.put(entry(1))
    end.connection.hold()
    turn.write()
    assert (end.lines(), end.started) == ([], 0)

    end.connection.release()
    assert end.started == 1


async def test_a_large_fan_out_is_written_in_slices(open_end):
    clock = Clock()
    turn = TurnWrites(clock)
    ends = [open_end(turn) for _ in range(10)]
    for end in ends:
        end.connection.put(entry(1))

    clock.step = WRITE_SLICE / 3.5
    turn.write()
    assert not turn.is_settled
    assert [len(end.lines()) for end in ends] == [1] * 4 + [0] * 6
    clock.step = 0.0
    turn.write()
    assert turn.is_settled
    assert [len(end.lines()) for end in ends] == [0] * 4 + [1] * 6


async def test_later_links_do_not_wait_for_a_fan_out_nor_that_for_them(open_end):
    clock = Clock()
    turn = TurnWrites(clock)
    crowd = [open_end(turn) for _ in range(10)]
    others = [open_end(turn) for _ in range(10)]
    for end in crowd:
        end.connection.put(entry(1))
    clock.step = WRITE_SLICE
    turn.write()
    for end in others:
        end.connection.put(entry(2))

    clock.step = WRITE_SLICE / 7.5
    turn.write()
    assert sum(len(end.lines()) for end in others) == 4
    assert sum(len(end.lines()) for end in crowd) == 1 + 4


async def test_writing_takes_as_long_as_what_is_done_between(open_end):
    """Else what waits would grow while many messages come, and links would be cut for it."""
    clock = Clock()
    turn = TurnWrites(clock)
    ends = [open_end(turn) for _ in range(10)]
    for end in ends:
        end.connection.put(entry(1))
    clock.step = WRITE_SLICE
    turn.write()

    clock.now += 8 * WRITE_SLICE
    turn.write()
    assert turn.is_settled
    assert [len(end.lines()) for end in ends] == [1] * 10


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


async def test_without_further_turns_the_tasks_of_the_links_write(open_end):
    clock = Clock(WRITE_SLICE)
    turn = TurnWrites(clock)
    ends = [open_end(turn) for _ in range(3)]
    for end in ends:
        end.connection.put(entry(1))
    turn.write()
    turn.hand_over()

    assert turn.is_settled
    assert [end.started for end in ends] == [0, 1, 1]


async def test_over_real_sockets_a_peer_that_reads_late_gets_all_in_order():
    limits = NodeLimits(outbox_bytes=math.inf, messages=Rate(math.inf, 1))
    async with (
        open_system_network() as network,
        open_world(network, limits=limits) as world,
    ):
        ra, rb = await world.peer(RA), await world.peer(RB)
        sent = [
            await ra.post("create", f"{RA}/ua", f"{RB}/ua", value="x" * size)
            for size in [10, 16_000, 16_000, 16_000] * 30
        ]

        assert [await rb.hear() for _ in sent] == sent
