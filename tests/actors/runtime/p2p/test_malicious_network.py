"""Whoever is between two runtimes on the network, over real sockets of every kind, gets nothing.

SEC-20. It has read every offer and answer, secrets included.
"""

import ssl
from contextlib import asynccontextmanager

import pytest
import trio

from actors.keys.certificate import make_certificate
from specs.identity import VouchedBy
from specs.message import Message, MessageType
from tests.support.malicious_node import Attack, victims
from tests.support.runtime.domain import P2P_KINDS
from transports.codec import encode
from transports.link import Kind
from transports.sockets import bind_tcp, bind_unix, dial_tcp, dial_unix
from transports.system import open_system_network
from transports.tls import PinnedTls

WORD = "only for the two of them"


@pytest.fixture(params=P2P_KINDS, ids=lambda kind: kind.value)
def kind(request):
    return request.param


@asynccontextmanager
async def pair(kind, attack=None):
    """Alice and Bob with links of one kind over real sockets."""
    async with open_system_network() as network:
        how = {"kinds": (kind,), "network": network, "require": VouchedBy.DOMAIN}
        with trio.fail_after(20):
            async with victims(attack or Attack(), **how) as world:
                yield world


async def linked(world):
    await world["alice"].ask(world["bob"], "alice first")
    await world["alice"].wait_for("live", world["bob"])
    await world["bob"].wait_for("live", world["alice"])


# ---- it dials what the runtimes offer


def of_its_own(victim):
    tls = PinnedTls(make_certificate)
    tls.pin(victim)
    return tls.dialling


def without_certificate(_victim):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def by_tls_1_2(victim):
    context = of_its_own(victim)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


DIALLED = {
    "without TLS": lambda _: None,
    "with a certificate of its own": of_its_own,
    "without a certificate": without_certificate,
    "by TLS 1.2": by_tls_1_2,
}


@pytest.mark.parametrize("name", DIALLED)
async def test_the_secret_that_was_read_opens_nothing(name, kind):
    """Who has read it dials as soon as it has passed, before the peer does, and again later."""
    async with pair(kind) as world, trio.open_nursery() as nursery:
        node, done = world.node, []
        ends = world["alice"].address, world["bob"].address
        forged = encode(Message(10**9, MessageType.CREATE, *ends, {"value": "forged"}))

        async def intrude(who):
            shown = DIALLED[name](world.certificate(who))
            for one in node.last(who, "candidates"):
                await node.intrude(one, shown, forged)
                done.append(who)

        node.on_signed = lambda who: nursery.start_soon(intrude, who)
        await linked(world)
        for who in ("alice", "bob"):
            await intrude(who)
        assert (await world["alice"].ask(world["bob"], WORD)).code == 200
        assert len(done) >= 4
        assert node.stolen == []
        assert "forged" not in world["bob"].hyperty.heard
        nursery.cancel_scope.cancel()


# ---- it leads the dials of the runtimes elsewhere


async def no_link(world):
    """Let Alice ask Bob until her link has failed; what she asks goes by the node."""
    alice, bob = world["alice"], world["bob"]
    assert (await alice.ask(bob, WORD)).code == 200

    async def is_so():
        return bool(world.failed())

    await alice.tracer.until(is_so)
    assert (await alice.ask(bob, WORD)).code == 200
    assert bob.hyperty.heard == [WORD, WORD]
    steps = [*alice.steps(), *bob.steps()]
    assert "live" not in [state for _, state in steps]


def place_of_its_own(kind, folder):
    return str(folder / "its.sock") if kind is Kind.UNIX else "127.0.0.1:0"


def dialled(kind, listening):
    return f"{listening}/p2p" if kind is Kind.WEBSOCKET else listening


@pytest.mark.parametrize("demands", [True, False])
async def test_a_man_in_the_middle_is_not_the_peer(demands, kind, tmp_path):
    """It shows a certificate of its own, and asks the dialler for one, or not."""
    attack, tls = Attack(), PinnedTls(make_certificate)
    async with pair(kind, attack) as world, trio.open_nursery() as nursery:
        node, context = world.node, tls.listening
        if not demands:
            context.verify_mode = ssl.CERT_NONE
        place = place_of_its_own(kind, tmp_path)
        listener = await nursery.start(node.listen, kind, place, context)
        node.on_signed = lambda who: tls.pin(world.certificate(who))
        attack.redirect = lambda _who, _address: dialled(kind, listener.address)
        await no_link(world)
        assert node.stolen == []
        nursery.cancel_scope.cancel()


async def test_a_dialler_that_is_led_to_itself_has_no_link(kind):
    attack = Attack()
    async with pair(kind, attack) as world:

        def back(who, address):
            own = world.node.last(who, "candidates")
            return own[0]["address"] if own else address

        attack.redirect = back
        await no_link(world)


# ---- it passes on what they say


class Relay:
    """Passes bytes on between a dialler and where it wanted to go, and keeps a copy.

    Attributes:
        kept: What passed.
        target: Where to.
        altered: From which piece on a bit of each is flipped; None: none is.
    """

    def __init__(self, kind, altered):
        self.kind, self.altered = kind, altered
        self.kept, self.target, self.pieces = b"", "", 0

    def redirect(self, _who, address):
        self.target = address
        return self.address if self.kind is not Kind.WEBSOCKET else f"wss://{self.address}/p2p"

    async def serve(self, folder, *, task_status):
        if self.kind is Kind.UNIX:
            self.address = str(folder / "relay.sock")
            with bind_unix(self.address) as listener:
                task_status.started()
                await trio.serve_listeners(self._relay, [listener])
        listener, self.address = await bind_tcp("127.0.0.1:0")
        task_status.started()
        await trio.serve_listeners(self._relay, [listener])

    async def _relay(self, near):
        place = self.target.removeprefix("wss://").removesuffix("/p2p")
        far = await (dial_unix(place) if self.kind is Kind.UNIX else dial_tcp(place))
        async with near, far, trio.open_nursery() as nursery:
            nursery.start_soon(self._pass_on, near, far, nursery.cancel_scope)
            nursery.start_soon(self._pass_on, far, near, nursery.cancel_scope)

    async def _pass_on(self, source, target, scope):
        try:
            async for piece in source:
                self.kept += piece
                self.pieces += 1
                is_altered = self.altered is not None and self.pieces >= self.altered
                last = bytes([piece[-1] ^ is_altered])
                await target.send_all(piece[:-1] + last)
        except trio.BrokenResourceError:
            pass
        scope.cancel()


@asynccontextmanager
async def relayed(kind, folder, altered=None):
    attack, relay = Attack(), Relay(kind, altered)
    async with pair(kind, attack) as world, trio.open_nursery() as nursery:
        await nursery.start(relay.serve, folder)
        attack.redirect = relay.redirect
        yield world, relay
        nursery.cancel_scope.cancel()


async def test_a_relay_reads_nothing(kind, tmp_path):
    async with relayed(kind, tmp_path) as (world, relay):
        await linked(world)
        answer = await world["alice"].ask(world["bob"], WORD)
        assert answer.via[0].endswith("/conn/1")
        secret = world.node.last("bob", "candidates")[0]["secret"]
        assert relay.kept
        for text in (WORD, secret, '"p2p"', "hyperty://"):
            assert text.encode() not in relay.kept


@pytest.mark.parametrize("altered", [1, 8])
async def test_a_relay_alters_nothing(altered, kind, tmp_path):
    """From the first piece on, within the handshake, or in what the link carries."""
    async with relayed(kind, tmp_path, altered) as (world, relay):
        alice, bob = world["alice"], world["bob"]
        asked = []

        async def ask():
            asked.append(f"{WORD} {len(asked)}")
            assert (await alice.ask(bob, asked[-1])).code == 200

        with trio.fail_after(30):
            while relay.pieces < altered:
                await ask()
        for _ in range(3):
            await ask()
        assert bob.hyperty.heard == asked
