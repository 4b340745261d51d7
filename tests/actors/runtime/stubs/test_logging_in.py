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
from actors.runtime.registry.allocation import AllocationError
from actors.runtime.stubs.credentials import (
    Credentials,
    CredentialsError,
    SessionError,
    TokenFile,
    obtain_token,
    token_credentials,
)
from actors.runtime.stubs.token_sources import TokenCommand
from specs.limits.node import KEYS_PAUSE, TOKEN_CHARS, TOKEN_TIMEOUT
from specs.limits.protocol import RETRY_COOL_DOWN
from specs.reply_code import Code
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


async def test_a_link_that_is_lost_needs_no_login(autojump_clock):
    """MN-06: the session's token does."""
    network, purse = MemoryNetwork(), Purse(an_issuer())
    async with opened(login_by(purse.issuer), purse, network) as runtime:
        await runtime.enter()
        for wire in network.open_wires(Kind.WEBSOCKET):
            wire.cut()
        await trio.sleep(1)
        await runtime.enter()

    assert purse.taken == 1


async def test_an_expired_session_is_opened_anew_without_effect_on_hyperties(autojump_clock):
    """MN-05: its addresses are still the hyperty's."""
    purse = Purse(an_issuer())
    async with opened(login_by(purse.issuer, life=100.0), purse) as runtime:
        here, there = Echo(), Echo()
        await runtime.deploy("here", lambda: here)
        to = await runtime.deploy("there", lambda: there)
        for round_ in range(1, 5):
            await trio.sleep(100)
            assert (await here.request(to, round_)).code == 200
            await runtime.enter()
            assert purse.taken == round_ + 1


@pytest.mark.parametrize("kinds", [(), (Kind.TCP,)], ids=["plain", "links"])
@pytest.mark.parametrize("token", [None, "rubbish"])
async def test_a_refused_runtime_is_notified(kinds, token, autojump_clock):
    async with opened(login_by(an_issuer()), token_credentials(token), kinds=kinds) as runtime:
        with pytest.raises(SessionError) as refused:
            await runtime.enter()

    assert refused.value.code == 401
    assert ("no token" in refused.value.reason) is (token is None)


async def test_a_hyperty_that_cannot_be_deployed_for_want_of_a_login_says_so(autojump_clock):
    async with opened(login_by(an_issuer()), token_credentials("rubbish")) as runtime:
        with pytest.raises(AllocationError, match="no signed JSON Web Token") as refused:
            await runtime.deploy("echo", Echo)

    assert refused.value.code == 401


async def test_an_identity_provider_that_is_away_is_tried_again(autojump_clock):
    """503 is no refusal: the open is repeated while there is time."""
    purse = Purse(an_issuer())
    shelf = FakeKeySource(purse.issuer.jwks(), pause=0.1, why="away")
    async with opened(login_by(purse.issuer, shelf), purse) as runtime, trio.open_nursery() as all_:
        all_.start_soon(runtime.enter)
        await trio.sleep(1)
        shelf.why = ""

    assert purse.taken > 1


async def test_an_identity_provider_that_stays_away_is_no_refusal(autojump_clock):
    purse = Purse(an_issuer())
    shelf = FakeKeySource(purse.issuer.jwks(), why="away")
    async with opened(login_by(purse.issuer, shelf), purse) as runtime:
        with pytest.raises(SessionError) as refused:
            await runtime.enter()
        shelf.why = ""
        await trio.sleep(max(RETRY_COOL_DOWN, KEYS_PAUSE) + 1)
        await runtime.enter()

    assert refused.value.code == 503


# ---- the file of a token


async def test_a_file_is_read_at_each_open(tmp_path):
    path = written(tmp_path / "token", "one\n")
    source = TokenFile(path)
    assert await source.token("a.ex") == "one"
    written(path, "  two ")

    assert await source.token("a.ex") == "two"


@pytest.mark.parametrize("content", [None, "", "\n", "two words", "x" * 8193, "ü"])
async def test_a_file_without_a_token_gives_none_and_says_why(tmp_path, content):
    path = tmp_path / "token"
    if content is not None:
        written(path, content)
    source = TokenFile(path)

    with pytest.raises(CredentialsError, match="cannot use the token file"):
        source.read()
    with captured_log() as logs:
        assert (await obtain_token(source, "a.ex")).code == 503
    assert [one["event"] for one in logs] == ["login token"]
    assert "two words" not in str(logs)


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


async def test_a_source_is_told_the_domain_of_the_node(autojump_clock):
    issuer = an_issuer()

    async def good():
        await trio.lowlevel.checkpoint()
        return issuer.token()

    source = Source(good)
    async with opened(login_by(issuer), source) as runtime:
        await runtime.enter()

    assert source.asked == [DOMAIN]


async def test_a_source_that_is_slower_than_a_node_waits_still_logs_in(autojump_clock):
    """The node cuts who is silent; the token is there before the node is dialled."""
    issuer = an_issuer()

    async def slow():
        await trio.sleep(TOKEN_TIMEOUT - 1)
        issuer.now = trio.current_time()
        return issuer.token()

    async with opened(login_by(issuer), Source(slow)) as runtime:
        await runtime.enter()


async def test_a_slow_source_logs_in_again_after_the_session_is_over(autojump_clock):
    issuer = an_issuer()

    async def slow():
        await trio.sleep(TOKEN_TIMEOUT - 1)
        issuer.now = trio.current_time()
        return issuer.token()

    source = Source(slow)
    async with opened(login_by(issuer, life=100.0), source) as runtime:
        await runtime.enter()
        await trio.sleep(150)
        await runtime.enter()
        assert len(source.asked) <= 4


@pytest.mark.parametrize(
    ("code", "said"), [(401, "bad client"), (503, "bad client")], ids=["refused", "away"]
)
async def test_a_source_that_fails_is_tried_again_unless_it_refuses(code, said, autojump_clock):
    async def bad():
        await trio.lowlevel.checkpoint()
        raise CredentialsError("bad client", Code(code))

    source = Source(bad)
    async with opened(login_by(an_issuer()), source) as runtime:
        with pytest.raises(SessionError, match=said) as refused:
            await runtime.enter()

    assert (refused.value.code, len(source.asked) > 1) == (code, code == 503)


@pytest.mark.parametrize("bad", [ValueError("secret"), "two words", 7, "hang"])
async def test_whatever_a_source_does_the_runtime_goes_on(bad, autojump_clock):
    issuer, is_well = an_issuer(), trio.Event()

    async def work():
        await trio.lowlevel.checkpoint()
        if is_well.is_set():
            issuer.now = trio.current_time()
            return issuer.token()
        if bad == "hang":
            await trio.sleep_forever()
        if isinstance(bad, Exception):
            raise bad
        return bad

    with captured_log() as logs:
        async with opened(login_by(issuer), Source(work)) as runtime:
            with pytest.raises(SessionError):
                await runtime.enter()
            is_well.set()
            await trio.sleep(RETRY_COOL_DOWN + 1)
            await runtime.enter()

    assert "login token" in {one["event"] for one in logs}


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
