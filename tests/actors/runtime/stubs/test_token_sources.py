"""Sources of login tokens: a command, and a token endpoint, with real nodes and servers."""

import stat
import sys
import time
from base64 import b64decode
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import parse_qsl

import attrs
import pytest
import trio

import actors
from actors.runtime.stubs.credentials import CredentialsError
from actors.runtime.stubs.login import obtain_token
from actors.runtime.stubs.token_sources import OAuthCredentials, TokenCommand
from specs.reply_code import Code
from tests.support.node.http_server import Said, open_http_server
from tests.support.node.issuer import Issuer, login_by, written

DOMAIN = "a.ex"
SECRET = "s3cret+/ü"  # noqa: S105 - of a test


def real_time():
    return time.time_ns() / 1e9


def python(program):
    return TokenCommand([sys.executable, "-c", program])


# ---- a command


async def test_the_first_line_of_a_command_is_a_token():
    program = "import os; print(os.environ['PROTOFLY_AUDIENCE']); print('more\\n' * 9999)"

    assert await python(program).token(DOMAIN) == DOMAIN


async def test_a_command_that_is_not_there_is_said():
    with pytest.raises(CredentialsError, match="cannot run the command /no/such: No such file"):
        await TokenCommand(["/no/such"]).token(DOMAIN)


# ---- a token endpoint


@attrs.define
class Provider:
    """Issues tokens like an identity provider, and notes what it was asked."""

    issuer: Issuer = attrs.field(factory=lambda: Issuer(domain=DOMAIN))
    answer: Said | None = None
    issued: int = 0
    refresh: str | None = None

    async def __call__(self, call):
        if self.answer is not None:
            return self.answer
        self.issued += 1
        self.issuer.now = real_time()
        more = {} if self.refresh is None else {"refresh_token": self.refresh}
        issued = {"access_token": self.issuer.token(), "token_type": "Bearer", "expires_in": 300}
        return Said(body={**issued, **more})


@asynccontextmanager
async def open_provider():
    provider = Provider()
    async with open_http_server(provider) as server:
        yield provider, server


def client(server, **more):
    usual = {"client_id": "my app", "secret": SECRET}
    return OAuthCredentials(url=f"{server.url}/oauth/token", **{**usual, **more})


def form_of(call):
    return dict(parse_qsl(call.body))


async def test_the_secret_is_sent_as_the_standard_says(tmp_path):
    """RFC 6749, 2.3.1: form-encoded, then Basic."""
    seen = []

    async def raw(stream):
        seen.append(bytes(await stream.receive_some(65_536)))
        await stream.send_all(b"HTTP/1.1 500 no\r\ncontent-length: 0\r\n\r\n")

    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(trio.serve_tcp, raw, 0, host="127.0.0.1"))
        port = listener.socket.getsockname()[1]
        secret = tmp_path / "secret"
        secret.write_text("a+b/c\n")
        source = OAuthCredentials(
            url=f"http://127.0.0.1:{port}/t", client_id="my app", secret=secret
        )
        with pytest.raises(CredentialsError, match="answers with status 500"):
            await source.token(DOMAIN)
        nursery.cancel_scope.cancel()

    [basic] = [one for one in seen[0].split(b"\r\n") if one.startswith(b"authorization: Basic ")]
    assert b64decode(basic.split()[-1]) == b"my+app:a%2Bb%2Fc"
    assert b"content-type: application/x-www-form-urlencoded" in seen[0]


async def test_a_refresh_token_is_replaced_by_the_one_that_comes(tmp_path):
    file = written(tmp_path / "refresh", "one\n")
    async with open_provider() as (provider, server):
        provider.refresh = "two"
        source = client(server, secret=None, refresh=file)
        await source.token(DOMAIN)
        await source.token(DOMAIN)

    assert [form_of(call)["refresh_token"] for call in server.calls] == ["one", "two"]
    assert form_of(server.calls[0])["grant_type"] == "refresh_token"
    assert form_of(server.calls[0])["client_id"] == "my app"
    assert file.read_text() == "two\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_refresh_token_that_an_endpoint_quotes_is_not_passed_on(tmp_path):
    file = tmp_path / "refresh"
    file.write_text("refresh-token")
    async with open_provider() as (provider, server):
        provider.answer = Said(400, {"error": "refresh-token is used"})
        with pytest.raises(CredentialsError, match="refuses: it quotes a secret"):
            await client(server, refresh=file).token(DOMAIN)


async def test_an_endpoint_that_is_away_may_be_there_later():
    async with open_http_server(Provider()) as server:
        pass
    assert (await obtain_token(client(server), DOMAIN)).code == Code.UNAVAILABLE


# ---- a node, a provider and runtimes, on real sockets


async def test_a_runtime_whose_client_is_refused_says_so_at_once():
    async with open_provider() as (provider, server):
        provider.answer = Said(401, {"error": "invalid_client"})
        login = attrs.evolve(login_by(provider.issuer), clock=real_time)
        async with (
            actors.open_node(actors.NodeConfig(domain=DOMAIN, login=login)) as node,
            actors.open_runtime(DOMAIN, "ra", node=node.url, credentials=client(server)) as ra,
        ):
            with pytest.raises(actors.SessionError, match="invalid_client") as refused:
                await ra.enter()

    assert refused.value.code == 401
