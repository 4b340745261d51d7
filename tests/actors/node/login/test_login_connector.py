"""The identity connector and whoever is behind it: slow, broken, crowded, scripted (CON-01)."""

import math

import attrs
import pytest
import trio
import trio.testing
from typing_extensions import override

from actors.node.limits import UNLIMITED
from actors.node.login.provider import IdentityProvider, Login, LoginRefusedError
from specs.identity import Identity
from specs.limits.node import LOGIN_TIMEOUT, LOGINS_PENDING
from specs.limits.protocol import OPEN_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import DropReason
from tests.support.node.issuer import ALICE, Issuer, login_by, opened
from tests.support.node.node_peer import DOMAIN, RA, RB, SESSION, open_world

IDM = f"domain://idm.{DOMAIN}"
CROWD = attrs.evolve(UNLIMITED, unauthenticated=math.inf, unauthenticated_per_host=math.inf)


@attrs.define
class Scripted(IdentityProvider):
    """Knows what stands in its script, and does with the rest what it is ordered to."""

    script: dict[str, Identity] = attrs.field(factory=dict)
    hangs: bool = False
    breaks: bool = False
    closed: int = 0
    answers: trio.Event | None = None

    @override
    async def validate(self, assertion: str, key: str | None) -> Identity:
        await trio.lowlevel.checkpoint()
        if self.answers is not None:
            await self.answers.wait()
        if self.hangs:
            await trio.sleep_forever()
        if self.breaks:
            raise ZeroDivisionError(assertion)
        if assertion not in self.script:
            raise LoginRefusedError("it is not in the script")
        return self.script[assertion]

    @override
    async def aclose(self) -> None:
        self.closed += 1


def alice(until=math.inf):
    return Identity(user=ALICE, issuer="idp", until=until, roles=frozenset({"b", "a"}))


def by(provider, **more):
    return Login(provider=lambda _: provider, **more)


async def validated(peer, assertion):
    params = {"assertion": assertion, "origin": DOMAIN}
    return await peer.ask("execute", f"{RA}/ua", IDM, method="validateAssertion", params=params)


async def test_any_provider_may_stand_behind_the_connector(autojump_clock):
    """SC-40: the assertion is whatever the provider takes."""
    provider = Scripted({"eyJ.jwt": alice()})
    async with open_world(login=by(provider)) as world:
        peer = await world.outsider()
        assert (await opened(peer, "eyJ.jwt")).code == 200
        answer = await validated(peer, "eyJ.jwt")
        reported = {"user": ALICE, "issuer": "idp", "roles": ["a", "b"]}
        assert answer.body == {"code": 200, "value": reported}
        assert (await opened(await world.outsider(), "eyJ.other")).code == 401
    assert provider.closed == 1


async def test_an_identity_ends_when_its_provider_says(autojump_clock):
    async with open_world(login=by(Scripted({"x": alice(until=15.0)}), life=100.0)) as world:
        await opened(await world.outsider(), "x")
        await trio.sleep(14)
        assert await world.states() == {RA: "open"}
        await trio.sleep(2)
        assert await world.states() == {RA: "detached"}
        assert (await opened(await world.outsider(), "x")).code == 401


async def test_a_provider_that_hangs_is_not_waited_for(autojump_clock):
    """M-55: the connector answers 504; who wants a session may try again."""
    provider = Scripted(hangs=True)
    async with open_world(login=by(provider)) as world:
        assert (await opened(await world.outsider(), "x")).code == 503
        assert LOGIN_TIMEOUT <= trio.current_time() < OPEN_TIMEOUT
        assert [one.code for one in world.tracer.facts if one.from_ == IDM] == [504]


async def test_a_failing_provider_admits_no_runtime_and_harms_nothing_else(autojump_clock):
    """Its exception is the end of that login alone, and at once."""
    provider = Scripted({"x": alice()})
    async with open_world(login=by(provider)) as world:
        await opened(first := await world.outsider(), "x")
        provider.breaks = True
        other = await world.outsider("hyperty-runtime://a.ex/rb")
        assert (await opened(other, "y")).code == 503
        assert (await validated(first, "y")).code == 502
        assert trio.current_time() < 1
        provider.breaks = False
        assert (await opened(await world.outsider(), "x")).code == 200
    assert provider.closed == 1


async def test_a_token_stays_used_when_the_connector_crashes(autojump_clock):
    """S5: what was seen outlives the actor."""
    issuer = Issuer()
    login = login_by(issuer)
    token, made = issuer.token(), []

    def provider(clock):
        inner = login.provider(clock)
        made.append(inner)
        return Fragile(inner)

    async with open_world(login=attrs.evolve(login, provider=provider)) as world:
        first = await world.outsider()
        assert (await opened(first, token)).code == 200
        await first.control("ping")
        assert (
            await opened(await world.outsider("hyperty-runtime://a.ex/rb"), "crash")
        ).code == 503
        assert (await opened(await world.outsider(), token)).code == 401
    assert len(made) == 1


@attrs.define
class Fragile(IdentityProvider):
    """Crashes at a word."""

    inner: IdentityProvider

    @override
    async def validate(self, assertion: str, key: str | None) -> Identity:
        if assertion == "crash":
            raise ZeroDivisionError
        return await self.inner.validate(assertion, key)

    @override
    async def aclose(self) -> None:
        await self.inner.aclose()


async def test_a_link_that_is_cut_before_its_end_is_reported_of_gets_nothing(autojump_clock):
    """An outsider that floods and does not read is cut; the answer that comes then harms nobody."""
    few = attrs.evolve(CROWD, outbox_messages=5)
    provider = Scripted({"x": alice()}, answers=trio.Event())
    async with open_world(login=by(provider), limits=few) as world:
        peer = await world.outsider()
        params = {"runtimeURL": RA, "token": "x"}
        await peer.post("execute", peer.stub, SESSION, method="open", params=params)
        await trio.testing.wait_all_tasks_blocked()
        pings = [
            Message(n, MessageType.EXECUTE, peer.stub, SESSION, {"method": "ping"})
            for n in range(2, 99)
        ]
        bus = world.node._bus
        assert bus.try_tell(lambda node: (node.take_items(1, pings), provider.answers.set()))
        await trio.testing.wait_all_tasks_blocked()

        assert await world.states() == {}
        assert world.steps("session") == []
        drops = world.node.counters.drops
        # The answer goes nowhere: the link is cut, or has been reported of before it came.
        assert drops[DropReason.SESSION_GONE] + drops[DropReason.UNMATCHED] == 97 - 5


async def test_there_is_an_end_to_how_many_are_looked_into_at_once(autojump_clock):
    provider = Scripted({"x": alice()})
    async with open_world(login=by(provider), limits=CROWD) as world:
        await opened(peer := await world.outsider(), "x")
        provider.hangs = True
        params = {"assertion": "y", "origin": DOMAIN}
        for _ in range(LOGINS_PENDING + 10):
            await peer.post("execute", f"{RA}/ua", IDM, method="validateAssertion", params=params)
        provider.hangs = False
        assert (await opened(await world.outsider(RB), "x")).code == 200
        codes = [(await peer.hear()).code for _ in range(LOGINS_PENDING + 10)]

    share = LOGINS_PENDING // 8  # so that one runtime keeps no other from logging in
    assert codes == [503] * (LOGINS_PENDING + 10 - share) + [504] * share


async def test_there_is_an_end_to_how_many_wait_for_a_session(autojump_clock):
    provider, codes = Scripted(hangs=True), []

    async def tries(number):
        runtime = f"hyperty-runtime://a.ex/r{number}"
        codes.append((await opened(await world.outsider(runtime), f"y{number}")).code)
        times.append(trio.current_time())

    times = []
    async with open_world(login=by(provider), limits=CROWD) as world, trio.open_nursery() as all_:
        for number in range(LOGINS_PENDING + 10):
            all_.start_soon(tries, number)

    asked = [one for one in world.tracer.facts if one.to == IDM]
    assert len(asked) == LOGINS_PENDING
    assert set(codes) == {503}
    assert sum(time < 1 for time in times) == 10


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
async def test_a_clock_that_jumps_ends_no_session_and_opens_none(jump, autojump_clock):
    """R12: sessions by the clock that only goes on, tokens by the world's, +- 60 s."""
    issuer, skew = Issuer(now=1e9), [1e9]
    login = login_by(issuer, clock=lambda: skew[0] + trio.current_time())
    async with open_world(login=login) as world:
        old = [issuer.token(), issuer.token()]
        assert (await opened(await world.outsider(), old[0])).code == 200
        skew[0] += jump
        assert (await opened(await world.outsider(), old[1])).code == 401
        issuer.now += jump
        assert await world.states() == {RA: "open"}
        assert (await opened(await world.outsider(), issuer.token())).code == 200
        skew[0] -= jump
        issuer.now -= jump
        assert (await opened(await world.outsider(), old[0])).code == 401
