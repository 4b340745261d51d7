"""Guesses of session tokens cost links; the holder of the token is not kept out by them (S2)."""

from contextlib import suppress

import pytest

from actors.kit.counters import Tally
from specs.limits.protocol import MAX_FAILED_OPENS
from specs.message import Message, MessageType
from tests.support.node.issuer import Issuer, login_by, opened
from tests.support.node.node_peer import RA, open_world
from transports.codec import encode
from transports.errors import LinkError

GUESSES = 2_000


async def guessed(world, method, count):
    """Guess over one link; return how many guesses were answered before it was closed."""
    thief, answered = await world.outsider(), 0
    with suppress(LinkError):
        for number in range(count):
            answer = await thief.control(method, runtimeURL=RA, token=f"{number:064x}")
            assert answer.code in {401, 409}
            answered += 1
    return answered


@pytest.mark.parametrize("method", ["open", "re-open"])
async def test_two_thousand_guesses_on_one_link_are_impossible(autojump_clock, method):
    """SEC-02."""
    async with open_world() as world:
        await world.peer()
        assert await guessed(world, method, GUESSES) == MAX_FAILED_OPENS + 1


async def test_guesses_that_are_sent_without_a_wait_are_not_judged_either(autojump_clock):
    async with open_world() as world:
        await world.peer()
        thief = await world.outsider()
        body = {"method": "re-open", "params": {"runtimeURL": RA, "token": "guess"}}
        await thief.raw(
            b"\n".join(
                encode(Message(n, MessageType.EXECUTE, thief.stub, f"{thief.node}/session", body))
                for n in range(1, 65)
            )
        )
        with suppress(LinkError):
            await thief.read_on()
        assert world.node.counters.tallies[Tally.REFUSALS] == {(401,): MAX_FAILED_OPENS + 1}


async def test_with_logins_they_are_impossible_too(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        await opened(await world.outsider(), issuer.token())
        assert await guessed(world, "open", GUESSES) == MAX_FAILED_OPENS + 1


async def test_each_further_link_of_the_host_has_one_guess(autojump_clock):
    """SEC-02."""
    async with open_world() as world:
        await world.peer()
        await guessed(world, "re-open", 10)
        assert [await guessed(world, "re-open", 10) for _ in range(3)] == [1, 1, 1]


async def test_the_holder_of_the_token_comes_back_from_the_same_host(autojump_clock):
    async with open_world() as world:
        first = await world.peer()
        await guessed(world, "re-open", 10)
        again = await world.outsider()
        assert (await again.control("re-open", runtimeURL=RA, token=first.token)).code == 200


async def test_an_unknown_session_is_no_guess(autojump_clock):
    """After a restart without a state file many ask for what is forgotten."""
    async with open_world() as world:
        peer = await world.outsider()
        for _ in range(3 * MAX_FAILED_OPENS):
            assert (await peer.control("re-open", runtimeURL=RA, token="t" * 64)).code == 410
