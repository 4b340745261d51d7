"""Peers of a node that do legal and illegal things at random, and what its trace says of that."""

from collections import defaultdict
from contextlib import suppress
from random import Random

import attrs

from specs.addresses.address import is_below, runtime_of
from specs.trace import Fact, Kind, Op
from tests.support.node.node_peer import ALLOCATION, MN, SM, Peer, World

RUNTIMES = [f"hyperty-runtime://a.ex/r{n}" for n in range(4)]
FOREIGN = [f"hyperty://b.ex/h{n}" for n in range(3)]
CLAIMED = [f"comm://a.ex/claimed{n}" for n in range(4)]
PARTS = ["", "/changes", "/children/chat", "/subscription"]


@attrs.define
class Walk:
    """What was done, besides what the trace tells.

    Attributes:
        links: Whose session each link had.
        granted: Each allocation that was answered 200: scheme, number, addresses.
        freed: Each freeing by key that was answered 200: owner, what it had under the key.
    """

    world: World
    random: Random
    peers: dict[str, Peer] = attrs.field(factory=dict)
    links: dict[str, str] = attrs.field(factory=dict)
    known: list[str] = attrs.field(factory=lambda: [*FOREIGN, *CLAIMED])
    granted: list[tuple[str, int, tuple[str, ...]]] = attrs.field(factory=list)
    blocks: defaultdict = attrs.field(factory=lambda: defaultdict(set))
    ids: int = 0

    async def step(self) -> None:
        runtime = self.random.choice(RUNTIMES)
        peer = self.peers.get(runtime)
        if peer is None:
            await self.come(runtime)
            return
        options = [self.allocate, self.allocate, self.free, self.free_block, self.use, self.use,
                  self.path, self.path, self.publish, self.publish, self.ask]  # fmt: skip
        if self.random.random() < 0.04:
            await self.leave(runtime)
        else:
            await self.random.choice(options)(peer)
        peer.heard.clear()

    async def come(self, runtime: str) -> None:
        before = len(self.world.tracer.facts)
        self.peers[runtime] = await self.world.peer(runtime)
        (link,) = [
            fact.link
            for fact in self.world.tracer.facts[before:]
            if fact.k is Kind.LINK and fact.op is Op.OPEN
        ]
        self.links[link or ""] = runtime

    async def leave(self, runtime: str) -> None:
        await self.peers.pop(runtime).control("close")
        for key in [one for one in self.blocks if one[0] == runtime]:
            del self.blocks[key]

    def some(self) -> list[str]:
        return self.random.sample(self.known, min(len(self.known), self.random.randint(1, 3)))

    async def allocate(self, peer: Peer) -> None:
        scheme, number = self.random.choice(["hyperty", "comm"]), self.random.randint(0, 3)
        key = self.random.choice([None, "k1", "k2"])
        wanted = {"number": number} | ({"allocationKey": key} if key else {})
        answer = await peer.ask(
            "create", f"{peer.runtime}/ua", ALLOCATION, scheme=scheme, value=wanted
        )
        assert (answer.code == 200) == (number > 0)
        if answer.code == 200:
            fresh = answer.body["value"]["allocated"]
            self.granted.append((scheme, number, tuple(fresh)))
            self.known += fresh
            if key:
                self.blocks[peer.runtime, key] |= set(fresh)

    async def free(self, peer: Peer) -> None:
        these = self.some()
        answer = await peer.ask("delete", f"{peer.runtime}/ua", ALLOCATION, childrenResources=these)
        if answer.code == 200:
            for block in self.blocks.values():
                block -= set(these)

    async def free_block(self, peer: Peer) -> None:
        key = self.random.choice(["k1", "k2"])
        before = {fact.key for fact in self.released()}
        answer = await peer.ask("delete", f"{peer.runtime}/ua", ALLOCATION, resource=key)
        assert answer.code == 200
        gone = {fact.key for fact in self.released()} - before
        assert gone == self.blocks.pop((peer.runtime, key), set())

    async def use(self, peer: Peer) -> None:
        """Speak as somebody, oneself or not."""
        from_ = self.random.choice([*self.some(), f"{peer.runtime}/ua", f"{RUNTIMES[0]}/ua"])
        to = self.random.choice([*self.some(), f"{RUNTIMES[1]}/ua", f"{MN}/x"])
        await self.send(peer, self.random.choice(["read", "update", "response"]), from_, to)

    async def path(self, peer: Peer) -> None:
        these = [one + self.random.choice(PARTS) for one in self.some()]
        type_ = self.random.choice(["subscribe", "subscribe", "unsubscribe"])
        await peer.ask(type_, f"{peer.runtime}/sm", SM, resources=these)

    async def publish(self, peer: Peer) -> None:
        (of,) = self.random.sample(self.known, 1)
        await self.send(
            peer, "update", of, f"{of}/{self.random.choice(['changes', 'children/chat'])}"
        )

    async def ask(self, peer: Peer) -> None:
        """Ask an owner, who says yes or no if it is one of the peers and hears of it."""
        (of,) = self.random.sample(self.known, 1)
        type_ = self.random.choice(["subscribe", "subscribe", "unsubscribe"])
        await self.send(peer, type_, f"{peer.runtime}/sm", f"{of}/subscription")
        for other in self.peers.values():
            with suppress(IndexError):
                if not await other.silence(0.01) and other.heard[0].to == f"{of}/subscription":
                    await self.answer(other)
                    await peer.silence(0.01)

    async def answer(self, owner: Peer) -> None:
        given = self.random.choice([{"code": 200, "value": {}}, {"code": 200}, {"code": 403}])
        await owner.post_answer(owner.heard.pop(0), **given)

    async def send(self, peer: Peer, type_: str, from_: str, to: str) -> None:
        body = {"code": 200} if type_ == "response" else {"value": 1}
        await peer.post(type_, from_, to, **body)
        await peer.silence(0.01)

    def released(self) -> list[Fact]:
        return [fact for fact in self.world.tracer.facts if fact.new == "released"]


def owner_above(owners: dict[str, str], address: str) -> str | None:
    """Whose an address is, by the longest that it is below."""
    above = [one for one in owners if is_below(address, one)]
    return owners[max(above, key=len)] if above else None


def is_of(runtime: str, address: str, owners: dict[str, str]) -> bool:
    """Whether a runtime may speak as an address."""
    return runtime_of(address) == runtime or owner_above(owners, address) == runtime
