"""What every node stub that ships keeps to, each over its own wire (STB-01..09, STB-17).

The node is a real one. Where a form cannot keep a rule, a test of its own says so by name.
"""

from itertools import pairwise

import pytest
import trio

from fsm.machines.stub_connection import STUB_CONNECTION
from specs.limits.protocol import PING_PERIOD, PONG_TIMEOUT, RECONNECT_BASE, STUB_QUEUE
from specs.reply_code import DropReason
from tests.actors.runtime.stubs.stub_world import FORMS, RB, THERE, UA, S, open_stub

BY_REQUESTS = [name for name in FORMS if FORMS[name].stub == "rest"]

ALL = pytest.mark.parametrize("form", FORMS)
BY_TOKEN = pytest.mark.parametrize("form", [name for name in FORMS if FORMS[name].has_token])
ALLOCATION = "domain://msg-node.a.ex/address-allocation"


async def heard_ids(stub, count):
    """Return the ids of what the peer hears next."""
    return [(await stub.peer.hear()).id for _ in range(count)]


@ALL
async def test_the_first_message_connects_and_is_answered(autojump_clock, form):
    """STB-03, STB-08."""
    async with open_stub(form) as stub:
        assert stub.statuses() == ["created"]
        await stub.send(stub.ask(ALLOCATION, scheme="comm", value={"number": 1}))
        (answer,) = await stub.until(1)
        assert (answer.code, answer.from_, answer.to) == (200, ALLOCATION, UA)
        assert stub.statuses() == ["created", "in-progress", "live"]


@ALL
async def test_messages_beyond_the_queue_are_refused_newest_first(autojump_clock, form):
    """STB-17."""
    async with open_stub(form) as stub:
        stub.refuse()
        asked = [stub.ask(THERE) for _ in range(STUB_QUEUE + 2)]
        await stub.send(*asked)
        await stub.status("failed")
        await stub.settle()
        refused = stub.refused()
        assert [id_ for id_, _ in refused[:2]] == [asked[-2].id, asked[-1].id]
        assert {code for _, code in refused} == {503}


@ALL
@pytest.mark.parametrize("jitter", [b"\x00\x00", b"\xff\xff"], ids=["least", "most"])
async def test_a_stub_reconnects_at_once_then_after_growing_spread_pauses(
    autojump_clock, form, jitter
):
    """STB-09, I-S8."""
    async with open_stub(form, jitter=jitter) as stub:
        await stub.live()
        await trio.sleep(1)
        stub.network.dialled.clear()
        stub.refuse()
        await trio.sleep(12)
        # Over HTTP it takes a connection that is refused to learn that those it had are gone.
        times = sorted(set(stub.network.dialled))
        pauses = [later - sooner for sooner, later in pairwise(times)]
        whole = 1.0 if jitter == b"\xff\xff" else 0.5
        wanted = [RECONNECT_BASE * 2**n * whole for n in range(4)]
        assert pauses[:4] == pytest.approx(wanted, rel=0.01)


@ALL
async def test_each_change_is_one_status_event(autojump_clock, form):
    """STB-05, I-S4."""
    async with open_stub(form) as stub:
        await stub.live()
        await stub.lose()
        await stub.status("live")
        await stub.command("disconnect")
        await stub.status("disconnected")
        states = [f.new for f in stub.tracer.facts if f.machine == STUB_CONNECTION.name]
        assert states == stub.statuses()
        assert states == [
            "created", "in-progress", "live", "disconnected", "live", "disconnected",
        ]  # fmt: skip


@BY_TOKEN
async def test_a_session_come_back_to_is_the_same(autojump_clock, form):
    """STB-09."""
    async with open_stub(form) as stub:
        await stub.live()
        await stub.lose()
        await stub.status("live")
        assert stub.sessions() == [f"{S}/session/1"] * 2


@ALL
async def test_a_disconnect_closes_the_session_and_stays(autojump_clock, form):
    """STB-04, I-S10."""
    async with open_stub(form) as stub:
        await stub.live()
        await stub.command("disconnect")
        await stub.status("disconnected")
        assert list(await stub.world.states()) == [RB]
        asked = stub.ask(THERE)
        await stub.send(asked)
        await trio.sleep(60)
        assert stub.refused()[-1] == (asked.id, 503)
        assert stub.statuses()[-1] == "disconnected"
        assert list(await stub.world.states()) == [RB]


@ALL
async def test_a_link_lost_in_the_middle_doubles_nothing_and_keeps_the_order(autojump_clock, form):
    """STB-09, I-S9: what the link had is lost at most, the rest follows."""
    async with open_stub(form) as stub:
        await stub.live()
        for n in range(1, 10):
            await stub.send(*(stub.ask(THERE, n=n) for _ in range(30)))
            stub.cut()
        last = stub.ask(THERE, n="last")
        await stub.send(last)
        ids = []
        while last.id not in ids:
            ids += await heard_ids(stub, 1)
        assert ids == sorted(set(ids))


@ALL
async def test_garbage_from_the_node_is_counted_and_the_link_kept(autojump_clock, form):
    """STB-06."""
    async with open_stub(form) as stub:
        await stub.live()
        stub.garble(b'"garble-me"', b'"garble:me:')
        await stub.peer.post("create", THERE, UA, x="garble-me")
        await stub.peer.post("create", THERE, UA, n=2)
        (came,) = await stub.until(1)
        assert came.body["n"] == 2
        assert stub.counters.drops == {DropReason.MALFORMED: 1}
        assert stub.statuses()[-1] == "live"


@ALL
async def test_a_silent_node_is_found_in_time(autojump_clock, form):
    """R8."""
    async with open_stub(form) as stub:
        await stub.live()
        await trio.sleep(3 * PING_PERIOD + 1)
        assert stub.statuses() == ["created", "in-progress", "live"]
        stub.silence()
        before = trio.current_time()
        await stub.seen("disconnected", len(stub.statuses()))
        assert trio.current_time() - before <= PING_PERIOD + PONG_TIMEOUT


@ALL
async def test_a_stub_stamps_both_directions_and_drops_messages_that_crossed_it(
    autojump_clock, form
):
    """STB-06."""
    async with open_stub(form) as stub:
        await stub.send(stub.ask(THERE, via=[S]), stub.ask(THERE))
        arrived = await stub.peer.hear()
        assert (arrived.id, arrived.via) == (2, (S,))
        await stub.peer.post("create", THERE, UA, via=[S])
        await stub.peer.post("create", THERE, UA, n=2)
        (here,) = await stub.until(1)
        assert (here.body["n"], here.via) == (2, (S,))
        assert stub.counters.drops == {DropReason.LOOP: 2}


@ALL
async def test_a_lost_link_comes_back_with_all_it_had(autojump_clock, form):
    """STB-09, MN-06: the address is its own still, and what was sent meanwhile comes."""
    async with open_stub(form) as stub:
        await stub.send(stub.ask(ALLOCATION, scheme="hyperty", value={"number": 1}))
        (answer,) = await stub.until(1)
        (address,) = answer.body["value"]["allocated"]
        stub.refuse()
        await stub.status("disconnected")
        await stub.peer.post("create", THERE, address, n="meanwhile")
        stub.allow()
        await stub.status("live")
        came = await stub.until(2)
        assert came[-1].body["n"] == "meanwhile"


@pytest.mark.parametrize("form", BY_REQUESTS)
async def test_a_connection_that_is_cut_is_no_lost_link_over_http(autojump_clock, form):
    """CON-06: what was under way is asked again; nothing is lost, nothing doubled."""
    async with open_stub(form) as stub:
        await stub.live()
        asked = []
        for n in range(8):
            some = [stub.ask(THERE, n=n) for _ in range(20)]
            await stub.send(*some)
            await stub.peer.post("create", THERE, UA, n=n)
            stub.cut()
            await stub.settle()
            asked += some
        assert await heard_ids(stub, len(asked)) == [one.id for one in asked]
        assert [one.body["n"] for one in await stub.until(8)] == list(range(8))
        assert stub.statuses() == ["created", "in-progress", "live"]
