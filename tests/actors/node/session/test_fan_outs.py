"""Many links get a message in slices of time, and each gets all messages in order (MN-12, L1)."""

from types import SimpleNamespace

import attrs
import pytest
import trio

from actors.kit.counters import Counters
from actors.kit.trace import NULL_TRACER
from actors.node.limits import DEFAULT_LIMITS
from actors.node.links import connection as connections
from actors.node.links.acceptor import RestAcceptor
from actors.node.links.connection import TurnWrites
from actors.node.session import fan_out
from actors.node.session.fan_out import FanOuts
from actors.node.trace import ComponentTrace
from fsm.session.node_session_io import OutboundMessage
from fsm.session.outbox_budget import OutboxBudget
from specs.limits.protocol import FAN_OUT_AT_ONCE, FAN_OUTS, FRAME_MESSAGES, WRITE_SLICE
from specs.reply_code import DropReason
from tests.support.node.node_peer import DOMAIN, SM, open_world
from tests.support.node.port_ends import Clock, End, Tasks, entry, open_end
from transports.errors import CloseReason
from transports.socket_link import RawLink
from transports.system import open_system_network

MANY = FAN_OUT_AT_ONCE + 4
PATIENCE = 1000.0
"""Seconds after which a session without a link is surely over."""


class Crowd:
    """Sessions with links over sockets, and what many of them get."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.sessions: dict[str, SimpleNamespace] = {}
        self.ends: list[End] = []
        self.budget = OutboxBudget(1 << 30)
        self.tasks = Tasks()
        trace = ComponentTrace(NULL_TRACER, "node", Counters())
        self.fan_outs = FanOuts(self.sessions, self.budget, trace, self.put)
        self.turn = TurnWrites(self.clock, self.fan_outs)

    def join(self, acceptor=None, *, is_tight: bool = False) -> End:
        number = len(self.ends)
        end = open_end(number, self.tasks, self.budget, acceptor, is_tight=is_tight)
        end.connection.turn = self.turn
        self.ends.append(end)
        self.sessions[end.connection.name] = SimpleNamespace(port=end.connection)
        return end

    def put(self, runtime: str, one: OutboundMessage) -> None:
        assert self.sessions[runtime].port.put(one)

    def give(self, one: OutboundMessage) -> None:
        self.fan_outs.add(tuple(self.sessions), one)

    def read(self) -> list[bytes]:
        return [end.read() for end in self.ends]


@pytest.fixture
async def crowd():
    crowd = Crowd()
    yield crowd
    for end in crowd.ends:
        await end.aclose()


async def test_what_many_get_is_written_in_slices(crowd):
    for _ in range(10):
        crowd.join()
    one = entry(1)
    crowd.give(one)
    assert crowd.budget.used > 0

    crowd.clock.step = WRITE_SLICE / 3.5
    crowd.turn.write()
    assert not crowd.turn.is_settled
    assert crowd.read() == [one.line] * 4 + [b""] * 6
    crowd.clock.step = 0.0
    crowd.turn.write()
    assert crowd.turn.is_settled
    assert crowd.read() == [b""] * 4 + [one.line] * 6
    assert (crowd.tasks.sent, crowd.budget.used) == (10, 0)


async def test_links_that_got_something_else_do_not_wait_for_it(crowd):
    for _ in range(10):
        crowd.join()
    crowd.give(entry(1))
    crowd.clock.step = WRITE_SLICE
    crowd.turn.write()
    crowd.read()

    other, own = Crowd.join(crowd), entry(2)
    other.connection.put(own)
    crowd.turn.write()
    assert other.read() == own.line
    assert not crowd.turn.is_settled


async def test_messages_of_a_turn_for_the_same_sessions_are_one_write(crowd, monkeypatch):
    made = []
    wrapped = RawLink.wrapped
    monkeypatch.setattr(
        RawLink, "wrapped", lambda link, frames: made.append(frames) or wrapped(link, frames)
    )
    for _ in range(3):
        crowd.join()
    entries = [entry(1), entry(2)]
    for one in entries:
        crowd.give(one)
    crowd.turn.write()

    lines = b"\n".join(one.line for one in entries)
    assert (crowd.read(), made) == ([lines] * 3, [(lines,)])
    assert (crowd.tasks.sent, crowd.budget.used) == (6, 0)


async def test_a_message_that_one_has_got_is_not_joined_by_the_next(crowd):
    for _ in range(3):
        crowd.join()
    entries = [entry(1), entry(2)]
    crowd.give(entries[0])
    crowd.fan_outs.settle("r2")
    crowd.give(entries[1])
    for _ in range(2):
        crowd.turn.write()

    first, second = (one.line for one in entries)
    assert crowd.read() == [first + second] * 3


async def test_a_frame_is_full_at_the_limit(crowd):
    crowd.join()
    entries = [entry(number + 1) for number in range(FRAME_MESSAGES + 1)]
    for one in entries:
        crowd.give(one)
    crowd.turn.write()

    first, last = entries[:-1], entries[-1]
    assert crowd.read() == [b"\n".join(one.line for one in first) + last.line]


async def test_what_is_settled_before_its_turn_comes_once_and_first(crowd):
    for _ in range(3):
        crowd.join()
    one, own = entry(1), entry(2)
    crowd.give(one)
    crowd.fan_outs.settle("r1")
    crowd.fan_outs.settle("r1")
    crowd.put("r1", own)
    crowd.turn.write()

    assert crowd.read() == [one.line, b"\n".join((one.line, own.line)), one.line]
    assert crowd.budget.used == 0


async def test_a_link_with_something_waiting_gets_it_behind_that(crowd):
    waits, held, one = entry(1), entry(2), entry(3)
    end = crowd.join()
    end.connection.hold()
    end.connection.put(waits)
    left = crowd.join()
    left.connection.is_leaving = True
    crowd.give(one)
    crowd.turn.write()
    assert [[item.message.id for item in end.connection.held] for end in crowd.ends] == [
        [1, 3],
        [3],
    ]

    end.connection.put(held)
    end.connection.is_held = False
    assert end.connection.write_now()
    assert end.read() == b"\n".join((waits.line, one.line, held.line))


async def test_what_a_node_of_another_domain_may_get_is_looked_at_one_by_one(crowd):
    end = crowd.join()
    crowd.sessions["domain://msg-node.b.example"] = crowd.sessions.pop("r0")
    crowd.give(entry(1))
    crowd.turn.write()
    assert (end.read(), end.connection.waiting) == (b"", 1)


async def test_links_that_wait_longer_leave_some_time_for_it(crowd):
    for _ in range(20):
        crowd.join().connection.put(entry(1))
    crowd.clock.step = WRITE_SLICE / 3.5
    crowd.turn.write()
    assert [bool(line) for line in crowd.read()] == [True] * 4 + [False] * 16
    crowd.fan_outs.add(("r0", "r1", "r2"), entry(2))
    crowd.clock.step = WRITE_SLICE / 8
    crowd.turn.write()
    assert [bool(line) for line in crowd.read()[:3]] == [True, True, False]


async def test_links_of_another_form_get_it_by_their_outboxes(crowd):
    end = crowd.join(RestAcceptor())
    crowd.give(entry(1))
    crowd.turn.write()
    assert end.read() == b""
    assert not crowd.turn.is_settled

    crowd.turn.write()
    assert end.read() == entry(1).line
    assert crowd.turn.is_settled


async def test_the_task_of_a_link_writes_what_its_socket_does_not_take(crowd):
    end = crowd.join(is_tight=True)
    crowd.give(entry(1, 60_000))
    crowd.give(entry(2))
    for number in range(3, 20):
        crowd.give(entry(number, 60_000))
    crowd.turn.write()

    assert end.started == 1
    assert end.connection.is_begun
    taken = end.connection.take()
    assert [one.message.id for one in taken] == [1, 2]
    assert crowd.budget.used > 2 * 60_000  # as they were read, and as a frame
    assert [one.message.id for one in end.connection.held] == list(range(1, 20))
    end.connection.finish_write()
    assert end.connection.framed == 0


async def test_a_message_with_more_than_an_outbox_holds_is_not_written(crowd, monkeypatch):
    end = crowd.join()
    limits = attrs.evolve(DEFAULT_LIMITS, outbox_bytes=100)
    end.connection._limits = limits
    refused = []
    monkeypatch.setattr(crowd.fan_outs, "_put_one", lambda *one: refused.append(one))
    large = entry(1, 100)
    crowd.give(large)
    crowd.turn.write()
    assert (refused, end.read()) == ([("r0", large)], b"")


async def test_only_some_messages_wait_for_their_sessions(crowd):
    for _ in range(2):
        crowd.join()
    for number in range(FAN_OUTS + 1):
        crowd.give(entry(number + 1))
        crowd.fan_outs.settle("r1")  # no other message joins it now

    assert [one.message.id for one in crowd.ends[0].connection.held] == [1]
    assert len(crowd.fan_outs._fan_outs) == FAN_OUTS


async def test_outboxes_are_filled_some_at_a_time(crowd, monkeypatch):
    """So that no message waits for all of them, also where links are not written to at once."""
    monkeypatch.setattr(fan_out, "FAN_OUT_PUTS", 3)
    for _ in range(5):
        crowd.join().connection.hold()
    crowd.give(entry(1))
    for filled in (3, 5):
        crowd.turn.write()
        assert [end.connection.waiting for end in crowd.ends] == [1] * filled + [0] * (5 - filled)


async def test_without_further_turns_the_tasks_of_the_links_have_all(crowd):
    for _ in range(3):
        crowd.join()
    crowd.give(entry(1))
    crowd.clock.step = WRITE_SLICE
    crowd.turn.write()
    crowd.turn.hand_over()

    assert crowd.turn.is_settled
    assert [end.started for end in crowd.ends] == [0, 1, 1]


# ---- sessions that leave or fail in the middle of a slice


def ids(entries) -> list[int]:
    return [one.message.id for one in entries]


async def test_a_session_that_leaves_in_the_middle_of_a_slice_gets_nothing_more(crowd):
    for _ in range(10):
        crowd.join()
    crowd.give(entry(1))
    crowd.clock.step = WRITE_SLICE / 3.5
    crowd.turn.write()
    assert [ids(crowd.fan_outs.take(name)) for name in ("r3", "r4", "r4")] == [[], [1], []]
    del crowd.sessions["r3"], crowd.sessions["r4"]
    crowd.clock.step = 0.0
    crowd.turn.write()

    assert [bool(line) for line in crowd.read()] == [True] * 4 + [False] + [True] * 5
    assert (crowd.tasks.sent, crowd.budget.used) == (9, 0)


async def test_a_link_that_breaks_in_the_middle_of_a_slice_has_what_it_took_given_back(crowd):
    for _ in range(3):
        crowd.join(is_tight=True)
    one = entry(1, 60_000)
    for _ in range(FAN_OUTS):
        crowd.give(one)
    crowd.turn.write()
    broken = crowd.ends[1].connection
    # The peer may have read the first.
    assert ids(broken.cut(CloseReason.SLOW_CONSUMER)) == [1] * (FAN_OUTS - 1)
    for end in (crowd.ends[0], crowd.ends[2]):
        end.connection.finish_write()
        end.connection.cut(CloseReason.DONE)
    assert crowd.budget.used == 0


async def test_a_session_that_fails_leads_to_messages_for_many_and_none_is_lost(crowd, monkeypatch):
    """Others are notified that it is gone, by more messages than may wait for many sessions."""
    for _ in range(3):
        crowd.join().connection.hold()
    got: dict[str, list[int]] = {name: [] for name in crowd.sessions}
    is_gone = False

    def put(runtime: str, one: OutboundMessage) -> None:
        nonlocal is_gone
        got[runtime].append(one.message.id)
        if not is_gone and runtime == "r1":
            is_gone = True
            for number in range(2):
                notice = entry(100 + number)
                crowd.fan_outs.add(("r0", "r2"), notice)
                crowd.fan_outs.settle("r0")  # no other message joins it

    monkeypatch.setattr(crowd.fan_outs, "_put_one", put)
    for number in range(FAN_OUTS):
        crowd.give(entry(number + 1))
        crowd.fan_outs.settle("r0")
    crowd.give(entry(FAN_OUTS + 1))
    assert len(crowd.fan_outs._fan_outs) <= FAN_OUTS
    crowd.turn.write()

    numbers = list(range(1, FAN_OUTS + 2))
    assert got["r1"] == numbers
    for name in ("r0", "r2"):
        assert sorted(got[name]) == [*numbers, 100, 101]
        assert [number for number in got[name] if number < 100] == numbers
    assert (crowd.turn.is_settled, crowd.budget.used) == (True, 0)


async def test_what_a_failing_session_is_answered_comes_behind_all_that_it_is_being_given(
    crowd, monkeypatch
):
    crowd.join().connection.hold()
    got: list[int] = []

    def put(runtime: str, one: OutboundMessage) -> None:
        got.append(one.message.id)
        if one.message.id == 1:
            crowd.fan_outs.settle(runtime)
            got.append(100)  # what it is answered

    monkeypatch.setattr(crowd.fan_outs, "_put_one", put)
    for number in range(2):
        crowd.give(entry(number + 1))
    crowd.fan_outs.add(("r0", "another"), entry(3))
    crowd.turn.write()
    assert got[:4] == [1, 2, 3, 100]
    assert crowd.budget.used == 0


async def test_a_session_that_ends_while_it_is_given_messages_leaves_the_rest_of_them(
    crowd, monkeypatch
):
    crowd.join().connection.hold()
    got: list[int] = []
    left: list[int] = []

    def put(runtime: str, one: OutboundMessage) -> None:
        got.append(one.message.id)
        left.extend(ids(crowd.fan_outs.take(runtime)))

    monkeypatch.setattr(crowd.fan_outs, "_put_one", put)
    for number in range(3):
        crowd.give(entry(number + 1))
    crowd.turn.write()
    assert (got, left, crowd.budget.used) == ([1], [2, 3], 0)


# ---- in a node


def runtime(number: int) -> str:
    return f"hyperty-runtime://{DOMAIN}/r{number}"


async def subscribed(world):
    """Let many runtimes subscribe to an object of the first; return them, and the path."""
    peers = [await world.peer(runtime(number)) for number in range(MANY + 1)]
    (obj,) = await peers[0].allocate("comm")
    path = f"{obj}/children/chat"
    for peer in peers[1:]:
        answer = await peer.ask("subscribe", f"{peer.runtime}/sm", SM, resources=[path])
        assert answer.code == 200
    return peers, obj, path


@pytest.fixture
def hold(monkeypatch):
    """Return what stops fan-outs; they go on when it is called again."""
    go_on = FanOuts.write
    is_held = False

    def write(fan_outs, *when):
        if not is_held:
            go_on(fan_outs, *when)

    def turn():
        nonlocal is_held
        is_held = not is_held

    monkeypatch.setattr(FanOuts, "write", write)
    return turn


async def test_all_sessions_of_a_node_get_all_messages_in_order(monkeypatch):
    monkeypatch.setattr(connections, "WRITE_SLICE", 0.0)
    async with open_system_network() as network, open_world(network) as world:
        peers, obj, path = await subscribed(world)
        (last,) = await peers[-1].allocate()
        sent = []
        for number in range(30):
            sent += [
                await peers[0].post("update", obj, path, value=number),
                await peers[0].post("create", obj, last, value=number),
            ]
        with trio.fail_after(60):
            for peer in peers[1:]:
                its = [one for one in sent if one.to == path or peer is peers[-1]]
                assert [await peer.hear() for _ in its] == its


async def test_a_message_to_one_session_does_not_overtake_one_to_many(hold):
    async with open_system_network() as network, open_world(network) as world:
        peers, obj, path = await subscribed(world)
        (last,) = await peers[-1].allocate()
        hold()
        sent = [
            await peers[0].post("update", obj, path, value=1),
            await peers[0].post("create", obj, last, value=1),
        ]
        with trio.fail_after(60):
            assert [await peers[-1].hear() for _ in sent] == sent
            hold()
            assert [await peer.hear() for peer in peers[1:-1]] == sent[:1] * (MANY - 1)


async def test_a_session_that_is_closed_gets_what_was_published_before(hold):
    async with open_system_network() as network, open_world(network) as world:
        peers, obj, path = await subscribed(world)
        hold()
        sent = await peers[0].post("update", obj, path, value=1)
        await settled(peers[0])
        assert (await peers[1].control("close")).code == 200
        assert peers[1].heard == [sent]
        assert world.node.counters.drops[DropReason.SESSION_GONE] == 0
        hold()


async def test_an_answer_of_the_node_does_not_overtake_what_was_published_before(hold):
    async with open_system_network() as network, open_world(network) as world:
        peers, obj, path = await subscribed(world)
        hold()
        sent = await peers[0].post("update", obj, path, value=1)
        await settled(peers[0])
        assert (await peers[1].control("no such method")).code == 400
        assert peers[1].heard == [sent]
        hold()


async def test_a_node_that_stops_hands_all_over(hold):
    async with (
        open_system_network() as network,
        trio.open_nursery() as hearing,
        open_world(network) as world,
    ):
        peers, obj, path = await subscribed(world)
        hold()
        sent = await peers[0].post("update", obj, path, value=1)
        await settled(peers[0])

        async def hear(peer) -> None:
            assert await peer.hear() == sent

        for peer in peers[1:]:
            hearing.start_soon(hear, peer)


async def test_a_session_that_is_over_gets_nothing_any_more(hold, mock_clock):
    """A later session of the same runtime has not subscribed."""
    async with open_world() as world:
        peers, obj, path = await subscribed(world)
        hold()
        await peers[0].post("update", obj, path, value=1)
        await settled(peers[0])
        await peers[1].link.aclose()
        while (await world.states())[runtime(1)] != "detached":
            await trio.lowlevel.checkpoint()
        mock_clock.jump(PATIENCE)
        while runtime(1) in await world.states():
            await trio.lowlevel.checkpoint()
        assert world.node.counters.drops[DropReason.SESSION_GONE] == 1
        hold()
        assert {(await peer.hear()).to for peer in peers[2:]} == {path}


async def settled(peer) -> None:
    """Return when the node has handled all that a peer has sent."""
    await peer.ask("subscribe", f"{peer.runtime}/sm", SM, resources=[])
