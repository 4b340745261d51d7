"""A link between two ends: offered, proven, carrying messages, lost (P2P-15, P2P-20, T11)."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest
import trio

from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.runtime.p2p.handshake import (
    dial_candidate,
    machine_secret,
    open_candidates,
    welcome,
    write_behind,
)
from actors.runtime.p2p.link import P2PLink
from actors.runtime.p2p.link_work import LinkWork
from actors.runtime.stubs.stub import LOOPBACK, StubConfig, StubContext
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.link_end import Loss
from fsm.p2p.transfer import Behind
from fsm.sync.value.value import apply_change
from specs.bodies.object import Candidate, ChangeObject
from specs.errors import BadMessageError
from specs.identity import SenderIdentity
from specs.limits.protocol import (
    FRAME_MESSAGES,
    MAX_FRAME_BYTES,
    PING_PERIOD,
    PONG_TIMEOUT,
    STUB_QUEUE,
)
from specs.message import Message, MessageType
from specs.reply_code import DropReason
from specs.trace import Op
from tests.support.link_tls import own_tls, peer_tls
from tests.support.lone_end import lone_end
from tests.support.runtime.p2p_bus import KeepingPort
from tests.support.trace.memory import MemoryTracer
from transports.bodies import read_body
from transports.codec import decode_frame, encode
from transports.errors import CloseReason, DialError, LinkBrokenError, LinkError
from transports.link import Kind
from transports.memory import FRAMES_IN_FLIGHT, MemoryNetwork
from transports.system import open_system_network

PQ, PC = "hyperty-runtime://a.ex/ra/p2prequester/1", "hyperty-runtime://b.ex/rb/p2phandler/1/conn/1"
OBJECT = "connection://a.ex/c1"
KINDS = (Kind.UNIX, Kind.WEBSOCKET, Kind.TCP)
RB = "hyperty-runtime://b.ex/rb"
POLICY = DialPolicy(tuple(kind.value for kind in KINDS), b"this machine")


def entropy():
    count = 0

    def some(size):
        nonlocal count
        count += 1
        return count.to_bytes(size, "big")

    return some


def message(number, **body):
    return Message(number, MessageType.READ, "hyperty://a.ex/1", "hyperty://b.ex/2", body)


@attrs.frozen
class End:
    link: P2PLink
    port: KeepingPort
    tracer: MemoryTracer
    counters: Counters

    def send(self, one: Message) -> bool:
        """Send a message in a turn of its own."""
        is_taken = self.link.send(one)
        self.link.flush()
        return is_taken


@attrs.frozen
class Pair:
    network: MemoryNetwork
    dialler: End
    listener: End

    def cut(self):
        self.network.wires[-1].cut()


def offering(*kinds: Kind, host: str = LOOPBACK) -> StubConfig:
    return StubConfig("hyperty-runtime://a.ex/ra", "a.ex", kinds=kinds, host=host)


def end(proven, stub: str) -> End:
    context = context_of(config=offering(), url=stub)
    link = P2PLink(proven, context, stub, SenderIdentity(RB))
    return End(link, context.bus, context.tracer, context.counters)


def context_of(network=None, random=None, config=None, url=PQ):
    parts = (network or MemoryNetwork(), MemoryTracer(), IdSource(), random or entropy())
    return StubContext(url, KeepingPort(url), config or offering(Kind.TCP), *parts, Counters())


def opened_for(remote, *kinds, host=LOOPBACK, policy=POLICY):
    config = offering(*kinds, host=host)
    return open_candidates(context_of(config=config), policy, remote, own_tls())


def offered_by(network, random, kind=Kind.TCP, tls=None):
    context = context_of(network, random, offering(kind))
    return open_candidates(context, POLICY, RB, tls or own_tls())


@asynccontextmanager
async def offered_pair(kind: Kind) -> AsyncIterator[Pair]:
    network, random = MemoryNetwork(), entropy()
    tls, proven = own_tls(), []
    async with offered_by(network, random, kind, tls) as ((candidate, listener),):

        async def accept():
            pipe = await listener.accept()
            proven.append(await welcome(pipe, candidate.secret, tls, random))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept)
            dialled = await dial_candidate(network, candidate, peer_tls(), random)
        yield Pair(network, end(dialled, PQ), end(proven[0], PC))


@asynccontextmanager
async def running_pair() -> AsyncIterator[tuple[Pair, list]]:
    ends = []
    async with offered_pair(Kind.TCP) as pair, trio.open_nursery() as nursery:

        async def run(which):
            ends.append((which, await which.link.run()))

        nursery.start_soon(run, pair.dialler)
        nursery.start_soon(run, pair.listener)
        yield pair, ends
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("kind", KINDS)
async def test_both_ends_of_a_link_call_it_the_same(kind, autojump_clock):
    async with offered_pair(kind) as pair:
        assert pair.dialler.link.name == pair.listener.link.name


async def test_each_candidate_has_a_secret_of_its_own_and_a_proof_of_its_machine(autojump_clock):
    async with opened_for(RB, *KINDS) as offered:
        candidates = [each for each, _ in offered]
    assert [candidate.kind for candidate in candidates] == list(KINDS)
    assert len({candidate.secret for candidate in candidates}) == len(KINDS)
    assert len({candidate.host for candidate in candidates} - {None}) == len(KINDS)


async def test_candidates_are_where_the_configuration_says(autojump_clock):
    async with opened_for(RB, Kind.TCP, Kind.WEBSOCKET, host="11.0.0.7") as offered:
        places = [each.address for each, _ in offered]
    assert all(place.removeprefix("wss://").startswith("11.0.0.7:") for place in places)


def test_all_processes_of_a_machine_share_one_secret_that_hides_its_boot_id():
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    assert machine_secret() == machine_secret()
    assert boot_id not in machine_secret()


async def test_an_outsider_gets_nothing_and_the_listener_continues(autojump_clock):
    network, random, tls = MemoryNetwork(), entropy(), own_tls()
    async with offered_by(network, random, tls=tls) as ((candidate, listener),):

        async def accept_all():
            while True:
                pipe = await listener.accept()
                await welcome(pipe, candidate.secret, tls, random)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept_all)
            for frame in (
                b"hello?",
                b"{}",
                b'{"p2p":"hello","nonce":"00","secret":"00"}',
                b'{"p2p":1}',
            ):
                shown = peer_tls().dialling
                pipe = await network.dial(Kind.TCP, candidate.address, tls=shown)
                await pipe.send(frame)
                with pytest.raises(LinkError):
                    await pipe.receive()
            await dial_candidate(network, candidate, peer_tls(), random)
            nursery.cancel_scope.cancel()


async def test_a_silent_dialler_is_disconnected(autojump_clock):
    network, random, tls = MemoryNetwork(), entropy(), own_tls()
    async with offered_by(network, random, tls=tls) as ((candidate, listener),):
        await network.dial(Kind.TCP, candidate.address, tls=peer_tls().dialling)
        pipe = await listener.accept()
        assert await welcome(pipe, candidate.secret, tls, random) is None


@pytest.mark.parametrize("secret", ["00" * 16, "not hex"])
async def test_a_wrong_secret_opens_nothing(secret, autojump_clock):
    network, random, tls = MemoryNetwork(), entropy(), own_tls()
    async with offered_by(network, random, tls=tls) as ((candidate, listener),):

        async def accept():
            pipe = await listener.accept()
            assert await welcome(pipe, candidate.secret, tls, random) is None

        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept)
            wrong = attrs.evolve(candidate, secret=secret)
            with pytest.raises(DialError):
                await dial_candidate(network, wrong, peer_tls(), random)
            nursery.cancel_scope.cancel()


async def test_messages_arrive_in_order_stamped_by_both_ends(autojump_clock):
    async with running_pair() as (pair, _):
        for number in range(1, 201):
            assert pair.dialler.send(message(number))
        arrived = await pair.listener.port.wait_for(200)
        assert [each.id for each in arrived] == list(range(1, 201))
        assert {each.via for each in arrived} == {(PQ, PC)}


async def test_the_trace_reports_each_number_once_at_each_end(autojump_clock):
    async with running_pair() as (pair, _):
        for number in range(1, 4):
            pair.dialler.send(message(number))
        await pair.listener.port.wait_for(3)
        sent = [(f.op, f.seq, f.mid, f.link, f.digest) for f in pair.dialler.tracer.facts]
        read = [(f.op, f.seq, f.mid, f.link, f.digest) for f in pair.listener.tracer.facts]
    assert [each[0] for each in sent] == [Op.XMIT] * 3
    assert [(Op.RCV, *each[1:]) for each in sent] == read


async def test_a_message_that_has_crossed_the_stub_is_dropped(autojump_clock):
    async with running_pair() as (pair, _):
        pair.dialler.send(message(1, via=[PC]))
        pair.dialler.send(message(2))
        await pair.listener.port.wait_for(1)
        assert [each.id for each in pair.listener.port.posted] == [2]
        assert pair.listener.counters.drops == {DropReason.LOOP: 1}


async def test_a_cut_link_owes_exactly_what_was_not_acknowledged(autojump_clock):
    async with running_pair() as (pair, ends):
        for number in range(1, 11):
            pair.dialler.send(message(number))
        await pair.listener.port.wait_for(10)
        await trio.sleep(1)
        pair.dialler.send(message(11))
        pair.cut()
        await trio.sleep(1)
        assert [each.id for each in pair.dialler.link.take_unacknowledged()] == [11]
        assert [loss for _, (loss, _) in ends] == [Loss.BROKEN, Loss.BROKEN]


async def test_goodbye_delivers_what_waits_and_is_no_break(autojump_clock):
    async with running_pair() as (pair, ends):
        for number in range(1, 11):
            pair.dialler.send(message(number))
        await pair.dialler.link.say_goodbye()
        await trio.sleep(1)
        assert len(pair.listener.port.posted) == 10
        assert pair.dialler.link.take_unacknowledged() == []
        losses = {which.port.url: loss for which, (loss, _) in ends}
        assert losses[PC] is Loss.ORDERLY


async def test_a_peer_that_went_silent_is_given_up(autojump_clock):
    async with offered_pair(Kind.TCP) as pair:
        began = trio.current_time()
        loss, _ = await pair.dialler.link.run()
        assert loss is Loss.BROKEN
        assert trio.current_time() - began <= PING_PERIOD + PONG_TIMEOUT + 1


async def test_an_idle_link_stays_open(autojump_clock):
    async with running_pair() as (pair, ends):
        await trio.sleep(10 * PING_PERIOD)
        assert ends == []
        pair.listener.send(message(1))
        await pair.dialler.port.wait_for(1)


async def test_a_peer_that_writes_nonsense_is_given_up(autojump_clock):
    async with running_pair() as (pair, ends):
        await pair.network.wires[-1].dialler.send(b'{"p2p":"dance"}')
        await trio.sleep(1)
        assert len(ends) == 2


@pytest.mark.parametrize("more", [0, 1])
async def test_a_frame_has_so_many_lines_and_no_more(more, autojump_clock):
    async with running_pair() as (pair, _):
        lines = [encode(message(number + 1)) for number in range(FRAME_MESSAGES + more)]
        await pair.network.wires[-1].dialler.send(b"\n".join(lines))
        await trio.sleep(1)
        assert len(pair.listener.port.posted) == (0 if more else FRAME_MESSAGES)


async def test_an_announcement_is_behind_the_messages_before_it_in_a_frame(autojump_clock):
    async with running_pair() as (pair, _):
        behind = write_behind(Behind("hyperty://a.ex/1", "hyperty://b.ex/2", 1, 1))
        lines = encode(message(1)), behind, encode(message(2))
        await pair.network.wires[-1].dialler.send(b"\n".join(lines))
        await trio.sleep(1)
        assert [verb for verb, _, _ in pair.listener.port.said] == ["post", "announce", "post"]


async def read_on(pipe):
    while True:
        await pipe.receive()


async def test_a_frame_over_the_limit_ends_the_link_with_the_code_that_says_so():
    random, tls, proven = entropy(), own_tls(), []
    async with (
        open_system_network() as network,
        offered_by(network, random, tls=tls) as ((candidate, listener),),
        trio.open_nursery() as nursery,
    ):

        async def serve():
            pipe = await listener.accept()
            ours = end(await welcome(pipe, candidate.secret, tls, random), PC)
            proven.append((ours, await ours.link.run()))

        nursery.start_soon(serve)
        dialled = await dial_candidate(network, candidate, peer_tls(), random)
        dialled[1].write_wrapped((MAX_FRAME_BYTES + 1).to_bytes(4, "big"))
        with trio.fail_after(10), pytest.raises(LinkBrokenError) as broken:
            await read_on(dialled[1])
        await dialled[1].aclose()
    ((ours, (loss, why)),) = proven
    assert broken.value.close_reason is CloseReason.TOO_LARGE
    assert loss is Loss.BROKEN
    assert "larger than" in why
    assert ours.counters.drops == {DropReason.MALFORMED: 1}


async def test_a_malformed_answer_ends_the_request_and_is_acknowledged(autojump_clock):
    ends = b'{"id":5,"type":"response","from":"hyperty://a.ex/1","to":"hyperty://b.ex/2","body":'
    async with offered_pair(Kind.TCP) as pair, trio.open_nursery() as nursery:
        nursery.start_soon(pair.listener.link.run)
        peer = pair.network.wires[-1].dialler
        bad = [ends + body + b"}" for body in (b'{"code":200,"value":NaN}', b'{"code":183}NaN')]
        await peer.send(b"\n".join((*bad, encode(message(6)))))
        lines = []
        while b'{"p2p":"ack","seq":3}' not in lines:
            lines += (await peer.receive()).split(b"\n")
        assert pair.listener.counters.drops == {DropReason.MALFORMED: 2}
        assert [(each.id, each.code) for each in pair.listener.port.posted] == [(5, 502), (6, 0)]
        nursery.cancel_scope.cancel()


async def test_a_line_that_is_no_message_is_answered_and_harms_no_other(autojump_clock):
    bad = b'{"id":5,"type":"dance","from":"hyperty://a.ex/1","to":"hyperty://b.ex/2"}'
    async with offered_pair(Kind.TCP) as pair, trio.open_nursery() as nursery:
        nursery.start_soon(pair.listener.link.run)
        peer = pair.network.wires[-1].dialler
        await peer.send(bad + b"\n" + encode(message(6)))
        lines = []
        while b'{"p2p":"ack","seq":2}' not in lines:
            lines += (await peer.receive()).split(b"\n")
        (line,) = [line for line in lines if not line.startswith(b'{"p2p"')]
        assert pair.listener.counters.drops == {DropReason.MALFORMED: 1}
        (answer,) = decode_frame(line)
        assert (answer.id, answer.code) == (5, 400)
        assert [each.id for each in pair.listener.port.posted] == [6]
        nursery.cancel_scope.cancel()


async def test_what_a_peer_says_of_its_user_is_replaced_by_what_the_link_knows(autojump_clock):
    forged = {"runtime": RB, "user": "user://b.ex/bob", "vouchedBy": "domain"}
    async with offered_pair(Kind.TCP) as pair, trio.open_nursery() as nursery:
        nursery.start_soon(pair.listener.link.run)
        peer = pair.network.wires[-1].dialler
        for number, lie in enumerate((forged, "bob", [forged], None), start=1):
            honest = json.loads(encode(message(number)))
            honest["body"]["identity"] = lie
            await peer.send(json.dumps(honest).encode())
        await trio.sleep(1)
        assert [each.id for each in pair.listener.port.posted] == [1, 2, 3, 4]
        for each in pair.listener.port.posted:
            assert each.identity == SenderIdentity(RB)
            assert "identity" not in each.body
        nursery.cancel_scope.cancel()


async def test_a_too_large_message_is_refused(autojump_clock):
    async with running_pair() as (pair, _):
        with pytest.raises(BadMessageError, match="larger than") as refused:
            pair.dialler.send(message(1, value="x" * 100_000))
    assert refused.value.code == 413


async def test_a_link_takes_so_many_messages_and_no_more_until_it_has_written(autojump_clock):
    async with running_pair() as (pair, _):
        count = 0
        while pair.dialler.send(message(count + 1)):
            count += 1
        assert STUB_QUEUE <= count <= STUB_QUEUE + FRAMES_IN_FLIGHT + 1
        await pair.listener.port.wait_for(count)
        assert pair.dialler.send(message(count + 2))


# ---- what a new negotiation leaves of the one before


def reporting_end(url):
    context = context_of(random=bytes, url=url)
    end = lone_end(context, RB, PC)
    end.own_object = OBJECT
    return end, context.bus


async def test_candidates_are_added_to_those_that_are_there():
    """P2P-12: whoever sees one change sees what it adds, and keeps the others."""
    value, (end, port) = {"candidates": []}, reporting_end(PQ)
    for name in ("1", "2"):
        end.offer((Candidate("tcp", f"127.0.0.1:{name}", "00"),))
        await end.perform()
        written, _ = port.posted[-2:]
        value = apply_change(value, read_body(written, ChangeObject))
    assert [one["address"][-1] for one in value["candidates"]] == ["1", "2"]


async def test_an_object_never_shows_old_candidates_under_a_new_status(autojump_clock):
    end, port = reporting_end(PQ)
    value = {"status": "unreachable-1", "owner": PQ, "candidates": [{"address": "old"}]}
    value["security"] = {"key": "old"}
    end.renew(2, "negotiation-2")
    await end.perform()
    (void,) = port.posted
    value = apply_change(value, read_body(void, ChangeObject))
    assert (value["status"], value["candidates"]) == ("negotiation-2", [])
    assert "security" not in value


async def test_a_link_that_its_stub_does_not_take_any_more_is_closed(autojump_clock):
    network, random = MemoryNetwork(), entropy()
    tls = peer_tls()

    async def never_taken(*_):
        await trio.sleep_forever()

    end = lone_end(context_of(network, random), RB, PC)
    end.tls, end.stub.me = own_tls(), SimpleNamespace(tell=never_taken)
    work = LinkWork(end)
    async with offered_by(network, random, tls=tls) as ((candidate, listener),):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work.run)
            work.dial(candidate, 1)
            pipe = await listener.accept()
            proven = await welcome(pipe, candidate.secret, tls, random)
            work.cancel()
        with pytest.raises(LinkError):
            await proven[1].receive()
