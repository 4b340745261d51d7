"""The end of a session for good: its runtime says so, and does not log in again by itself.

Another login has taken it over, its name is another user's, policy forbids it, or no login helps.
"""

from contextlib import asynccontextmanager

import attrs
import pytest
import trio
from typing_extensions import override

from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.node.login.provider import IdentityProvider, Login, LoginRefusedError
from actors.node.policy_hook import Policy
from actors.policy.engine import Decision, Ruling
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.stubs.credentials import Credentials, SessionError, token_credentials
from specs.bodies.word import StatusValue
from specs.identity import Identity
from specs.limits.protocol import LOGIN_PATIENCE, RECONNECT_TRIES
from tests.support.log import captured_log
from tests.support.runtime.domain import DOMAIN, Echo, counted_bytes
from tests.support.trace.memory import MemoryTracer
from transports.link import Kind
from transports.memory import MemoryNetwork

TAKEN = "taken over by another login"


@attrs.define
class Purse(Credentials):
    """A fresh token each time, and how often one was wanted."""

    user: str = "alice"
    taken: int = 0

    @override
    async def token(self, audience: str) -> str:
        await trio.lowlevel.checkpoint()
        self.taken += 1
        return f"{self.user}-{self.taken}"


@attrs.define
class Desk(IdentityProvider):
    """Believes what a token says, unless it believes nobody any more."""

    refuses: bool = False
    after: float | None = None

    @override
    async def validate(self, assertion, key):
        await trio.lowlevel.checkpoint()
        if self.refuses:
            raise LoginRefusedError("the key that it names is unknown", self.after)
        user = f"user://idp.ex/{assertion.partition('-')[0]}"
        return Identity(user=user, issuer="idp.ex", until=1e9)

    @override
    async def aclose(self):
        await trio.lowlevel.checkpoint()


@attrs.define
class Doorman(Policy):
    """Permits everything, until it forbids sessions."""

    is_shut: bool = False

    @override
    def judge(self, message, asker):
        is_open = message.body.get("method") in {"open", "re-open"}
        decision = Decision.DENY if self.is_shut and is_open else Decision.PERMIT
        return Ruling(decision, "test")


@attrs.define
class Place:
    """A node where users log in, and its runtimes, all of one name."""

    network: MemoryNetwork
    url: str
    desk: Desk
    doorman: Doorman
    nursery: trio.Nursery
    runtimes: list = attrs.field(factory=list)

    async def enter(self, credentials):
        """Open a runtime, and its session."""
        runtime = await self.nursery.start(self._run, credentials)
        await runtime.enter()
        return runtime

    async def _run(self, credentials, task_status):
        number = len(self.runtimes) + 1
        config = RuntimeConfig(
            domain=DOMAIN,
            name="alice",
            node=self.url,
            kinds=(),
            credentials=credentials,
            entropy=counted_bytes(number),
        )
        async with open_runtime(config, self.network, MemoryTracer()) as runtime:
            self.runtimes.append(runtime)
            task_status.started(runtime)
            await trio.sleep_forever()

    def cut(self):
        for wire in self.network.open_wires(Kind.WEBSOCKET):
            wire.cut()


@asynccontextmanager
async def open_place(life=1e6):
    network, desk, doorman = MemoryNetwork(), Desk(), Doorman()
    login = Login(provider=lambda _: desk, life=life)
    node = NodeConfig(domain=DOMAIN, login=login, policy=doorman, entropy=counted_bytes(0))
    async with (
        open_node(node, network, MemoryTracer()) as serving,
        trio.open_nursery() as nursery,
    ):
        yield Place(network, serving.url, desk, doorman, nursery)
        nursery.cancel_scope.cancel()


async def is_over(runtime, reason, code):
    """Check that a runtime says why its session is over, and tries nothing."""
    assert (runtime.status.value, runtime.status.end) == (StatusValue.FAILED, reason)
    for _ in range(2):
        with pytest.raises(SessionError) as refused:
            await runtime.enter()
        assert (refused.value.code, refused.value.reason) == (code, reason)


async def test_two_logins_of_one_name_do_not_fight(autojump_clock):
    first, second = Purse(), Purse()
    async with open_place() as place:
        loser = await place.enter(first)
        echo = Echo()
        await loser.deploy("echo", lambda: echo)
        changes = loser.status.changes()
        assert await anext(changes) is StatusValue.LIVE
        with captured_log() as logs:
            winner = await place.enter(second)
            await trio.sleep(120)
            for _ in range(3):
                answer = await echo.request(f"hyperty://{DOMAIN}/nobody", 1)
                assert (answer.code, answer.body["description"]) == (409, TAKEN)
        assert (first.taken, second.taken) == (1, 1)
        assert await anext(changes) is StatusValue.FAILED
        await is_over(loser, TAKEN, 409)
        assert (winner.status.value, winner.status.end) == (StatusValue.LIVE, None)
        await winner.enter()
    told = [line["event"] for line in logs if line.get("why") == TAKEN]
    assert (told.count("session taken over"), told.count("session over")) == (1, 1)


async def test_each_of_many_logins_of_one_name_ends_the_one_before(autojump_clock):
    purses = [Purse() for _ in range(6)]
    async with open_place() as place:
        for purse in purses:
            await place.enter(purse)
        await trio.sleep(120)
        ends = [runtime.status.end for runtime in place.runtimes]
        assert ends == [TAKEN] * 5 + [None]
    assert [purse.taken for purse in purses] == [1] * 6


async def test_a_runtime_whose_link_was_cut_keeps_its_session(autojump_clock):
    """A passing end."""
    purse = Purse()
    async with open_place() as place:
        runtime = await place.enter(purse)
        for _ in range(5):
            place.cut()
            await trio.sleep(30)
        assert (runtime.status.value, runtime.status.end) == (StatusValue.LIVE, None)
    assert purse.taken == 1


async def test_a_runtime_that_policy_forbids_the_session_later_ends(autojump_clock):
    purse = Purse()
    async with open_place() as place:
        runtime = await place.enter(purse)
        place.doorman.is_shut = True
        place.cut()
        await trio.sleep(120)
        assert runtime.status.value is StatusValue.FAILED
        place.doorman.is_shut = False
        await is_over(runtime, runtime.status.end, 403)
    assert purse.taken == 1


async def test_a_runtime_whose_name_is_another_users_ends(autojump_clock):
    """Its credentials are over, and it logs in as somebody else."""
    purse = Purse()
    async with open_place(life=100.0) as place:
        runtime = await place.enter(purse)
        purse.user = "bob"
        await trio.sleep(200)
        assert "belongs to another user" in runtime.status.end
        await is_over(runtime, runtime.status.end, 409)
    assert purse.taken == 2


@pytest.mark.parametrize("is_single", [True, False])
async def test_a_runtime_whose_logins_are_refused_ends(is_single, autojump_clock):
    """A key is revoked: fresh tokens are tried for a while, of a single one it is certain."""
    purse = Purse()
    async with open_place(life=100.0) as place:
        runtime = await place.enter(token_credentials("alice-1") if is_single else purse)
        place.desk.refuses = True
        with captured_log() as logs:
            await trio.sleep(100 + LOGIN_PATIENCE / 2)
            assert (runtime.status.end is None) is not is_single
            await trio.sleep(LOGIN_PATIENCE)
        assert "key that it names is unknown" in runtime.status.end
        assert len([line for line in logs if line["event"] == "session over"]) == 1
        place.desk.refuses = False
        await is_over(runtime, runtime.status.end, 401)
        taken = purse.taken
        await trio.sleep(400)
    assert purse.taken == taken
    assert taken == 0 if is_single else taken > RECONNECT_TRIES


@pytest.mark.parametrize("is_single", [True, False])
async def test_a_runtime_whose_login_is_refused_for_a_while_stays(is_single, autojump_clock):
    """The clock of the node is behind: it says when the token becomes good."""
    purse = Purse()
    async with open_place(life=100.0) as place:
        runtime = await place.enter(token_credentials("alice-1") if is_single else purse)
        place.desk.refuses, place.desk.after = True, 300.0
        await trio.sleep(400)
        assert runtime.status.end is None
        place.desk.refuses = False
        await trio.sleep(60)
        assert (runtime.status.value, runtime.status.end) == (StatusValue.LIVE, None)


async def test_a_runtime_that_is_started_again_logs_in_whoever_has_its_session(autojump_clock):
    """The application asks for that; what had the session before ends."""
    purse = Purse()
    async with open_place() as place:
        runtime = await place.enter(Purse())
        await place.enter(Purse())
        await trio.sleep(60)
        assert runtime.status.end == TAKEN
        again = await place.enter(purse)
        await trio.sleep(60)
        assert [each.status.end for each in place.runtimes] == [TAKEN, TAKEN, None]
        assert again.status.value is StatusValue.LIVE
    assert purse.taken == 1
