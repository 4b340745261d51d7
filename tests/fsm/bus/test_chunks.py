"""Bodies in chunks, at the end that keeps them: whole or refused once, in bounded memory."""

import pytest

from fsm.bus.chunks import (
    AssembliesCore,
    HeldBodiesCore,
    TransferBudget,
    chunk_entry,
    chunk_of,
    join_chunks,
)
from specs.bodies.chunk import ChunkWanted, TransferBegun
from specs.errors import BadMessageError
from specs.identity import SenderIdentity
from specs.limits.transfer import (
    ALL_BODIES,
    ARRIVING,
    CHUNK_BYTES,
    CHUNK_SECONDS,
    HELD_SILENCE,
    PEER_ARRIVING,
    PEER_BODIES,
    TRANSFER_BYTES,
)
from specs.message import Message, MessageType

A, B = "hyperty://a.ex/1", "hyperty://b.ex/1"


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


def test_a_transfer_begins_once():
    assemblies, budget = core()
    begun(assemblies, 2)
    assert refused(begun, assemblies, 2) == 409
    assert budget.used == 0


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
