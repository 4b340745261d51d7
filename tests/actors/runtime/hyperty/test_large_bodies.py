"""Bodies over the limit of a message travel in chunks: whole, or refused once (P2P-21, P2P-22)."""

from base64 import b64encode
from collections import Counter
from contextlib import asynccontextmanager
from functools import partial
from random import Random

import pytest
import trio
import trio.testing

import actors
from actors.hyperties import Caller, Echo
from actors.policy.store import PolicyConfig
from actors.runtime.bus.transfers import Permits
from actors.testing.chaos.network import ChaosNetwork
from actors.testing.chaos.toxics import Latency
from fsm.bus.chunks import chunk_count, chunk_entry, chunk_of
from fsm.judge.trace_line import Verdict
from fsm.p2p.dialling import LinkPolicy, P2pUse, P2pWait
from fsm.policy.reading import read_set
from specs.limits.bus import CONCURRENT
from specs.limits.protocol import BODY_BYTES
from specs.limits.transfer import (
    ARRIVING,
    BESIDE_TEXT,
    CHUNK_BYTES,
    CHUNK_WINDOW,
    PEER_ARRIVING,
    PEER_READING,
    READING,
    TRANSFER_BYTES,
    TRANSFER_RETRY,
    TRANSFER_SILENCE,
)
from specs.message import MessageType
from specs.trace import Op
from tests.support.runtime.abroad import open_two
from tests.support.runtime.domain import DomainOptions, go_live, judged, open_domain
from tests.support.wire.wire_peer import LinkPeer
from transports.bodies import write_body
from transports.link import Kind as Carrier
from transports.memory import MemoryNetwork

LARGE = 'é"\\' * 100_000
CHUNKS = len(LARGE.encode()) // CHUNK_BYTES
"""Chunks that it has, at least."""


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


async def test_by_a_live_link_chunks_need_no_node(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
        node = len(domain.node_tracer.facts)
        answer = await alice.ask(bob, LARGE)
        assert answer.body["value"] == LARGE
        passed = [fact for fact in domain.node_tracer.facts[node:] if fact.to == bob.address]
        assert passed == []


async def test_chunks_of_a_message_without_p2p_go_by_the_node_as_well(autojump_clock):
    """C-21."""
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
        sent = len(alice.facts(Op.XMIT))
        body = {"value": LARGE, "p2p": False}
        answer = await alice.hyperty.ask(bob.address, MessageType.CREATE, body)
        assert answer.body["value"] == LARGE
        stubs = {fact.stub for fact in alice.facts(Op.XMIT)[sent:] if fact.to == bob.address}
        assert stubs == {f"{alice.runtime.url}/protostub/1"}


async def test_between_two_domains_a_body_goes_whole(autojump_clock):
    """By both nodes, and the sandbox between them."""
    async with open_two() as world:
        answer = await world.a.ask(world.b, LARGE)
        assert (answer.code, answer.body["value"] == LARGE) == (200, True)


async def test_chunks_that_a_lost_link_carried_go_on_by_the_node(autojump_clock):
    """P2P-15: the receiver handles the message once."""
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
        sent = len(sent_to(alice, bob))
        answers = []

        async def ask():
            answers.append(await alice.ask(bob, LARGE))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            while len(sent_to(alice, bob)) < sent + 1 + CHUNK_WINDOW:
                await trio.lowlevel.checkpoint()
            domain.cut_links(Carrier.TCP)
        assert (answers[0].code, answers[0].body.get("value") == LARGE) == (200, True)
        assert bob.hyperty.heard == ["first", LARGE]
        assert_nothing_is_kept(alice, bob)


async def test_many_large_requests_at_once_all_come(autojump_clock):
    """Those that find no turn wait, and no node takes a runtime for a slow consumer (L1)."""
    async with open_domain("alice", "bob", options=DomainOptions(kinds=())) as domain:
        alice, bob = domain["alice"], domain["bob"]
        codes, before = [], trio.current_time()

        async def ask(number):
            answer = await alice.ask(bob, f"{number}" * BODY_BYTES)
            codes.append((answer.code, answer.body["value"][0]))

        async with trio.open_nursery() as nursery:
            for number in range(40):
                nursery.start_soon(ask, number)
        assert [code for code, _ in codes] == [200] * 40
        assert trio.current_time() - before < TRANSFER_RETRY, "none had to be offered again"
        assert_nothing_is_kept(alice, bob)


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


async def test_the_limit_of_the_receiver_is_said_by_the_first_chunk(autojump_clock):
    limit = 100_000
    async with actors.open_node("a.example") as node:
        config = partial(actors.RuntimeConfig, domain="a.example", node=node.url)
        async with (
            actors.open_runtime(config(name="ra")) as here,
            actors.open_runtime(config(name="rb", largest_body=limit)) as there,
        ):
            caller, echo = await here.deploy(Caller), await there.deploy(Echo)
            answer = await caller.request(echo.url, "x" * limit)
            assert (answer.code, str(limit) in answer.body["description"]) == (413, True)


async def test_a_transfer_that_is_refused_is_not_ended_by_its_sender(autojump_clock, monkeypatch):
    async with open_domain("alice", "bob", options=DomainOptions(kinds=())) as domain:
        alice, bob = domain["alice"], domain["bob"]
        monkeypatch.setattr(transfers(bob).arriving, "limit", BODY_BYTES)
        assert (await alice.ask(bob, LARGE)).code == 413
        await trio.testing.wait_all_tasks_blocked()
        assert len(sent_to(alice, bob)) == 1


@pytest.mark.parametrize("largest", [BODY_BYTES - 1, 10**12])
def test_a_limit_out_of_range_is_refused(largest):
    with pytest.raises(ValueError, match="largest_body"):
        actors.RuntimeConfig(domain="a.example", name="ra", node="ws://x", largest_body=largest)


async def test_parts_of_a_runtime_take_no_chunks(autojump_clock):
    async with open_domain("alice") as domain:
        alice = domain["alice"]
        answer = await alice.hyperty.request(f"{alice.runtime.url}/registry", LARGE)
        assert (answer.code, str(BODY_BYTES) in answer.body["description"]) == (413, True)


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


async def test_a_cancelled_reader_has_the_body_of_its_answer_forgotten(autojump_clock):
    """P2P-22."""
    async with open_domain("alice", "bob", options=DomainOptions(kinds=())) as domain:
        alice, bob = domain["alice"], domain["bob"]
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(alice.ask, bob, LARGE)
                while transfers(alice).reading.are_free:
                    await trio.lowlevel.checkpoint()
                assert transfers(bob).held.used
                scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert_nothing_is_kept(alice, bob)


async def test_a_receiver_that_vanishes_has_the_request_refused_once(autojump_clock):
    async with open_domain("alice", options=DomainOptions(kinds=())) as domain:
        alice, answers = domain["alice"], []

        async def ask(bob):
            answers.append(await alice.ask(bob, LARGE))

        async with trio.open_nursery() as nursery, domain.visitor("bob") as bob:
            nursery.start_soon(ask, bob)
            while not transfers(bob).arriving.used:
                await trio.lowlevel.checkpoint()
        assert [answer.code in {404, 408, 503} for answer in answers] == [True]
        assert_nothing_is_kept(alice)


async def test_a_sender_that_vanishes_leaves_nothing_for_long(autojump_clock):
    async with open_domain("alice", "bob", options=DomainOptions(kinds=())) as domain:
        alice, bob = domain["alice"], domain["bob"]
        await give(alice, bob, b"x" * 2 * CHUNK_BYTES, last=1)
        assert transfers(bob).arriving.used
        await trio.sleep(TRANSFER_SILENCE + 1)
        assert_nothing_is_kept(bob)


async def test_an_undeployed_receiver_gives_all_memory_back(autojump_clock):
    async with open_domain("alice", "bob", options=DomainOptions(kinds=())) as domain:
        alice, bob = domain["alice"], domain["bob"]
        await give(alice, bob, b"x" * 2 * CHUNK_BYTES, last=1)
        await bob.runtime.undeploy(bob.address)
        assert_nothing_is_kept(bob)


async def test_a_large_request_that_a_busy_hyperty_refuses_gives_its_memory_back(
    autojump_clock, monkeypatch
):
    async def hang(_message):
        await trio.sleep_forever()

    monkeypatch.setattr("actors.runtime.hyperty.host.PEER_WAITING", 1)
    async with (
        open_domain("alice", "bob", options=DomainOptions(kinds=())) as domain,
        trio.open_nursery() as nursery,
    ):
        alice, bob = domain["alice"], domain["bob"]
        bob.hyperty.on_request = hang
        for value in range(CONCURRENT):
            nursery.start_soon(alice.ask, bob, value)
        await trio.testing.wait_all_tasks_blocked()
        assert (await alice.ask(bob, LARGE)).code == 503
        assert_nothing_is_kept(bob)
        nursery.cancel_scope.cancel()


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


async def test_a_body_in_chunks_cannot_say_who_its_sender_is(autojump_clock):
    """MN-05: nor which stubs it has crossed."""
    async with open_domain("alice", "bob", options=DomainOptions(kinds=())) as domain:
        alice, bob, heard = domain["alice"], domain["bob"], []
        body = b'{"value":1,"identity":{"runtime":"hyperty-runtime://x.ex/x"},"via":["a://b/c"]}'

        async def on_request(message):
            heard.append(message)

        bob.hyperty.on_request = on_request
        await give(alice, bob, body)
        said = {"chunks": write_body(chunk_entry(body, 1))}
        await alice.hyperty._participant.ask(bob.address, MessageType.CREATE, said)
        assert heard[0].identity.runtime == alice.runtime.url
        assert "identity" not in heard[0].body
        assert "a://b/c" not in heard[0].via


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


async def test_a_slow_peer_takes_a_few_permits_only(autojump_clock):
    permits, order = Permits(READING, PEER_READING), []

    async def work(peer, seconds):
        async with permits.of(peer):
            await trio.sleep(seconds)
            order.append(peer)

    async with trio.open_nursery() as nursery:
        for _ in range(READING):
            nursery.start_soon(work, "slow", 10)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(READING):
            nursery.start_soon(work, "quick", 1)
    assert order == ["quick"] * READING + ["slow"] * READING
    assert permits.are_free


@asynccontextmanager
async def open_pair(**wanted):
    """Two runtimes of real sockets: a hyperty that asks, one that echoes, and its runtime."""
    async with actors.open_node("a.example") as node:
        config = partial(actors.RuntimeConfig, domain="a.example", node=node.url, **wanted)
        async with (
            actors.open_runtime(config(name="ra")) as here,
            actors.open_runtime(config(name="rb")) as there,
        ):
            yield node, await here.deploy(Caller), await there.deploy(Echo), there


class Attacker(LinkPeer):
    """Says of chunks what it likes, from a raw socket."""

    async def chunk(self, step, from_, to, **chunk):
        return await self.code("execute", from_, to, chunk={"step": step, **chunk})


@pytest.mark.timeout(240)
async def test_an_attacker_that_begins_transfers_without_end_gets_its_share_of_the_room():
    async with open_pair() as (node, caller, echo, there):
        evil = Attacker({"url": node.url}, "a.example", "evil")
        await evil.connect()
        await evil.open()
        own, codes = await evil.allocate(number=8), Counter()
        for number in range(1, 201):
            codes[
                await evil.chunk("begin", own[number % 8], echo.url, transfer=number, size=9)
            ] += 1
        # On a busy machine, the first ones may be over by now.
        assert set(codes) == {200, 503}
        assert codes[503] > codes[200]
        assert 0 < there._running.transfers.arriving.used <= 9 * PEER_ARRIVING
        answer = await caller.request(echo.url, LARGE)
        assert (answer.code, answer.body["value"] == LARGE) == (200, True)
        await evil.vanish()


@pytest.mark.timeout(240)
async def test_an_attacker_that_lies_about_chunks_is_refused():
    """Also about those of others' transfers; nobody else suffers."""
    async with open_pair() as (node, caller, echo, _):
        evil = Attacker({"url": node.url}, "a.example", "evil")
        await evil.connect()
        await evil.open()
        (own,) = await evil.allocate()
        lie = partial(evil.chunk, from_=own, to=echo.url)
        data = [b64encode(b"x" * 9).decode()]
        assert await lie("give", transfer=1, index=0, size=9, data=data) == 409
        assert await lie("begin", transfer=1, size=TRANSFER_BYTES + 1) == 413
        assert await lie("begin", transfer="x", size=0) == 400
        assert await lie("begin", transfer=1, size=9) == 200
        assert await lie("give", transfer=1, index=0, size=10, data=data) == 400
        assert await lie("give", transfer=1, index=0, size=9, data=data) == 409
        assert await lie("read", transfer=1, index=0) == 410
        assert await lie("take", transfer=1) == 400
        forged = await evil.chunk("begin", caller.url, echo.url, transfer=1, size=9)
        assert forged in {401, 403}
        answer = await caller.request(echo.url, LARGE)
        assert (answer.code, answer.body["value"] == LARGE) == (200, True)
        await evil.vanish()


# ---- real sockets


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kinds", [(), (actors.Kind.UNIX,)])
async def test_sixteen_mebibytes_come_and_go(kinds):
    """By a node, and by a direct link of a Unix socket."""
    links = LinkPolicy(P2pUse.WHENEVER_POSSIBLE, wait=P2pWait.AWAIT)
    async with open_pair(kinds=kinds, links=links) as (_, caller, echo, there):
        await caller.request(echo.url, "first")
        assert [link.status.value for link in await there.links()] == ["live"] * len(kinds)
        value = "x" * (TRANSFER_BYTES - 100)
        answer = await caller.request(echo.url, value)
        assert (answer.code, answer.body.get("value") == value) == (200, True)
