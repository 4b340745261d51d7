"""A node with and without its shorter ways: nobody can tell which is which.

The same frames go to two nodes, of friends and of peers that mean harm, in forms of all kinds. One
of the nodes looks up no envelope, remembers no route, writes no line by another and measures each
part of the JSON. Peers receive the same messages from both, and traces and counters are the same.
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from random import Random

import attrs
import orjson
import pytest
import trio
import trio.testing

from actors.node.limits import NodeLimits
from actors.node.links import acceptor
from fsm.bus.node_routing import RememberedRouting
from fsm.limits.rates import Rate
from fsm.registry.node_rights import Observation
from tests.fuzz.mutation import Mutator
from tests.support.chance import examples
from tests.support.node.legacy_peer import LegacyPeer, plain_peer, session_peer
from tests.support.node.node_peer import DOMAIN, RA, RB, Peer, World, open_world
from transports import codec
from transports.errors import LinkError

FRAMES = examples(800)
PATIENT = NodeLimits(messages=Rate(math.inf, 1), max_malformed=math.inf)
OLD, OLDER = f"runtime://{DOMAIN}/old", f"hyperty-runtime://{DOMAIN}/older"
FIELDS = ("id", "type", "from", "to", "body")


@attrs.frozen
class Run:
    """What can be seen of one node.

    Attributes:
        heard: By peer, the frames it got, in order.
        facts: What was traced, in order.
        counted: Numbers of messages and refusals.
        short: How many messages took a shorter way.
    """

    heard: list[list[bytes]]
    facts: list[object]
    counted: object
    short: Counter[str]


def neat(dice: Random, text: bytes) -> bytes:
    """Return a message as programs of this project write it, most often."""
    try:
        raw = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    if not isinstance(raw, dict) or dice.random() < 0.2:
        return text
    ordered = {key: raw[key] for key in FIELDS if key in raw}
    return orjson.dumps({**ordered, **raw})


def frames(dice: Random, runtimes: Sequence[str]) -> list[tuple[int, bytes]]:
    """Return who sends which frame: most messages have the ends of earlier ones."""
    mutators = [Mutator(dice, runtime) for runtime in runtimes]
    sent: list[tuple[int, bytes]] = []
    while len(sent) < FRAMES:
        peer = dice.randrange(len(runtimes))
        if sent and dice.random() < 0.3:
            sent.append(dice.choice(sent[-40:]))
            continue
        if dice.random() < 0.4:
            sender = runtimes[peer] if dice.random() < 0.8 else dice.choice(runtimes)
            text = friendly(dice, sender, dice.choice(runtimes), len(sent))
        else:
            text = neat(dice, mutators[peer].shot(0.0).text or b"")
        if b"session" not in text and b"cmd" not in text and 0 < len(text) < 60_000:
            sent.append((peer, text))
    return sent


def friendly(dice: Random, runtime: str, other: str, number: int) -> bytes:
    """Return a message of one runtime to another: its sender may be false."""
    type_ = dice.choice(("create", "read", "update", "execute", "response"))
    rows = [{"key": n, "text": "x: {[" * (n % 3)} for n in range(dice.choice((0, 3, 60)))]
    body = {"code": 200} if type_ == "response" else {}
    to = other.replace("runtime://", "hyperty-runtime://") if "hyperty" not in other else other
    return orjson.dumps({
        "id": number + 1, "type": type_, "from": f"{runtime}/ua", "to": f"{to}/ua",
        "body": {**body, "value": dice.choice((number, "text", rows))},
    })  # fmt: skip


async def read_on(peer: Peer | LegacyPeer, heard: list[bytes]) -> None:
    """Keep what a peer gets, until its link ends."""
    try:
        while True:
            heard.append(await peer.link.receive())
    except LinkError as exc:
        heard.append(str(exc.reason).encode())


async def run(sent: list[tuple[int, bytes]], short: Counter[str]) -> Run:
    """Send frames to a node, each when all is quiet after the one before."""
    config = {
        "allow_legacy": True, "observation": Observation.OWNER, "limits": PATIENT,
        "entropy": Random(1).randbytes,  # noqa: S311 - the same for both nodes
    }  # fmt: skip
    async with open_world(**config) as world, trio.open_nursery() as nursery:
        peers = [
            await world.peer(RA), await world.peer(RB),
            await plain_peer(world, OLD), await session_peer(world, OLDER),
        ]  # fmt: skip
        heard: list[list[bytes]] = [[] for _ in peers]
        for peer, kept in zip(peers, heard, strict=True):
            nursery.start_soon(read_on, peer, kept)
        for number, text in sent:
            try:
                await peers[number].raw(text)
            except LinkError:
                heard[number].append(b"gone")
            await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        return Run(heard, facts_of(world), counted_by(world), short)


def facts_of(world: World) -> list[object]:
    return list(world.tracer.records)


def counted_by(world: World) -> object:
    counters = world.node.counters
    refused = [attrs.evolve(one, wall_ns=0) for one in counters.refusals()]
    return counters.admitted, counters.permitted, dict(counters.drops), refused


def spied(monkeypatch: pytest.MonkeyPatch, short: Counter[str]) -> None:
    """Count what takes a shorter way."""

    def counting(name: str, way: object, *args: object) -> object:
        found = way(*args)
        short[name] += bool(found)
        return found

    for module, name in (
        (codec, "read_plain"), (acceptor, "is_emitted_plain"), (codec, "_is_small"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, partial(counting, name, getattr(module, name)))


def slowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no shorter way taken."""
    monkeypatch.setattr(codec, "read_plain", lambda *_: None)
    monkeypatch.setattr(acceptor, "read_plain", lambda *_: None)
    monkeypatch.setattr(acceptor, "is_emitted_plain", lambda *_: False)
    monkeypatch.setattr(codec, "_is_small", lambda _: False)
    monkeypatch.setattr(codec, "_is_flat", lambda _: False)
    monkeypatch.setattr(codec, "_has_few_parts", lambda _: False)
    for name in ("admit", "route"):

        def whole(self: RememberedRouting, *args: object, name: str = name) -> object:
            return getattr(self._routing, name)(*args)

        monkeypatch.setattr(RememberedRouting, name, whole)


@pytest.mark.chance
@pytest.mark.parametrize("seed", range(2))
async def test_nobody_can_tell_which_way_a_message_took(seed, autojump_clock, monkeypatch):
    """MN-03, MSG-18, N3, I-T10: what is heard, traced, counted and refused."""
    dice = Random(seed)  # noqa: S311 - chance, no secret
    sent = frames(dice, (RA, RB, OLD, OLDER))
    with monkeypatch.context() as patch:
        spied(patch, short := Counter())
        quick = await run(sent, short)
    with monkeypatch.context() as patch:
        slowed(patch)
        whole = await run(sent, Counter())
    for ours, others in zip(quick.heard, whole.heard, strict=True):
        assert ours == others
    for fact, other in zip(quick.facts, whole.facts, strict=True):
        assert fact == other
    assert quick.counted == whole.counted
    assert min(short.values()) > 10, short
    assert min(map(len, quick.heard)) > FRAMES / 20
    assert b"gone" not in quick.heard[0]
