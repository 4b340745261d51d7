"""What a peer writes on a direct link is bounded before it is read, for each kind of link."""

import gc
import json
import tracemalloc
from contextlib import contextmanager
from itertools import cycle

import pytest
import trio

from specs.limits.p2p import CONTROL_BURST, CONTROL_BYTES
from specs.limits.protocol import FRAME_MESSAGES, MAX_MALFORMED
from specs.reply_code import DropReason
from tests.support.runtime.domain import DomainOptions, go_live, open_domain
from transports.link import Kind

KINDS = (Kind.UNIX, Kind.TCP, Kind.WEBSOCKET, Kind.WEBRTC)

ALICE, BOB = "hyperty-runtime://a.example/alice", "hyperty-runtime://a.example/bob"


def behind(from_, to):
    return json.dumps({"p2p": "behind", "from": from_, "to": to}, separators=(",", ":")).encode()


def in_frames(lines, most=FRAME_MESSAGES):
    lines = list(lines)
    return [b"\n".join(lines[at : at + most]) for at in range(0, len(lines), most)]


def long_announcements():
    return [behind(f"{ALICE}/{number}", f"x://a/{number}" + "x" * 250_000) for number in range(300)]


def odd_announcements():
    return [behind(f"{ALICE}/{number}", "no address") for number in range(300)]


def many_announcements():
    pairs = ((f"{ALICE}/{number}/" + "x" * 300, BOB) for number in range(CONTROL_BURST + 100))
    return in_frames(behind(*pair) for pair in pairs)


def many_pings():
    return in_frames([b'{"p2p":"ping"}'] * (CONTROL_BURST + 100))


def old_acknowledgements():
    return in_frames([b'{"p2p":"ack","seq":0}'] * (CONTROL_BURST + 100))


def one_large_ping():
    return [b'{"p2p":"ping","x":"' + b"x" * CONTROL_BYTES + b'"}'] * 2


def lines_without_end():
    return [b"\n".join([b'{"p2p":"ping"}'] * 10_000)] * 100


def malformed_messages():
    return in_frames([b'{"id":1}'] * 20 * MAX_MALFORMED)


FLOODS = {
    long_announcements: (DropReason.MALFORMED, f"more than {CONTROL_BYTES} bytes"),
    odd_announcements: (DropReason.MALFORMED, "of no addresses"),
    many_announcements: (DropReason.OVERFLOW, "too many control lines"),
    many_pings: (DropReason.OVERFLOW, "too many control lines"),
    old_acknowledgements: (DropReason.OVERFLOW, "too many control lines"),
    one_large_ping: (DropReason.MALFORMED, f"more than {CONTROL_BYTES} bytes"),
    lines_without_end: (DropReason.OVERFLOW, f"more than {FRAME_MESSAGES} lines"),
    malformed_messages: (DropReason.MALFORMED, "too many malformed messages"),
}


@contextmanager
def growth():
    """Give the bytes of memory that were taken inside, when it is left."""
    grown = []
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        yield grown
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        grown.append(after - before)
    finally:
        tracemalloc.stop()


async def write(link, frames):
    """Write frames until the other end has had enough; return how many bytes went."""
    size = 0
    try:
        for frame in frames:
            # Beside what its own runtime writes.
            await link._outward.send((trio.current_time(), frame))
            size += len(frame)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    return size


def reasons(member):
    return [fact.why for fact in member.tracer.facts if fact.new == "disconnected"]


@pytest.mark.parametrize(
    ("flood", "kind"),
    list(zip(FLOODS, cycle(KINDS), strict=False)),
    ids=lambda case: getattr(case, "__name__", case),
)
async def test_a_flood_on_a_link_costs_the_peer_the_link_and_no_memory(kind, flood, autojump_clock):
    drop, why = FLOODS[flood]
    frames = flood()
    async with open_domain("alice", "bob", "carol", options=DomainOptions(kinds=(kind,))) as domain:
        await go_live(domain, "carol", "bob")
        await go_live(domain, "alice", "bob")
        alice, bob, carol = (domain[name] for name in ("alice", "bob", "carol"))
        wire = domain.network.open_wires(kind)[-1]
        with growth() as grown, trio.fail_after(600):
            for end in (wire.dialler, wire.acceptor):
                await write(end, frames)
            victims = [alice, bob]
            assert (await bob.ask(alice, "by the node")).value == "by the node"
            assert any(why in (text or "") for one in victims for text in reasons(one))
            assert (await carol.ask(bob, "still served")).value == "still served"
            assert (await alice.ask(bob, "by the node")).value == "by the node"
        assert any(one.runtime.counters.drops[drop] for one in victims)
        assert await carol.status(bob) == "live"
        assert grown[0] < 16_000_000
