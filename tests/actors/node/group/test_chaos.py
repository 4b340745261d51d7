"""Nodes of one domain under random faults: one session each, one owner each, no broken claim."""

from contextlib import suppress
from random import Random

import pytest
import trio

from specs.limits.group import GROUP_LEASE
from tests.support.node.group_world import open_group
from transports.errors import LinkError

RUNTIMES = [f"hyperty-runtime://a.ex/r{number}" for number in range(6)]
STEPS = 60


class Walk:
    """Does one thing after the other, by chance."""

    def __init__(self, world, seed) -> None:
        self.world = world
        self.chance = Random(seed)  # noqa: S311 - the same for the same seed
        self.links = 0
        self.peers = {}
        self.tokens = {}
        self.addresses = []

    @property
    def live(self):
        return [one for one in self.world.nodes if not one.is_killed]

    async def come(self, runtime) -> None:
        """Come to any node, by the token if there is one."""
        member = self.chance.choice(self.live)
        token = self.tokens.get(runtime)
        with suppress(LinkError, trio.TooSlowError), trio.move_on_after(5):
            peer = await member.outsider(runtime)
            # A runtime never uses an id of a message twice.
            self.links += 1
            peer._id = self.links * 1000
            answer = None
            if token is not None:
                answer = await peer.control("re-open", runtimeURL=runtime, token=token)
            if answer is None or answer.code in {401, 410}:
                answer = await peer.control("open", runtimeURL=runtime)
            if answer.code == 200:
                self.peers[runtime] = peer
                self.tokens[runtime] = answer.body["value"]["sessionToken"]
                await peer.control("ping")

    async def say(self, runtime) -> None:
        peer = self.peers.get(runtime)
        if peer is None:
            return
        with suppress(LinkError, trio.TooSlowError, AssertionError), trio.move_on_after(3):
            match self.chance.randrange(4):
                case 0:
                    self.addresses += await peer.allocate("comm")
                case 1 if self.addresses:
                    path = f"{self.chance.choice(self.addresses)}/changes"
                    await peer.ask(
                        "subscribe", f"{runtime}/sm", f"{peer.node}/sm", resources=[path]
                    )
                case 2 if self.addresses:
                    url = self.chance.choice(self.addresses)
                    await peer.post("update", url, f"{url}/changes", value=1)
                case _:
                    to = self.chance.choice(RUNTIMES)
                    await peer.post("update", f"{runtime}/sm", f"{to}/sm", value=1)

    async def trouble(self) -> None:
        store, member = self.world.store, self.chance.choice(self.live)
        match self.chance.randrange(6):
            case 0:
                await self.world.kill(member)
                await self.world.node()
            case 1:
                store.stop()
                await trio.sleep(self.chance.choice([0.5, 4, 15]))
                store.start()
            case 2:
                store.stop(member.engine)
                await trio.sleep(self.chance.choice([0.5, 4, 15]))
                store.start(member.engine)
            case 3:
                store.slow(self.chance.choice([0.0, 0.05, 0.5]), member.engine)
            case 4:
                store.answer_no_more(1, member.engine)
            case _:
                store.swallow(1, member.engine)

    async def go(self) -> None:
        for runtime in RUNTIMES:
            await self.come(runtime)
        for _ in range(STEPS):
            if self.chance.random() < 0.1:
                await self.trouble()
            runtime = self.chance.choice(RUNTIMES)
            await (self.come if self.chance.random() < 0.3 else self.say)(runtime)
        for member in self.live:
            self.world.store.slow(0.0, member.engine)
        await trio.sleep(3 * GROUP_LEASE)
        for runtime in RUNTIMES:
            await self.come(runtime)
        await trio.sleep(1)


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_fails_each_runtime_has_one_session_at_most(seed, autojump_clock):
    """I-A3, I-M2: the claims on the traces of all nodes are judged when they have ended."""
    async with open_group(3) as world:
        walk = Walk(world, seed)
        await walk.go()
        held = [runtime for member in walk.live for runtime in await member.states()]
        assert sorted(held) == sorted(RUNTIMES)
        rows = {row.key for row in world.store.rows("session/")}
        assert rows == {f"session/{runtime}" for runtime in RUNTIMES}
        owned = [
            address
            for member in walk.live
            for view in await member.node.sessions()
            for address in view.addresses
        ]
        assert sorted(f"owner/{one}" for one in owned) == sorted(
            row.key for row in world.store.rows("owner/")
        )
