"""Two hundred requests and a link cut at any moments: none lost, doubled or overtaken."""

from functools import partial

import pytest
import trio
import trio.lowlevel
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from fsm.judge.trace_line import Verdict
from specs.trace import Op
from tests.support.chance import examples
from tests.support.runtime.domain import Domain, Member, go_live, judged, open_domain
from transports.link import Kind as Carrier

REQUESTS = 200
BURST = 50

CUTS = st.dictionaries(st.integers(0, REQUESTS - 1), st.integers(0, 30), min_size=1, max_size=6)
"""With which request the link is cut, and how many checkpoints after it was made."""


pytestmark = pytest.mark.timeout(600)


class Storm:
    """Requests both ways in bursts, and cuts among them."""

    def __init__(self, domain: Domain, cuts: dict[int, int]) -> None:
        self.domain = domain
        self.cuts = cuts
        self.codes: list[int] = []
        self.ends = domain["alice"], domain["bob"]

    async def ask(self, number: int) -> None:
        one, other = self.ends[number % 2], self.ends[1 - number % 2]
        self.codes.append((await one.ask(other, number)).code)

    async def cut_after(self, checkpoints: int) -> None:
        for _ in range(checkpoints):
            await trio.lowlevel.checkpoint()
        self.domain.cut_links(Carrier.TCP)

    async def rage(self) -> None:
        async with trio.open_nursery() as nursery:
            for number in range(REQUESTS):
                nursery.start_soon(self.ask, number)
                await trio.lowlevel.checkpoint()
                if number in self.cuts:
                    nursery.start_soon(self.cut_after, self.cuts[number])
                if number % BURST == BURST - 1:
                    await trio.sleep(0.3)


def sent(one: Member, other: Member) -> list[int | None]:
    """Ids of what one's bus was given for the other, in order."""
    facts = [fact for actor, fact in one.tracer.records if actor == "bus"]
    return [
        fact.id
        for fact in facts
        if (fact.op, fact.from_, fact.to) == (Op.SUBMIT, one.address, other.address)
        and fact.type != "response"
    ]


def came(one: Member, other: Member) -> list[int | None]:
    """Ids of what was put into the other's mailbox from one, in order."""
    minibus = f"minibus:{other.address}"
    facts = [fact for actor, fact in other.tracer.records if actor == minibus]
    return [
        fact.id
        for fact in facts
        if (fact.op, fact.from_, fact.type) == (Op.DELIVER, one.address, "create")
    ]


async def weather(cuts: dict[int, int]) -> None:
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        storm = Storm(domain, cuts)
        await storm.rage()
        assert storm.codes == [200] * REQUESTS
        alice, bob = storm.ends
        heard = [*alice.hyperty.heard, *bob.hyperty.heard[1:]]
        assert sorted(heard) == list(range(REQUESTS))
        assert came(alice, bob) == sent(alice, bob)
        assert came(bob, alice) == sent(bob, alice)
    assert judged(alice).verdict is judged(bob).verdict is Verdict.CONFORMANT


@given(cuts=CUTS)
@settings(max_examples=examples(6), phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_cuts_at_any_moment_lose_double_and_overtake_nothing(cuts):
    """P2P-15, I-P22, I-B7 across paths; a storm tells enough, and a smaller one takes long."""
    trio.run(partial(weather, cuts), clock=MockClock(autojump_threshold=0))
