"""Used tokens are written down: none opens a second session, whatever becomes of the node (S5)."""

import json
import math
import signal
import sqlite3
from contextlib import suppress

import pytest
import trio
import trio.testing

from actors.cli.group import ExitCode
from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from actors.keys.key_source import KeyFile
from actors.node.login.key_provider import by_keys, terms_of
from actors.node.login.provider import (
    Login,
    LoginRefusedError,
    ProviderAwayError,
    UsedTokenFile,
    UsedTokensError,
)
from fsm.session.assertion import SpentTokens, Use
from tests.support.command import call, called, serving
from tests.support.node.issuer import FakeKeySource, Issuer, opened
from tests.support.node.node_peer import DOMAIN, RB, Peer, open_world
from transports.errors import LinkError
from transports.link import Kind
from transports.system import open_system_network


@pytest.fixture
def path(tmp_path):
    return tmp_path / "used.sqlite"


def login_on(path, issuer, now=lambda: 0.0):
    provider = by_keys(FakeKeySource(issuer.jwks()), terms_of(issuer.domain))
    return Login(provider=provider, clock=now, used_tokens=path)


def provider_on(path, issuer):
    provider = login_on(path, issuer).provider(lambda: 0.0)
    provider.remember(UsedTokenFile(path))
    return provider


async def keep(path, *uses, floor=-math.inf):
    file = UsedTokenFile(path, sweep=4)
    file.load()
    kept = [await file.keep(use, floor) for use in uses]
    file.close()
    return kept


async def test_the_file_is_closed_also_if_closing_is_cancelled(path, tmp_path, monkeypatch):
    closed = []

    def close(self):
        closed.append(self)

    monkeypatch.setattr(UsedTokenFile, "close", close)
    file = UsedTokenFile(path)
    provider = by_keys(KeyFile(tmp_path / "jwks.json"), terms_of("a.ex"))(lambda: 0.0)
    provider.remember(file)
    with trio.CancelScope() as scope:
        scope.cancel()
        await provider.aclose()
    monkeypatch.undo()
    file.close()
    assert closed == [file]


async def test_a_token_stays_used_when_the_node_is_started_again(path):
    issuer = Issuer()
    used, unused = issuer.token(), issuer.token()
    async with open_world(login=login_on(path, issuer)) as world:
        assert (await opened(await world.outsider(), used)).code == 200
    async with open_world(login=login_on(path, issuer)) as world:
        answer = await opened(await world.outsider(), used)
        assert (answer.code, "used already" in answer.body["description"]) == (401, True)
        assert (await opened(await world.outsider(), unused)).code == 200


async def test_of_two_nodes_with_one_file_one_takes_a_token(path):
    issuer = Issuer()
    one, other = (provider_on(path, issuer) for _ in range(2))
    token = issuer.token()
    await one.validate(token, None)
    with pytest.raises(LoginRefusedError, match="used already"):
        await other.validate(token, None)
    await one.aclose()
    await other.aclose()


async def test_a_token_that_cannot_be_recorded_opens_no_session(path):
    issuer = Issuer()
    async with open_world(login=login_on(path, issuer)) as world:
        with sqlite3.connect(path) as other:
            other.execute("BEGIN EXCLUSIVE")
            refused = await opened(await world.outsider(), issuer.token())
            other.rollback()
        assert (refused.code, await world.states()) == (503, {})
        assert (await opened(await world.outsider(RB), issuer.token())).code == 200


async def test_a_failing_file_is_no_fault_of_the_token(path):
    issuer = Issuer()
    provider = provider_on(path, issuer)
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE used")
        with pytest.raises(ProviderAwayError, match="written down"):
            await provider.validate(issuer.token(), None)
    await provider.aclose()


async def test_an_expired_token_leaves_the_file_and_stays_used(path):
    await keep(path, *(Use(bytes([n]), float(n)) for n in range(10)))
    await keep(path, *(Use(bytes([n]), 100.0 + n) for n in range(5)), floor=9.0)
    with sqlite3.connect(path) as file:
        [rows] = file.execute("SELECT count(*) FROM used WHERE until < 100").fetchone()
    back = UsedTokenFile(path)
    spent = back.load()
    back.close()

    assert (rows, spent.floor) == (0, 9.0)
    assert spent.spend("idp", "old", 9.0, 0.0) is None


async def test_a_token_is_written_down_once(path):
    use = Use(b"x", 1.0)

    assert await keep(path, use, use) == [True, False]
    assert await keep(path, use) == [False]


def test_the_issuer_and_the_name_of_a_token_are_kept_apart():
    spent = SpentTokens()

    assert spent.spend("a b", "c", 100.0, 0.0)
    assert spent.spend("a", "b c", 100.0, 0.0)


@pytest.mark.parametrize("content", [b"no database at all, but longer than a header" * 9, None])
def test_a_file_that_is_none_is_refused(path, content):
    where = path if content else path / "nowhere"
    if content:
        path.write_bytes(content)

    with pytest.raises(UsedTokensError, match=r"used\.sqlite"):
        UsedTokenFile(where).load()


# ---- as processes


@pytest.fixture
def key(tmp_path):
    return json.loads(called(keys, "--out", str(tmp_path / "keys")).out[0])


def token_of(key):
    who = ("--user", f"user://{DOMAIN}/alice", "--domain", DOMAIN)
    return called(issue, "--key", key["key"], *who).out[0]


async def logs_in(network, url, token, name):
    runtime = f"hyperty-runtime://{DOMAIN}/{name}"
    peer = Peer(await network.dial(Kind.WEBSOCKET, url), runtime)
    try:
        return (await opened(peer, token)).code
    finally:
        await trio.aclose_forcefully(peer.link)


async def logs_in_until_killed(network, url, tokens, name, taken):
    with suppress(LinkError):
        for token in tokens:
            if await logs_in(network, url, token, name) == 200:
                taken.append(token)


async def test_a_node_that_was_killed_takes_no_token_again(path, key):
    """SEC-04: SIGKILL while four users log in: each token that opened a session is used."""
    node = ("node", "--domain", DOMAIN, "--jwks", key["jwks"], "--used-tokens", str(path))
    taken, room = [], [[token_of(key) for _ in range(200)] for _ in range(4)]
    async with open_system_network() as network:
        async with serving(*node) as killed, trio.open_nursery() as nursery:
            for number, tokens in enumerate(room):
                nursery.start_soon(
                    logs_in_until_killed, network, killed.url, tokens, f"r{number}", taken
                )
            while len(taken) < 40:
                await trio.testing.wait_all_tasks_blocked(0.01)
            await killed.stop(signal.SIGKILL)
        async with serving(*node, "--handshake-rate", "1000") as again:
            codes = {await logs_in(network, again.url, token, "rx") for token in taken}
            assert await logs_in(network, again.url, token_of(key), "rx") == 200

    assert len(taken) >= 40
    assert codes == {401}


@pytest.mark.parametrize("options", [(), ("--jwks",)])
async def test_a_file_that_cannot_be_used_is_reported_in_one_sentence(path, key, options):
    path.write_bytes(b"no database at all, but longer than a header" * 9)
    jwks = ("--jwks", key["jwks"]) if options else ()
    ended = await call("node", "--domain", DOMAIN, *jwks, "--used-tokens", str(path))

    assert (ended.status, ended.out, len(ended.err)) == (ExitCode.CONFIGURATION, [], 1)
    assert "--used-tokens" in ended.err[0]
