"""Bodies in chunks, at the end that keeps them: whole or refused once, in bounded memory."""

from base64 import b64encode
from contextlib import suppress

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm.bus.chunks import (
    AssembliesCore,
    HeldBodiesCore,
    TransferBudget,
    chunk_count,
    chunk_entry,
    chunk_of,
    chunk_size,
    data_in,
    join_chunks,
)
from specs.bodies.chunk import ChunkedBody, ChunkWanted, TransferBegun
from specs.errors import BadMessageError
from specs.identity import SenderIdentity
from specs.limits.protocol import (
    BODY_BYTES,
    MAX_ID,
    MAX_JSON_TEXT,
    MAX_MESSAGE_BYTES,
    OUTBOX_BYTES,
)
from specs.limits.transfer import (
    ALL_BODIES,
    ARRIVING,
    CHUNK_BYTES,
    CHUNK_SECONDS,
    CHUNK_WINDOW,
    HELD_SILENCE,
    PEER_ARRIVING,
    PEER_BODIES,
    PEER_TRANSFERS,
    READING,
    TRANSFER_BYTES,
    TRANSFER_MOST,
    TRANSFER_SILENCE,
    TRANSFER_TIMEOUT,
)
from specs.message import Message, MessageType
from tests.support.chance import examples
from transports.bodies import write_body
from transports.codec import check_size, encode

A, B = "hyperty://a.ex/1", "hyperty://b.ex/1"
SIZES = st.sampled_from([
    1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES, 5 * CHUNK_BYTES + 7
])  # fmt: skip


def content(size):
    return (b"%d," % size * (size // 2 + 1))[:size]


def message(from_=A, runtime="hyperty-runtime://a.ex/ra", id_=1):
    identity = None if runtime is None else SenderIdentity(runtime)
    return Message(id_, MessageType.CREATE, from_, B, {}, identity)


def core(limit=TRANSFER_BYTES):
    budget = TransferBudget(limit)
    return AssembliesCore(budget), budget


def begun(assemblies, size, number=7, sender=None, now=0.0):
    assemblies.begin(sender or message(), TransferBegun(number, size), now)


def refused(work, *args):
    with pytest.raises(BadMessageError) as caught:
        work(*args)
    return caught.value.code


def test_the_largest_chunk_is_a_body_of_a_message():
    """RELIABILITY L4: neither the message nor a text in it is larger than any other may be."""
    chunk = chunk_of(b"x" * TRANSFER_MOST, MAX_ID, chunk_count(TRANSFER_MOST) - 2)
    line = encode(attrs.evolve(message(), body={"chunk": write_body(chunk)}))
    assert len(encode(attrs.evolve(message(), body={}))) + BODY_BYTES > len(line)
    assert len(line) < MAX_MESSAGE_BYTES
    check_size(line, write_body(chunk))
    assert max(map(len, chunk.data)) == MAX_JSON_TEXT


@st.composite
def schedules(draw):
    """Chunks of one body as they come: some lost, twice, early, altered; and the transfer ended."""
    size = draw(SIZES)
    order = ["begin", *range(chunk_count(size))]
    for kind in draw(st.lists(st.sampled_from(["lose", "double", "swap", "alter", "end"]))):
        at = draw(st.integers(0, max(0, len(order) - 1)))
        match kind:
            case "lose" if order:
                del order[at]
            case "double" if order:
                order.insert(draw(st.integers(at, len(order))), order[at])
            case "swap" if order:
                order.insert(draw(st.integers(0, len(order))), order.pop(at))
            case "alter" if order and isinstance(order[at], int):
                order[at] = ("altered", order[at])
            case "end":
                order.insert(at, "end")
    return size, order


def took_in(assemblies, body, step):
    """Give one step of a schedule to the core, as the receiver of its messages does."""
    match step:
        case "end":
            assemblies.end(A, 7)
            return
        case "begin":
            with suppress(BadMessageError):
                begun(assemblies, len(body))
            return
        case ("altered", index):
            chunk = chunk_of(b"?" * len(body), 7, index)
        case index:
            chunk = chunk_of(body, 7, index)
    with suppress(BadMessageError):
        assemblies.take(message(), chunk, 0.0)


@given(schedules())
@settings(max_examples=examples(200))
def test_a_body_comes_whole_or_its_message_is_refused(schedule):
    """P2P-21, P2P-22: whatever is lost, doubled, reordered, altered or cancelled."""
    size, order = schedule
    body, (assemblies, budget) = content(size), core()
    for step in order:
        took_in(assemblies, body, step)
    said = chunk_entry(body, 7)
    try:
        whole = assemblies.whole(message(), said)
    except BadMessageError:
        assert order != ["begin", *range(chunk_count(size))]
    else:
        assert whole.body == body
        assert budget.used == size
        assemblies.release(whole)
    assert budget.used == 0
    assert len(assemblies) == 0
    assert refused(assemblies.whole, message(), chunk_entry(body, 7)) == 409, "and only once"


def test_in_order_a_body_comes_whole():
    for size in (1, CHUNK_BYTES, 2 * CHUNK_BYTES + 1):
        body, (assemblies, _) = content(size), core()
        begun(assemblies, size)
        for index in range(chunk_count(size)):
            assemblies.take(message(), chunk_of(body, 7, index), 0.0)
        assert assemblies.whole(message(), chunk_entry(body, 7)).body == body


@pytest.mark.parametrize(
    ("lie", "code"),
    [
        ({"size": 2 * CHUNK_BYTES}, 409),
        ({"size": CHUNK_BYTES + 1}, 400),
        ({"index": 2}, 409),
        ({"index": 0}, 409),
        ({"data": ("!!!!",)}, 400),
        ({"data": (b64encode(b"short").decode(),)}, 400),
    ],
)
def test_a_chunk_that_lies_ends_its_transfer(lie, code):
    """About its size, its place, or its bytes."""
    body, (assemblies, budget) = b"x" * 3 * CHUNK_BYTES, core()
    begun(assemblies, len(body))
    assemblies.take(message(), chunk_of(body, 7, 0), 0.0)
    chunk = attrs.evolve(chunk_of(body, 7, 1), **lie)
    assert refused(assemblies.take, message(), chunk, 0.0) == code
    assert budget.used == 0
    assert refused(assemblies.take, message(), chunk_of(body, 7, 1), 0.0) == 409


def test_a_body_that_was_altered_whole_is_refused():
    body, (assemblies, budget) = b"x" * 10, core()
    begun(assemblies, len(body))
    assemblies.take(message(), chunk_of(body, 7, 0), 0.0)
    said = chunk_entry(b"y" * 10, 7)
    assert refused(assemblies.whole, message(), said) == 400
    assert budget.used == 0
    assert refused(join_chunks, [body], said) == 400


def test_of_the_transfer_of_another_sender_nothing_is_taken_or_ended():
    body, (assemblies, _) = content(2 * CHUNK_BYTES), core()
    begun(assemblies, len(body))
    assemblies.take(message(), chunk_of(body, 7, 0), 0.0)
    other = message("hyperty://c.ex/1", "hyperty-runtime://c.ex/rc")
    assert refused(assemblies.take, other, chunk_of(body, 7, 1), 0.0) == 409
    assert refused(assemblies.whole, other, chunk_entry(body, 7)) == 409
    assemblies.end(other.from_, 7)
    assemblies.take(message(), chunk_of(body, 7, 1), 0.0)
    assert assemblies.whole(message(), chunk_entry(body, 7)).body == body


def peer(name, address=1):
    return message(f"hyperty://{name}.ex/{address}", f"hyperty-runtime://{name}.ex/r")


def test_a_peer_has_so_many_bodies_in_memory():
    """One peer, with any number of addresses, leaves room for others."""
    assemblies, budget = core()
    for number in range(1, PEER_TRANSFERS + 1):
        sender = peer("a", number)
        begun(assemblies, 1, sender=sender)
        assemblies.take(sender, chunk_of(b"x", 7, 0), 0.0)
    assert refused(begun, assemblies, 1, 8, peer("a")) == 503
    begun(assemblies, 1, sender=peer("b"))
    assemblies.clear()
    assert budget.used == 0
    begun(assemblies, 1, sender=peer("a"))


def test_peers_have_so_much_memory():
    """RELIABILITY L2: so have all of them, and those without an identity share one share."""
    assemblies, budget = core(CHUNK_BYTES)
    whole = b"x" * CHUNK_BYTES

    def fill(name, count):
        for number in range(1, count + 1):
            sender = message(f"hyperty://{name}/1", name)
            begun(assemblies, CHUNK_BYTES, number, sender)
            assemblies.take(sender, chunk_of(whole, number, 0), 0.0)

    fill(None, PEER_BODIES)
    assert refused(begun, assemblies, 1, 9, message("hyperty://z.ex/1", None)) == 503
    for number in range(ALL_BODIES // PEER_BODIES - 1):
        fill(f"hyperty-runtime://{number}.ex/r", PEER_BODIES)
    assert budget.used == ALL_BODIES * CHUNK_BYTES
    assert refused(begun, assemblies, 1, 9, peer("y")) == 503
    assemblies.end("hyperty://None/1", 1)
    begun(assemblies, 1, 9, peer("y"))


def test_few_bodies_come_at_once():
    """So that their chunks fit into the outbox of a link."""
    assemblies, _ = core()
    for name in "abc"[: ARRIVING // PEER_ARRIVING]:
        for number in range(1, PEER_ARRIVING + 1):
            begun(assemblies, 2, number, peer(name))
        assert refused(begun, assemblies, 2, 9, peer(name)) == 503
    for name in "xyz"[: ARRIVING % PEER_ARRIVING]:
        begun(assemblies, 2, 1, peer(name))
    assert refused(begun, assemblies, 2, 1, peer("w")) == 503
    assemblies.take(peer("a"), chunk_of(b"xx", 1, 0), 0.0)
    begun(assemblies, 2, 1, peer("w"))
    assemblies.end(peer("w").from_, 1)
    begun(assemblies, 2, 3, peer("a"))


def test_a_body_without_memory_takes_no_place():
    assemblies, budget = core(limit=2)
    for name in "abcd"[: ALL_BODIES // PEER_BODIES]:
        for _ in range(PEER_BODIES):
            budget.take(name, 2)
    for number in range(1, ARRIVING + 1):
        assert refused(begun, assemblies, 2, number, peer(f"x{number}")) == 503
    budget.give_back("a", 2)
    begun(assemblies, 2, 1, peer("x"))


def test_peers_that_begin_without_end_keep_no_other_from_its_turn():
    assemblies, _ = core()
    evil = [peer(name) for name in "abc"]
    for number in range(ARRIVING):
        begun(assemblies, 9, number + 1, evil[number // PEER_ARRIVING])
    assert refused(begun, assemblies, 9, 1, peer("good")) == 503
    assemblies.tick(TRANSFER_SILENCE)
    now = TRANSFER_SILENCE
    # Its turn has passed meanwhile, and it asks again; they are always sooner.
    for number in range(ARRIVING):
        begun(assemblies, 9, number + 11, evil[number // PEER_ARRIVING], now)
    assert refused(begun, assemblies, 9, 1, peer("good"), now) == 503
    for number in range(PEER_ARRIVING):
        assemblies.end(evil[0].from_, number + 11)
    begun(assemblies, 9, 21, evil[0], now + 1)
    assert refused(begun, assemblies, 9, 22, evil[0], now + 1) == 503
    begun(assemblies, 9, 1, peer("good"), now + 1)


def test_chunks_to_a_runtime_fit_into_the_outbox_of_its_link():
    """RELIABILITY L2: its node does not take it for a slow consumer."""
    chunk = chunk_of(b"x" * TRANSFER_MOST, MAX_ID, 0)
    line = encode(attrs.evolve(message(), body={"chunk": write_body(chunk)}))
    assert (ARRIVING * CHUNK_WINDOW + READING) * len(line) < OUTBOX_BYTES


def test_a_body_over_the_limit_is_refused_before_it_comes():
    assemblies, _ = core(CHUNK_BYTES)
    assert refused(begun, assemblies, CHUNK_BYTES + 1) == 413


def test_a_transfer_begins_once():
    assemblies, budget = core()
    begun(assemblies, 2)
    assert refused(begun, assemblies, 2) == 409
    assert budget.used == 0


def test_a_body_counts_until_its_message_was_handled():
    assemblies, budget = core()
    begun(assemblies, 2)
    assemblies.take(message(), chunk_of(b"{}", 7, 0), 0.0)
    whole = assemblies.whole(message(), chunk_entry(b"{}", 7))
    assemblies.end(A, 7)
    assemblies.clear()
    assert budget.used == 2
    assemblies.release(whole)
    assert budget.used == 0


def test_silent_and_endless_transfers_are_given_up():
    """A peer that has gone, and one that brings a chunk now and then."""
    body, (assemblies, budget) = content(100 * CHUNK_BYTES), core()
    begun(assemblies, len(body))
    assemblies.take(message(), chunk_of(body, 7, 0), 0.0)
    assert assemblies.deadline() == TRANSFER_SILENCE
    now, index = TRANSFER_SILENCE - 1, 1
    while assemblies.deadline() > now:
        assemblies.take(message(), chunk_of(body, 7, index), now)
        now, index = now + TRANSFER_SILENCE - 1, index + 1
    assert now < 3 * TRANSFER_SILENCE
    assemblies.tick(now)
    assert (len(assemblies), budget.used) == (0, 0)


def test_a_transfer_has_its_time_and_one_as_slow_as_may_be_comes_whole():
    body, (assemblies, _) = content(TRANSFER_BYTES), core()
    begun(assemblies, len(body))
    for index in range(chunk_count(len(body)) - 1):
        now = index * CHUNK_SECONDS
        assemblies.tick(now)
        assemblies.take(message(), chunk_of(body, 7, index), now)
        assert assemblies.deadline() <= TRANSFER_TIMEOUT
    assemblies.take(message(), chunk_of(body, 7, index + 1), TRANSFER_TIMEOUT - 1)
    assemblies.tick(TRANSFER_TIMEOUT)
    assert assemblies.whole(message(), chunk_entry(body, 7)).body == body


@given(SIZES, st.randoms(use_true_random=False))
@settings(max_examples=examples(50))
def test_the_body_of_an_answer_is_read_in_any_order_and_forgotten(size, chance):
    """P2P-21."""
    body, budget = content(size), TransferBudget(TRANSFER_BYTES)
    held = HeldBodiesCore(budget)
    said = held.hold(message(id_=7), body, 0.0)
    order = list(range(chunk_count(size)))
    chance.shuffle(order)
    chunks = [b""] * len(order)
    for index in order:
        assert budget.used == size
        chunk = held.read(message(), ChunkWanted(7, index), 0.0)
        assert len(data_in(chunk)) == chunk_size(size, index)
        chunks[index] = data_in(chunk)
    assert join_chunks(chunks, said) == body
    assert (len(held), budget.used) == (0, 0)
    assert refused(held.read, message(), ChunkWanted(7, 0), 0.0) == 410


def test_the_body_of_an_answer_is_for_its_requester_only_and_has_an_end():
    budget = TransferBudget(TRANSFER_BYTES)
    held = HeldBodiesCore(budget)
    held.hold(message(id_=7), content(2 * CHUNK_BYTES), 0.0)
    assert refused(held.read, message("hyperty://c.ex/1"), ChunkWanted(7, 0), 0.0) == 410
    held.end("hyperty://c.ex/1", 7)
    held.read(message(), ChunkWanted(7, 0), CHUNK_SECONDS / 3)
    assert refused(held.read, message(), ChunkWanted(7, 2), CHUNK_SECONDS / 2) == 400
    held.tick(HELD_SILENCE)
    assert len(held) == 1
    held.tick(CHUNK_SECONDS / 3 + HELD_SILENCE)
    assert (len(held), budget.used) == (0, 0)


def test_the_body_of_an_answer_under_the_same_id_replaces_the_one_before():
    """The memory of a requester that repeats its ids is counted once, and given back."""
    budget = TransferBudget(TRANSFER_BYTES)
    held = HeldBodiesCore(budget)
    for size in (9, 5):
        held.hold(message(id_=7), content(size), 0.0)
        assert budget.used == size
    held.read(message(), ChunkWanted(7, 0), 0.0)
    assert (len(held), budget.used) == (0, 0)


def test_a_digest_is_hexadecimal():
    with pytest.raises(BadMessageError):
        ChunkedBody(7, 2, "g" * 64)
