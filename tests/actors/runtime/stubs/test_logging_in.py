"""A runtime logs in at its node: when it is asked to, with a token as fresh as can be."""

import sys
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
from typing_extensions import override

from actors.keys.token import BadTokenError, read_token
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.stubs.credentials import (
    Credentials,
    SessionError,
    TokenFile,
    token_credentials,
)
from actors.runtime.stubs.login import obtain_token
from actors.runtime.stubs.token_sources import TokenCommand
from specs.limits.node import TOKEN_CHARS
from specs.limits.protocol import RETRY_COOL_DOWN
from tests.support.log import captured_log
from tests.support.node.issuer import FakeKeySource, Issuer, login_by, written
from tests.support.runtime.domain import DOMAIN, Echo, counted_bytes
from tests.support.trace.memory import MemoryTracer
from transports.link import Kind
from transports.memory import MemoryNetwork


@attrs.define
class Purse(Credentials):
    """A fresh token each time, and how often one was wanted."""

    issuer: Issuer
    taken: int = 0

    @override
    async def token(self, audience: str) -> str:
        await trio.lowlevel.checkpoint()
        self.taken += 1
        self.issuer.now = trio.current_time()
        return self.issuer.token()


@asynccontextmanager
async def opened(login, credentials, network=None, kinds=()):
    """Run a node and one runtime."""
    network = network or MemoryNetwork()
    node = NodeConfig(domain=DOMAIN, login=login, entropy=counted_bytes(0))
    async with open_node(node, network, MemoryTracer()) as serving:
        config = RuntimeConfig(
            domain=DOMAIN,
            name="alice",
            node=serving.url,
            kinds=kinds,
            credentials=credentials,
            entropy=counted_bytes(1),
        )
        async with open_runtime(config, network, MemoryTracer()) as runtime:
            yield runtime


def an_issuer():
    return Issuer(domain=DOMAIN)


async def test_a_runtime_logs_in_when_it_needs_the_node(autojump_clock):
    """STB-18."""
    purse = Purse(an_issuer())
    async with opened(login_by(purse.issuer), purse) as runtime:
        assert purse.taken == 0
        await runtime.deploy("echo", Echo)
        await runtime.enter()

    assert purse.taken == 1


async def test_an_identity_provider_that_is_away_is_tried_again(autojump_clock):
    """503 is no refusal: the open is repeated while there is time."""
    purse = Purse(an_issuer())
    shelf = FakeKeySource(purse.issuer.jwks(), pause=0.1, why="away")
    async with opened(login_by(purse.issuer, shelf), purse) as runtime, trio.open_nursery() as all_:
        all_.start_soon(runtime.enter)
        await trio.sleep(1)
        shelf.why = ""

    assert purse.taken > 1


# ---- the file of a token


async def test_a_token_that_is_too_long_is_refused_with_that_reason(tmp_path):
    """Of each source of tokens, and by the node."""
    token = "x" * (TOKEN_CHARS + 1)
    path = written(tmp_path / "token", token)
    command = TokenCommand((sys.executable, "-c", f"print('x' * {TOKEN_CHARS + 1})"))
    for source in (TokenFile(path), command, token_credentials(token)):
        with captured_log() as logs:
            refused = await obtain_token(source, "a.ex")
        assert f"longer than {TOKEN_CHARS} characters" in refused.reason
        assert f"longer than {TOKEN_CHARS} characters" in logs[0]["why"]
    with pytest.raises(BadTokenError, match=f"longer than {TOKEN_CHARS} characters"):
        read_token(token)


# ---- sources that fail, hang, or are slow


@attrs.define
class Source(Credentials):
    """Does what a test wants."""

    work: Callable[[], Awaitable[str]]
    asked: list[str] = attrs.field(factory=list)

    @override
    async def token(self, audience):
        self.asked.append(audience)
        return await self.work()


@pytest.mark.parametrize("kinds", [(), (Kind.TCP,)], ids=["plain", "links"])
async def test_a_refused_runtime_may_try_again_with_another_token(kinds, autojump_clock):
    """A refusal is reported once, also one that came before; the next call asks the node."""
    purse, is_well = Purse(an_issuer()), trio.Event()

    async def work():
        return await purse.token("") if is_well.is_set() else "rubbish"

    async with opened(login_by(purse.issuer), Source(work), kinds=kinds) as runtime:
        with pytest.raises(SessionError, match="no signed JSON Web Token"):
            await runtime.enter()
        is_well.set()
        await trio.sleep(RETRY_COOL_DOWN + 1)
        await runtime.enter()


async def test_a_login_that_is_refused_later_is_logged_with_the_reason(autojump_clock):
    issuer = an_issuer()
    token = issuer.token()
    async with opened(login_by(issuer, life=100.0), token_credentials(token)) as runtime:
        await runtime.enter()
        with captured_log() as logs:
            await trio.sleep(130)

    [mine] = [one for one in logs if one["event"] == "login refused" and "code" in one]
    assert (mine["log_level"], mine["domain"], mine["code"]) == ("warning", DOMAIN, 401)
    assert "used already" in mine["why"]
    assert token not in str(logs)
