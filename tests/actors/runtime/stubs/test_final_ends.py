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
from actors.runtime.stubs.credentials import Credentials, SessionError
from specs.bodies.word import StatusValue
from specs.identity import Identity
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
