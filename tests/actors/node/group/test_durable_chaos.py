"""Durable messages under random faults of nodes, links and engine: each comes once, in order."""

from functools import partial
from random import Random

import pytest
import trio

from actors.hyperties import Caller
from tests.actors.node.group.test_domain import runtimes
from tests.actors.node.group.test_durable import Ledger
from tests.support.node.group_world import open_group
from transports.sockets import open_background

pytestmark = pytest.mark.long
TROUBLES = 12


class Sender:
    """Sends numbers to a ledger, one after the other, and remembers which were accepted."""

    def __init__(self, caller, ledger, kept):
        self.caller = caller
        self.ledger = ledger
        self.kept = kept
        self.sent = 0
        self.accepted = []

    async def send(self, pause):
        while True:
            self.sent += 1
            said = [self.caller.url, self.sent]
            answer = await self.caller.request(self.ledger.url, said, durable=True)
            if answer.code == 202:
                self.accepted.append(self.sent)
            await trio.sleep(pause())

    @property
    def came(self):
        """The numbers that came to the ledger from here."""
        return [number for by, number in self.kept if by == self.caller.url]


class Chaos:
    """What goes wrong, by chance; in the end all is well."""

    def __init__(self, group, places, seed):
        self.group = group
        self.places = places
        self.chance = Random(seed)  # noqa: S311 - the same for the same seed

    @property
    def live(self):
        return [one for one in self.group.nodes if not one.is_killed]

    async def kill(self, member):
        fresh = await self.group.node()
        await self.group.kill(member)
        for place in self.places:
            if place.balancer.url == member.node.url:
                place.go(self.chance.choice([fresh, *self.live]))

    async def trouble(self):
        store, member = self.group.store, self.chance.choice(self.live)
        match self.chance.randrange(7):
            case 0 | 1:
                await self.kill(member)
            case 2:
                store.stop()
                await trio.sleep(self.chance.choice([0.5, 4, 15]))
                store.start()
            case 3:
                store.stop(member.engine)
                await trio.sleep(self.chance.choice([0.5, 4]))
                store.start(member.engine)
            case 4:
                store.slow(self.chance.choice([0.0, 0.05, 0.5]), member.engine)
            case 5:
                store.answer_no_more(self.chance.choice([1, 3]), member.engine)
            case _:
                store.swallow(self.chance.choice([1, 3]), member.engine)

    async def go(self):
        for _ in range(TROUBLES):
            await trio.sleep(self.chance.choice([0.1, 1, 5]))
            await self.trouble()
        for member in self.live:
            self.group.store.slow(0.0, member.engine)


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_fails_an_accepted_message_comes_once_and_in_order(seed, autojump_clock):
    async with open_group(3) as group, runtimes(group, 4) as places:
        senders = []
        for place in places[2:]:
            kept = []
            ledger = await place.runtime.deploy(partial(Ledger, kept))
            senders += [
                Sender(await other.runtime.deploy(Caller), ledger, kept) for other in places[:2]
            ]
        chaos = Chaos(group, places, seed)
        async with open_background() as nursery:
            for one in senders:
                nursery.start_soon(one.send, partial(chaos.chance.uniform, 0, 0.5))
            await chaos.go()
        with trio.fail_after(300):
            while group.store.entries():  # noqa: ASYNC110 - of other actors
                await trio.sleep(1)
        for one in senders:
            assert one.came == sorted(set(one.came))
            assert set(one.accepted) <= set(one.came) <= set(range(one.sent + 1))
            assert one.accepted
