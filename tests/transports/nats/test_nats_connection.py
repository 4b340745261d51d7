"""Servers are dialled, encrypted and convinced; those that cannot be used are named."""

import pytest
import trio

from tests.support.nats_keys import ACCOUNT, OPERATOR, USER, Key
from tests.support.nats_server import needs_server, run_server
from tests.support.ports import free_port
from tests.support.wire.certificates import Certificates
from transports.nats.connection import ServerUrl, Terms, dial_server
from transports.nats.wire import Credentials, CredentialsError, NatsError


async def server_id(terms: Terms) -> str:
    """Return the id of the first server, once it listens."""
    while True:
        try:
            connection = await dial_server(terms, terms.servers[0])
        except NatsError as exc:
            if "connection refused" not in str(exc):
                raise
            await trio.sleep(0.01)  # real time: it tries again
        else:
            await trio.aclose_forcefully(connection.link)
            return connection.server_id


def terms_for(server, **more) -> Terms:
    return Terms((ServerUrl.read(server.url),), **more)


def configured(tmp_path, text: str):
    (tmp_path / "nats.conf").write_text(text)
    return "-c", str(tmp_path / "nats.conf")


# --- URLs -----------------------------------------------------------------------------------------


def test_urls_are_read():
    assert ServerUrl.read("nats://a.example") == ServerUrl("a.example", 4222, is_encrypted=False)
    assert ServerUrl.read("tls://[::1]:42/") == ServerUrl("::1", 42, is_encrypted=True)
    assert ServerUrl.read("tls://[::1]:42/").address == "[::1]:42"


@pytest.mark.parametrize(
    "text",
    ["", "a.example:4222", "http://a.example", "nats://", "nats://a/b", "nats://a:b", "nats://a?b"],
)
def test_other_urls_are_refused(text):
    with pytest.raises(ValueError, match=r"URL|[Pp]ort"):
        ServerUrl.read(text)


def test_a_secret_in_a_url_is_refused_and_not_repeated():
    with pytest.raises(ValueError, match="credentials") as caught:
        ServerUrl.read("nats://user:geheim@a.example")
    assert "geheim" not in str(caught.value)


# --- servers --------------------------------------------------------------------------------------


async def test_where_nobody_listens_is_said():
    terms = Terms((ServerUrl.read(f"nats://127.0.0.1:{free_port()}"),))
    with pytest.raises(NatsError, match=r"127.0.0.1:\d+ cannot be reached"):
        await dial_server(terms, terms.servers[0])


@pytest.mark.parametrize("said", [b"HTTP/1.1 200 OK\r\n", b"INFO []\r\n", b"INFO {\r\n", b"x", b""])
async def test_another_server_is_none_of_nats(said):
    async def serve(stream):
        async with stream:
            await stream.send_all(said)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)
        port = listeners[0].socket.getsockname()[1]
        terms = Terms((ServerUrl.read(f"nats://127.0.0.1:{port}"),))
        with pytest.raises(NatsError, match="no NATS server"):
            await dial_server(terms, terms.servers[0])
        nursery.cancel_scope.cancel()


async def test_a_server_that_says_nothing_is_given_up(autojump_clock):
    async def serve(_):
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)
        port = listeners[0].socket.getsockname()[1]
        terms = Terms((ServerUrl.read(f"nats://127.0.0.1:{port}"),))
        with pytest.raises(NatsError, match="does not answer"):
            await dial_server(terms, terms.servers[0])
        nursery.cancel_scope.cancel()


@needs_server
async def test_a_server_is_known_by_its_process():
    with run_server() as server:
        first = await server_id(terms_for(server))
        assert await server_id(terms_for(server)) == first
        server.kill()
        server.start()
        assert await server_id(terms_for(server)) != first


@needs_server
async def test_a_server_that_takes_small_messages_only_is_not_used(tmp_path):
    """It would hang up at the first larger one, again and again."""
    options = configured(tmp_path, "max_payload: 64KB")
    with run_server(*options) as server, pytest.raises(NatsError, match="65536 bytes only"):
        await server_id(terms_for(server))


# --- TLS ------------------------------------------------------------------------------------------


@needs_server
@pytest.mark.parametrize("scheme", ["nats", "tls"])
async def test_a_server_with_tls_is_reached_and_must_prove_itself(tmp_path, scheme):
    ours = Certificates(tmp_path)
    options = ("--tls", "--tlscert", str(ours.cert), "--tlskey", str(ours.key))
    with run_server(*options) as server:
        url = ServerUrl.read(server.url.replace("nats", scheme))
        assert await server_id(Terms((url,), tls=ours.dialler))
        with pytest.raises(NatsError, match="certificate is not accepted"):
            await server_id(Terms((url,)))


@needs_server
async def test_a_server_without_tls_is_not_used_if_tls_is_asked_for():
    with run_server() as server:
        await server_id(terms_for(server))
        url = ServerUrl.read(server.url.replace("nats", "tls"))
        with pytest.raises(NatsError, match="offers no TLS"):
            await dial_server(Terms((url,)), url)


# --- credentials ----------------------------------------------------------------------------------


@needs_server
async def test_a_key_opens_what_it_is_allowed_to(tmp_path):
    user, stranger = Key(USER), Key(USER)
    options = configured(tmp_path, f"authorization {{ users: [ {{ nkey: {user.public} }} ] }}")
    (tmp_path / "user").write_text(f"{user.seed}\n")
    (tmp_path / "stranger").write_text(stranger.seed)
    with run_server(*options) as server:
        assert await server_id(terms_for(server, credentials=Credentials.load(tmp_path / "user")))
        for credentials in (None, Credentials.load(tmp_path / "stranger")):
            with pytest.raises(NatsError, match="refuses: authorization violation"):
                await server_id(terms_for(server, credentials=credentials))


@needs_server
async def test_a_statement_of_an_account_opens_a_server(tmp_path):
    """A file as `nsc` writes it, for a server that knows its operator only."""
    operator, account, user = Key(OPERATOR), Key(ACCOUNT), Key(USER)
    limits = {"subs": -1, "data": -1, "payload": -1}
    of_operator = operator.state(operator, {"type": "operator"})
    of_account = operator.state(
        account,
        {"type": "account", "limits": {**limits, "conn": -1, "leaf": -1, "imports": -1,
                                       "exports": -1, "wildcards": True}},
    )  # fmt: skip
    of_user = account.state(user, {"type": "user", **limits})
    options = configured(
        tmp_path,
        f"operator: {of_operator}\nresolver: MEMORY\n"
        f"resolver_preload {{ {account.public}: {of_account} }}\n",
    )
    (tmp_path / "user.creds").write_text(
        f"-----BEGIN NATS USER JWT-----\n{of_user}\n------END NATS USER JWT------\n\n"
        "NKEYs are sensitive.\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
    )
    credentials = Credentials.load(tmp_path / "user.creds")
    assert user.seed not in repr(credentials)
    assert of_user not in repr(credentials)
    with run_server(*options, has_stream=False) as server:
        assert await server_id(terms_for(server, credentials=credentials))
        with pytest.raises(NatsError, match="refuses"):
            await server_id(terms_for(server))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no seed"),
        ("-----BEGIN USER NKEY SEED-----\nSU\n------END USER NKEY SEED------", "no seed"),
        (Key(ACCOUNT).seed, "no seed"),
        ("SU" + "A" * 56, "checksum"),
    ],
    ids=["nothing", "a short seed", "the seed of an account", "a wrong sum"],
)
def test_a_file_without_a_key_is_refused(tmp_path, text, reason):
    file = tmp_path / "user.creds"
    file.write_text(text)
    with pytest.raises(CredentialsError, match=reason):
        Credentials.load(file)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CredentialsError, match="no such file"):
        Credentials.load(tmp_path / "user.creds")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(CredentialsError, match="no text"):
        Credentials.load(tmp_path / "bytes")
