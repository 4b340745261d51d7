"""Login among real processes: a node with keys, runtimes and questions with tokens."""

import json
import signal
import subprocess

import pytest
import trio

from actors.cli.group import ExitCode
from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from tests.support.command import PYTHON, ROOT, call, called, serving, typed
from tests.support.node.issuer import encoded
from tests.support.node.web import get

NODE = ("node", "--domain", "a.example")
ALICE, BOB = "user://a.example/alice", "user://a.example/bob"


@pytest.fixture
def key(tmp_path):
    return json.loads(called(keys, "--out", str(tmp_path)).out[0])


def token_of(key, user=ALICE, domain="a.example", *more):
    [text] = called(issue, "--key", key["key"], "--user", user, "--domain", domain, *more).out
    return text


@pytest.fixture
def token_file(tmp_path, key):
    """Write a fresh token; return where."""

    def write(name="token", **who):
        path = tmp_path / name
        path.write_text(token_of(key, **who) + "\n")
        return str(path)

    return write


def runtime(node, *more):
    return ("runtime", "--domain", "a.example", "--name", "ra", "--node", node.url, *more)


def request(node, to, *more):
    return ("request", "--domain", "a.example", "--node", node.url, to, "1", *more)


async def test_a_new_key_is_good_without_a_restart(key, token_file, tmp_path):
    async with serving(*NODE, "--jwks", key["jwks"]) as node:
        ended = await call(*request(node, "hyperty://a.example/1", "--token-file", token_file()))
        assert json.loads(ended.out[0])["code"] == 404
        other = json.loads(called(keys, "--out", str(tmp_path), "--alg", "ES256").out[0])
        (tmp_path / "other").write_text(token_of(other))
        more = ("--token-file", str(tmp_path / "other"))
        ended = await call(*request(node, "hyperty://a.example/1", *more))

    assert json.loads(ended.out[0])["code"] == 404


async def test_a_node_without_keys_says_once_that_no_runtime_can_enter():
    process = await trio.lowlevel.open_process(
        [*PYTHON, "actors", *NODE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    try:
        ready = json.loads(await process.stdout.receive_some())
        ended = await call(
            "request", "--domain", "a.example", "--node", ready["url"], "hyperty://a.ex/1", "1"
        )
        process.send_signal(signal.SIGTERM)
        said = b"".join([part async for part in process.stderr]).decode().splitlines()
    finally:
        process.kill()
        await process.wait()

    assert (ended.status, len(ended.err)) == (ExitCode.REFUSED, 1)
    assert len(said) == 1
    assert "no runtime can open a session" in said[0]
    assert "--jwks" in said[0]


TWO = ("--issuer", "https://idp.ex", "--issuer", "https://other.ex")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--jwks", "{missing}"), "No such file"),
        (("--jwks", "{page}"), "no JSON"),
        (("--jwks", "{private}"), "private key"),
        (("--jwks", "http://"), "names no HTTP server"),
        (("--jwks", "http://idp.example/keys"), "keys come by https, or from this machine"),
        (("--issuer", "https://idp.ex"), "--jwks"),
        (("--jwks", "{public}", *TWO), "names no issuer; the keys of one issuer must not sign"),
        (("--jwks", "https://idp.ex/keys", *TWO), "must not sign for another"),
        (("--jwks", "{public}", "--jwks", "{public}", *TWO), "stands there twice"),
        (("--jwks", "{public}", "--jwks", "{page}", *TWO[:2]), "as many --issuer as --jwks"),
        (("--jwks", "{public}", "--jwks", "{page}"), "as many --issuer as --jwks"),
        (("--jwks", "{public}", "--jwks", "{page}", *TWO[:2] * 2), "none of them twice"),
    ],
)
def test_options_that_make_no_sense_are_reported_in_one_sentence(key, tmp_path, options, said):
    (tmp_path / "page").write_text("<html><body>Not found</body></html>")
    places = {
        "missing": tmp_path / "x",
        "page": tmp_path / "page",
        "private": key["key"],
        "public": key["jwks"],
    }
    ended = typed(*NODE, *(one.format(**places) for one in options))

    assert (ended.status, len(ended.err)) == (ExitCode.CONFIGURATION, 1)
    assert said in ended.err[0]


# ---- where tokens come from


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        (("--token-file", "a", "--token-command", "b"), ExitCode.USAGE, "exclude each other"),
        (("--client-id", "app"), ExitCode.USAGE, "add --token-url"),
        (("--token-url", "https://idp.example"), ExitCode.USAGE, "add --client-id"),
        (("--token-command", ""), ExitCode.USAGE, "no command"),
        (("--token-command", "a 'b"), ExitCode.USAGE, "no command"),
        (
            (
                "--token-url",
                "http://idp.example",
                "--client-id",
                "app",
                "--client-secret-file",
                "x",
            ),
            ExitCode.CONFIGURATION,
            "must be https",
        ),
        (
            ("--token-url", "https://idp.example", "--client-id", "app"),
            ExitCode.CONFIGURATION,
            "needs a refresh token",
        ),
        (
            (
                *("--token-url", "https://idp.example", "--client-id", "app"),
                *("--client-secret-file", "/no/such"),
            ),
            ExitCode.CONFIGURATION,
            "cannot use the client secret file /no/such",
        ),
    ],
)
@pytest.mark.parametrize("command", [("runtime", "--name", "ra"), ("request",)])
def test_what_is_no_source_of_tokens_is_said_in_one_sentence(command, more, status, said):
    name, *named = command
    what = () if named else ("hyperty://a.example/1", "1")
    where = ("--domain", "a.example", "--node", "ws://127.0.0.1:1/link")
    ended = typed(name, *where, *named, *more, *what)

    assert (ended.status, len(ended.err)) == (status, 1)
    assert said in ended.err[0]


def test_a_small_key_keeps_a_node_from_starting(tmp_path):
    entry = {
        "kty": "RSA",
        "kid": "weak",
        "n": encoded(((1 << 1023) + 1).to_bytes(128)),
        "e": "AQAB",
    }
    (tmp_path / "jwks").write_text(json.dumps({"keys": [entry]}))
    ended = typed(*NODE, "--jwks", str(tmp_path / "jwks"))

    assert (ended.status, len(ended.err)) == (ExitCode.CONFIGURATION, 1)
    assert "key 'weak': it has 1024 bits; 2048 to 8192 are accepted" in ended.err[0]


def test_the_new_options_are_shown_and_read_from_a_file(tmp_path):
    file = tmp_path / "node.toml"
    file.write_text("[node]\ndomain = 'a.example'\nmax-token-life = 3600\nclient = ['app']\n")
    shown = typed("config", "show", "node", "--config", str(file))

    assert shown.status == 0
    text = "".join(shown.out)
    assert "max-token-life" in text
    assert "3600" in text


async def test_a_name_stays_its_users_until_it_is_released(key, token_file):
    """S6: a command that makes its own name leaves none behind."""
    log_in = ("release", "--domain", "a.example")
    async with serving(*NODE, "--jwks", key["jwks"], "--http", "127.0.0.1:0") as node:
        release = (*log_in, "--node", node.url, "ra", "--token-file")
        plain = runtime(node, "--p2p", "none", "--token-file")
        async with serving(*plain, token_file()) as ended:
            await ended.stop(signal.SIGTERM)
        asked = await call(*request(node, "hyperty://a.example/1", "--token-file", token_file()))
        assert json.loads(asked.out[0])["code"] == 404
        page = (await get(f"{node.ready['http_url']}/metrics")).text
        taken = await call(*plain, token_file("bob", user=BOB))
        refused = await call(*release, token_file("bob", user=BOB))
        released = await call(*release, token_file())
        async with serving(*plain, token_file(user=BOB)) as ended:
            await ended.stop(signal.SIGTERM)
        anew = await call(*release, token_file())

    assert "\nprotofly_runtime_names 1.0\n" in page
    assert (taken.status, len(taken.err)) == (ExitCode.REFUSED, 1)
    assert "belongs to another user" in taken.err[0]
    assert (refused.status, refused.out, len(refused.err)) == (ExitCode.REFUSED, [], 1)
    assert "ra is no name of this user; log in as the user of the name" in refused.err[0]
    assert (released.status, json.loads(released.out[0])["name"]) == (ExitCode.OK, "ra")
    assert anew.status == ExitCode.REFUSED
