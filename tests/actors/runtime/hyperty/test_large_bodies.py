"""Bodies over the limit of a message travel in chunks: whole, or refused once (P2P-21, P2P-22)."""

from functools import partial
from random import Random

import attrs
import pytest
import trio
import trio.testing

import actors
from actors.hyperties import Caller, Echo
from actors.policy.store import PolicyConfig
from actors.testing.chaos.network import ChaosNetwork
from actors.testing.chaos.toxics import Latency
from fsm.bus.chunks import chunk_count, chunk_entry, chunk_of
from fsm.judge.trace_line import Verdict
from fsm.policy.reading import read_set
from specs.limits.bus import CONCURRENT, PEER_WAITING
from specs.limits.protocol import BODY_BYTES
from specs.limits.transfer import (
    ARRIVING,
    BESIDE_TEXT,
    CHUNK_BYTES,
    PEER_ARRIVING,
    TRANSFER_BYTES,
    TRANSFER_SILENCE,
)
from specs.message import MessageType
from specs.trace import Op
from tests.support.runtime.abroad import open_two
from tests.support.runtime.domain import DomainOptions, judged, open_domain
from transports.bodies import write_body
from transports.memory import MemoryNetwork

LARGE = 'é"\\' * 100_000
CHUNKS = len(LARGE.encode()) // CHUNK_BYTES


def transfers(member):
    return member.runtime.transfers


def assert_nothing_is_kept(*members):
    for member in members:
        shared = transfers(member)
        assert (shared.arriving.used, shared.held.used) == (0, 0)
        assert shared.reading.are_free
        assert shared.sending.are_free


def sent_to(member, other):
    """The requests of a runtime to the hyperty of another."""
    sent = [fact for fact in member.facts(Op.XMIT) if fact.to == other.address]
    return [fact for fact in sent if fact.type == "create"]


# ---- whole


async def test_between_two_domains_a_body_goes_whole(autojump_clock):
    """By both nodes, and the sandbox between them."""
    async with open_two() as world:
        answer = await world.a.ask(world.b, LARGE)
        assert (answer.code, answer.body["value"] == LARGE) == (200, True)


async def test_more_senders_than_a_receiver_admits_offer_their_bodies_again(autojump_clock):
    names = ("alice", "carol", "dave", "erin")
    async with open_domain("bob", *names, options=DomainOptions(kinds=())) as domain:
        bob, codes = domain["bob"], []

        async def ask(member):
            codes.append((await member.ask(bob, LARGE)).code)

        async with trio.open_nursery() as nursery:
            for name in names * PEER_ARRIVING:
                nursery.start_soon(ask, domain[name])
        assert len(codes) > ARRIVING
        assert set(codes) == {200}
        assert_nothing_is_kept(bob, *map(domain.__getitem__, names))


# ---- refused


async def test_a_body_over_the_configured_size_is_refused_at_once(autojump_clock):
    """P2P-21: 413 by the sender, with the limit in the description, and nothing is sent."""
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        answer = await alice.ask(bob, "x" * TRANSFER_BYTES)
        assert answer.code == 413
        assert str(TRANSFER_BYTES) in answer.body["description"]
        assert not sent_to(alice, bob)


async def test_a_transfer_that_is_refused_is_not_ended_by_its_sender(autojump_clock):
    options = DomainOptions(kinds=(), more={"bob": {"largest_body": BODY_BYTES}})
    async with open_domain("alice", "bob", options=options) as domain:
        alice, bob = domain["alice"], domain["bob"]
        assert (await alice.ask(bob, LARGE)).code == 413
        await trio.testing.wait_all_tasks_blocked()
        assert len(sent_to(alice, bob)) == 1


# ---- ended


async def test_a_cancelled_request_has_the_receiver_forget_its_chunks(autojump_clock):
    """P2P-22."""
    async with open_domain("alice", "bob", options=DomainOptions(kinds=())) as domain:
        alice, bob = domain["alice"], domain["bob"]
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(alice.ask, bob, LARGE)
                while not transfers(bob).arriving.used:
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert bob.hyperty.heard == []
        assert_nothing_is_kept(alice, bob)
        assert (await alice.ask(bob, LARGE)).code == 200


async def test_a_large_request_that_a_busy_hyperty_refuses_gives_its_memory_back(autojump_clock):
    async def hang(_message):
        await trio.sleep_forever()

    async with open_domain("alice", "bob", options=DomainOptions(kinds=())) as domain:
        alice, bob = domain["alice"], domain["bob"]
        bob.hyperty.on_request = hang
        senders = [alice]
        for name, hyperty in (("second", Echo()), ("third", Echo())):
            address = await alice.runtime.deploy(name, lambda made=hyperty: made)
            senders.append(attrs.evolve(alice, hyperty=hyperty, address=address))
        for number in range(CONCURRENT + PEER_WAITING):
            await senders[number % 3].post(bob, number)
        await trio.testing.wait_all_tasks_blocked()
        assert (await alice.ask(bob, LARGE)).code == 503
        assert_nothing_is_kept(bob)


# ---- attacked


async def give(alice, bob, body, last=None):
    """Send a body in chunks as number 1, up to a place, by hand."""
    context = alice.hyperty._participant
    begun = {"step": "begin", "transfer": 1, "size": len(body)}
    codes = [(await context.ask(bob.address, MessageType.CREATE, {"chunk": begun})).code]
    for index in range(chunk_count(len(body)) if last is None else last):
        chunk = {"step": "give", **write_body(chunk_of(body, 1, index))}
        answer = await context.ask(bob.address, MessageType.CREATE, {"chunk": chunk})
        codes.append(answer.code)
    assert set(codes) == {200}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"[1]", 400),
        (b"{", 400),
        (b'{"value": NaN}', 400),
        (b'{"value":' + b"[" * 40 + b"]" * 40 + b"}", 413),
        (b'{"value":' + b"[" * 2**20 + b"]" * 2**20 + b"}", 413),
    ],
    ids=["list", "cut", "nan", "deep", "parts"],
)
async def test_a_body_that_is_no_message_is_refused(body, code, autojump_clock):
    async with open_domain("alice", "bob", options=DomainOptions(kinds=())) as domain:
        alice, bob = domain["alice"], domain["bob"]
        context, said = alice.hyperty._participant, chunk_entry(body, 1)
        await give(alice, bob, body)
        whole = {"chunks": write_body(said)}
        answer = await context.ask(bob.address, MessageType.CREATE, whole)
        assert answer.code == code
        again = await context.ask(bob.address, MessageType.CREATE, whole)
        assert again.code == 409
        assert_nothing_is_kept(bob)
        assert bob.hyperty.heard == []


async def test_what_policies_read_stands_beside_the_chunks(autojump_clock):
    """POL-13: so a rule holds for a large body, and its sender cannot hide it in the chunks."""
    rule = {"id": "r", "effect": "deny", "condition": {"resource": {"equals": "/secret"}}}
    stamp = {"id": "s", "effect": "permit", "obligations": {"permit": [{"do": "stamp"}]}}
    rules = [rule, {**stamp, "condition": {"msgType": {"equals": "session"}}}]
    policy = read_set({"id": "p", "policies": [{"id": "p", "rules": rules}]}, "test")
    options = DomainOptions(kinds=(), policies={"bob": PolicyConfig(sets=(policy,))})
    async with open_domain("alice", "bob", options=options) as domain:
        alice, bob, heard = domain["alice"], domain["bob"], []

        async def on_request(message):
            heard.append((message.body.get("resource"), message.body.get("auth")))

        bob.hyperty.on_request = on_request
        ask = partial(alice.hyperty.request, bob.address, LARGE)
        assert (await ask(path="/open")).code == 200
        assert (await ask(path="/secret")).code == 403
        assert (await ask(path="/" + "x" * BESIDE_TEXT)).code == 413
        body = b'{"value":1,"resource":"/secret","auth":true}'
        await give(alice, bob, body)
        said = {"chunks": write_body(chunk_entry(body, 1))}
        answer = await alice.hyperty._participant.ask(bob.address, MessageType.CREATE, said)
        assert answer.code == 200
        assert heard == [("/open", None), (None, None)]
        assert_nothing_is_kept(alice, bob)


class Large(actors.Hyperty):
    async def on_request(self, message):
        return LARGE


async def test_an_answer_that_comes_too_slowly_is_given_up(autojump_clock):
    """Its chunks keep permits that other answers wait for."""
    network = ChaosNetwork(MemoryNetwork(), Random(1))  # noqa: S311 - for a test
    async with (
        actors.open_node("a.example", network=network.end("node")) as node,
        actors.open_runtime("a.example", "ra", node=node.url, network=network.end("ra")) as here,
        actors.open_runtime("a.example", "rb", node=node.url, network=network.end("rb")) as there,
    ):
        caller, large = await here.deploy(Caller), await there.deploy(Large)
        with network.toxic(Latency(TRANSFER_SILENCE / 2 - 1), ("node", "rb")):
            begun = trio.current_time()
            answer = await caller.request(large.url)
            assert (answer.code, "too slowly" in answer.body["description"]) == (408, True)
            assert trio.current_time() - begun < 4 * TRANSFER_SILENCE
        assert here._running.transfers.reading.are_free
        assert (await caller.request(large.url)).value == LARGE


# ---- real sockets


async def test_a_large_request_and_its_answer_go_by_the_node_whole(autojump_clock):
    """P2P-21: several chunks each way, and the machines of both ends step as declared."""
    async with open_domain("alice", "bob", options=DomainOptions(kinds=())) as domain:
        alice, bob = domain["alice"], domain["bob"]
        answer = await alice.ask(bob, LARGE)
        assert (answer.code, answer.body["value"] == LARGE) == (200, True)
        assert bob.hyperty.heard == [LARGE]
        assert len(sent_to(alice, bob)) > 2 * CHUNKS
        assert sent_to(bob, alice) == [], "all requests are those of the requester"
        assert_nothing_is_kept(alice, bob)
    assert judged(alice).verdict is judged(bob).verdict is Verdict.CONFORMANT
