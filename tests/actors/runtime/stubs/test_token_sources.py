"""Sources of login tokens: a command, and a token endpoint, with real nodes and servers."""

import os
import ssl
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
import trustme

import actors
from actors.runtime.stubs.credentials import CredentialsError, obtain_token
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


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("raise SystemExit(3)", "ended with status 3"),
        ("print('good'); raise SystemExit(1)", "ended with status 1"),
        ("", "is no token"),
        ("print('two words')", "is no token"),
        ("print('\\nlate')", "is no token"),
        ("print('x' * 9000)", "longer than 8192 characters"),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\n')", "is no token"),
        ("print(input())", "ended with status 1"),
    ],
)
async def test_what_a_command_does_wrong_is_said(program, said):
    with pytest.raises(CredentialsError, match=said) as failed:
        await python(program).token(DOMAIN)

    assert "good" not in str(failed.value)


async def test_a_command_that_is_not_there_is_said():
    with pytest.raises(CredentialsError, match="cannot run the command /no/such: No such file"):
        await TokenCommand(["/no/such"]).token(DOMAIN)


async def test_a_command_that_hangs_is_killed(tmp_path):
    fifo = tmp_path / "pid"
    os.mkfifo(fifo)
    program = (
        "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"print('partial', flush=True); open({str(fifo)!r}, 'w').write(str(os.getpid()))\n"
        "signal.pause()"
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(python(program).token, DOMAIN)
        with trio.fail_after(60):
            pid = int(await trio.Path(fifo).read_text())
        nursery.cancel_scope.cancel()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


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


async def test_a_client_asks_for_itself():
    async with open_provider() as (_, server):
        first = await client(server, scope="open").token(DOMAIN)
        second = await client(server, audience="urn:node").token(DOMAIN)

    one, two = server.calls
    assert first != second
    assert (one.method, one.segments) == ("POST", ("oauth", "token"))
    assert form_of(one) == {
        "grant_type": "client_credentials", "scope": "open", "audience": DOMAIN,
    }  # fmt: skip
    assert form_of(two)["audience"] == "urn:node"


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


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (Said(401, {"error": "invalid_client"}), 401, "refuses: invalid_client"),
        (
            Said(400, {"error": "invalid_grant", "error_description": "it is used"}),
            401,
            "refuses: invalid_grant: it is used",
        ),
        (
            Said(400, {"error": "x", "error_description": f"not {SECRET}"}),
            401,
            "refuses: it quotes a secret",
        ),
        (Said(403, raw=b"<html>"), 401, "refuses: 403"),
        (Said(503, {"error": "busy"}), 503, "answers with status 503"),
        (Said(302, headers=(("location", "http://127.0.0.1:1/"),)), 503, "redirect"),
        (Said(200, {"token_type": "Bearer"}), 503, "issues no access token"),
        (Said(200, {"access_token": "two words"}), 503, "issues no access token"),
        (Said(200, raw=b"{"), 503, "issues no access token"),
        (Said(200, raw=b" " * 70_000), 503, "larger than"),
    ],
)
async def test_what_an_endpoint_refuses_or_does_wrong_is_said(answer, code, said):
    async with open_provider() as (provider, server):
        provider.answer = answer
        with pytest.raises(CredentialsError, match=said) as failed:
            await client(server).token(DOMAIN)

    assert failed.value.code == code
    assert SECRET not in str(failed.value)


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


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://idp.example/token", "it must be https"),
        ("ftp://idp.example", "no HTTP server"),
        ("https://me:secret@idp.example", "no HTTP server"),
    ],
)
def test_an_endpoint_without_tls_is_none(url, said):
    with pytest.raises(CredentialsError, match=said):
        OAuthCredentials(url=url, client_id="app", secret=SECRET)


def test_a_client_without_a_secret_needs_a_refresh_token():
    with pytest.raises(CredentialsError, match="needs a refresh token"):
        OAuthCredentials(url="https://idp.example", client_id="app")


def test_a_secret_is_not_shown():
    shown = repr(OAuthCredentials(url="https://idp.example", client_id="app", secret=SECRET))

    assert "app" in shown
    assert SECRET not in shown


async def test_the_certificate_of_an_endpoint_is_verified():
    authority = trustme.CA()
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(theirs)
    ours = ssl.create_default_context()
    authority.configure_trust(ours)
    body = b'{"access_token":"good"}'

    async def serve(stream):
        try:
            await stream.receive_some(65_536)
            head = f"HTTP/1.1 200 ok\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            await stream.send_all(head.encode() + body)
        except trio.BrokenResourceError:
            pass

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_ssl_over_tcp_listeners(0, theirs, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        port = listener.transport_listener.socket.getsockname()[1]
        usual = {"url": f"https://127.0.0.1:{port}/token", "client_id": "app", "secret": SECRET}
        with pytest.raises(CredentialsError, match="cannot be asked"):
            await OAuthCredentials(**usual).token(DOMAIN)
        assert await OAuthCredentials(**usual, tls=ours).token(DOMAIN) == "good"
        nursery.cancel_scope.cancel()


# ---- a node, a provider and runtimes, on real sockets


@attrs.define
class Restarted:
    """A node that is stopped and started at the same place."""

    config: actors.NodeConfig
    url: str = ""
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    async def run(self, task_status):
        with trio.CancelScope() as self.scope:
            async with actors.open_node(self.config) as node:
                self.url = node.url
                self.config = attrs.evolve(self.config, listen=node.url.split("/")[2])
                task_status.started()
                await trio.sleep_forever()


async def test_a_source_of_an_application_has_attributes_as_it_likes():
    class Source:
        patience = "three"

        async def token(self, _audience):
            return "word"

    assert await obtain_token(Source(), DOMAIN) == "word"


async def test_after_a_restart_of_the_node_a_runtime_gets_a_token_and_is_back():
    async with open_provider() as (provider, server), trio.open_nursery() as nursery:
        login = attrs.evolve(login_by(provider.issuer), clock=real_time)
        node = Restarted(actors.NodeConfig(domain=DOMAIN, login=login))
        await nursery.start(node.run)
        async with actors.open_runtime(
            DOMAIN, "ra", node=node.url, credentials=client(server)
        ) as runtime:
            await runtime.enter()
            assert provider.issued == 1
            node.scope.cancel()
            await nursery.start(node.run)
            await server.until(lambda: provider.issued == 2)
            await runtime.enter()
        nursery.cancel_scope.cancel()


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
