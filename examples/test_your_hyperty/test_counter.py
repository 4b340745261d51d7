"""Tests of a hyperty with a domain in memory, on a virtual clock, while links break.

Run it: `python -m pytest examples/test_your_hyperty` (after `pip install '.[testing]'`)

The fixtures `protofly_domain`, `protofly_chaos` and `protofly_trace` come with protofly;
`autojump_clock` comes with pytest-trio: no test waits for anything in earnest.
"""

import pytest

import actors
from actors.testing.chaos.network import ChaosNetwork
from actors.testing.chaos.toxics import Latency, Timeout
from actors.testing.domains import Domains
from actors.testing.recorder import Recorder

pytestmark = pytest.mark.trio


class Counter(actors.Hyperty):
    """The hyperty under test: it counts, and reports the count to its observers."""

    def __init__(self) -> None:
        self.count = 0

    async def on_request(self, message: actors.Message) -> actors.Json:
        """Count a number up; refuse all else."""
        value = message.value
        if not isinstance(value, int):
            raise actors.Refused(actors.Code.MALFORMED, "only numbers count")
        self.count += value
        return self.count


class Caller(actors.Hyperty):
    """Asks."""


async def test_it_counts(protofly_domain: Domains, autojump_clock: object) -> None:
    """The main path: one runtime asks another."""
    async with protofly_domain("ra", "rb") as domain:
        counter, caller = await domain["rb"].deploy(Counter), await domain["ra"].deploy(Caller)
        for number, total in ((1, 1), (2, 3), (39, 42)):
            answer = await caller.request(counter.url, number)
            assert (answer.code, answer.value) == (200, total)


async def test_it_refuses_what_is_no_number(
    protofly_domain: Domains, autojump_clock: object
) -> None:
    """An error path: the refusal has a code and says why."""
    async with protofly_domain("ra") as domain:
        counter = await domain["ra"].deploy(Counter)
        answer = await counter.request(counter.url, "many")
        assert (answer.code, answer.body["description"]) == (400, "only numbers count")


async def test_a_bad_line_only_makes_it_slow(
    protofly_domain: Domains, protofly_chaos: ChaosNetwork, autojump_clock: object
) -> None:
    """Chaos: links have the names of runtimes and domains at their ends."""
    async with protofly_domain("ra", "rb") as domain:
        counter, caller = await domain["rb"].deploy(Counter), await domain["ra"].deploy(Caller)
        with protofly_chaos.toxic(Latency(2.0, jitter=0.5), between=("rb", "a.example")):
            assert (await caller.request(counter.url, 1)).code == 200


async def test_whatever_is_lost_is_answered_and_by_the_rules(
    protofly_domain: Domains,
    protofly_chaos: ChaosNetwork,
    protofly_trace: Recorder,
    autojump_clock: object,
) -> None:
    """A black hole: the answer says so; and no machine took a step that is not declared."""
    async with protofly_domain("ra", "rb") as domain:
        counter, caller = await domain["rb"].deploy(Counter), await domain["ra"].deploy(Caller)
        with protofly_chaos.toxic(Timeout(60.0), between=("rb", "a.example")):
            assert (await caller.request(counter.url, 1)).code == actors.Code.TIMEOUT
    protofly_trace.assert_conformant()
