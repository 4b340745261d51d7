"""Login among real processes: a node with keys, runtimes and questions with tokens."""

import json
import shlex
import signal
import subprocess

import pytest
import trio

from actors.cli.group import ExitCode
from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from tests.support.command import PYTHON, ROOT, call, called, serving, typed
from tests.support.node.http_server import Said, open_http_server
from tests.support.node.issuer import encoded
from tests.support.node.web import get
from tests.support.wire.certificates import Certificates

NODE = ("node", "--domain", "a.example")
ECHO = ("--hyperty", "echo=actors.hyperties:Echo", "--p2p", "none")
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


async def test_a_runtime_with_a_login_is_served(key, token_file):
    """Two users, one node; the token of each is used up."""
    async with serving(*NODE, "--jwks", key["jwks"]) as node:
        alices = token_file("alice")
        async with serving(*runtime(node, *ECHO, "--token-file", alices)) as echo:
            bobs = token_file("bob", user=BOB)
            to = echo.ready["hyperties"]["echo"]
            asked = await call(*request(node, to, "--token-file", bobs))
            again = await call(*request(node, to, "--token-file", bobs))

    assert (asked.status, json.loads(asked.out[0])["value"]) == (ExitCode.OK, 1)
    assert (again.status, again.out, len(again.err)) == (ExitCode.REFUSED, [], 1)
    assert "used already" in again.err[0]
    assert "--token-file" in again.err[0]


@pytest.mark.parametrize("is_shared", [True, False], ids=["one set", "a set for each"])
async def test_the_key_of_one_issuer_opens_no_session_for_users_of_another(
    tmp_path, capfd, is_shared
):
    """RFC 8725, 3.8: also with an RSA key and a key of an unknown type beside them."""
    hosts, made, sets = ("one.ex", "two.ex"), {}, []
    for host in hosts:
        made[host] = json.loads(called(keys, "--out", str(tmp_path / host)).out[0])
        [entry] = json.loads((tmp_path / host / "jwks.json").read_text())["keys"]
        sets.append({**entry, "iss": f"https://{host}"} if is_shared else entry)
    places = [tmp_path / f"{number}.json" for number in range(1 if is_shared else 2)]
    for number, place in enumerate(places):
        own = sets if is_shared else [sets[number]]
        place.write_text(json.dumps({"keys": [{"kty": "AKP", "kid": "new"}, *own]}))
    options = [word for place in places for word in ("--jwks", str(place))]
    options += [word for host in hosts for word in ("--issuer", f"https://{host}")]
    async with serving(*NODE, *options) as node:
        for signer in hosts:
            for host in hosts:
                issuer = ("--issuer", f"https://{host}")
                text = token_of(made[signer], f"user://{host}/alice", "a.example", *issuer)
                (tmp_path / "token").write_text(text)
                to = "hyperty://a.example/1"
                ended = await call(*request(node, to, "--token-file", str(tmp_path / "token")))
                if signer == host:
                    assert json.loads(ended.out[0])["code"] == 404
                else:
                    assert (ended.status, len(ended.err)) == (ExitCode.REFUSED, 1)
                    assert "session" in ended.err[0]
    assert "keys skipped" in (log := capfd.readouterr().err)
    assert "key 'new'" in log


@pytest.mark.parametrize("more", [(), ("--p2p", "none"), ECHO], ids=["p2p", "nothing", "hyperty"])
async def test_a_missing_token_is_refused_in_one_sentence(key, more):
    async with serving(*NODE, "--jwks", key["jwks"]) as node:
        ended = await call(*runtime(node, *more))

    assert (ended.status, ended.out, len(ended.err)) == (ExitCode.REFUSED, [], 1)
    assert "asks for a login" in ended.err[0]


async def test_a_token_for_one_runtime_says_for_which_and_is_good_for_it(key, tmp_path):
    bound = tmp_path / "bound"
    bound.write_text(token_of(key, ALICE, "a.example", "--runtime", "runtime://a.example/asker"))
    async with serving(*NODE, "--jwks", key["jwks"]) as node:
        ask = (*request(node, "hyperty://a.example/1"), "--token-file", str(bound))
        refused = await call(*ask)
        bound.write_text(
            token_of(key, ALICE, "a.example", "--runtime", "runtime://a.example/asker")
        )
        asked = await call(*ask, "--name", "asker")

    assert (refused.status, len(refused.err)) == (ExitCode.REFUSED, 1)
    assert "good for hyperty-runtime://a.example/asker only" in refused.err[0]
    assert json.loads(asked.out[0])["code"] == 404


async def test_a_wrong_token_is_refused_in_one_sentence(key, token_file, tmp_path):
    outsider = json.loads(called(keys, "--out", str(tmp_path / "strange")).out[0])
    wrong = tmp_path / "wrong"
    async with serving(*NODE, "--jwks", key["jwks"]) as node:
        for text, said in (
            (token_of(outsider), "the key that it names is unknown"),
            (token_of(key, domain="b.example"), "audience"),
            ("nonsense", "no signed JSON Web Token"),
        ):
            wrong.write_text(text)
            ended = await call(*request(node, "hyperty://a.example/1", "--token-file", str(wrong)))

            assert (ended.status, ended.out, len(ended.err)) == (ExitCode.REFUSED, [], 1)
            assert said in ended.err[0]
            assert text not in ended.err[0] or text == "nonsense"


@pytest.mark.parametrize("content", [None, "", "two words", "x" * 9000])
def test_a_token_file_that_is_none_is_said_before_anything_is_done(tmp_path, content):
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    ended = typed(
        "runtime", "--domain", "a.example", "--name", "ra", "--node", "ws://127.0.0.1:1/link",
        "--token-file", str(path),
    )  # fmt: skip

    assert (ended.status, len(ended.err)) == (ExitCode.CONFIGURATION, 1)
    assert "cannot use the token file" in ended.err[0]


async def test_a_runtime_that_was_killed_comes_back_with_a_fresh_token(key, token_file):
    """C-84: no 409 for the same user; ALC-02: its hyperty has its address again."""
    async with serving(*NODE, "--jwks", key["jwks"]) as node:
        async with serving(*runtime(node, *ECHO, "--token-file", token_file())) as first:
            await first.stop(signal.SIGKILL)
        async with serving(*runtime(node, *ECHO, "--token-file", token_file())) as second:
            assert second.ready["hyperties"]["echo"] == first.ready["hyperties"]["echo"]
        thief = token_file("thief", user=BOB)
        async with serving(*runtime(node, *ECHO, "--token-file", token_file())):
            ended = await call(*runtime(node, "--token-file", thief))

    assert ended.status != ExitCode.OK


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


async def test_of_two_runtimes_of_one_name_the_former_ends_with_the_reason(key):
    """Each of them can get fresh tokens; without an end for good they would fight for ever."""
    login = ("--token-command", a_command(key), "--p2p", "none")
    async with (
        serving(*NODE, "--jwks", key["jwks"]) as node,
        serving(*runtime(node, *login)) as loser,
        serving(*runtime(node, *login)),
    ):
        ended = await loser.process.ended()
        asked = await call(
            *request(node, "hyperty://a.example/1"), "--token-command", a_command(key)
        )

    assert ended == ExitCode.REFUSED
    assert json.loads(asked.out[0])["code"] == 404


# ---- where tokens come from


def a_command(key, *more):
    """Return the command that issues a fresh token."""
    words = [*PYTHON, "actors", "token", "issue", "--key", key["key"], "--user", ALICE]
    return shlex.join([*words, "--domain", "a.example", *more])


async def test_a_command_gives_a_token_for_each_login(key):
    async with serving(*NODE, "--jwks", key["jwks"]) as node:
        ask = (*request(node, "hyperty://a.example/1"), "--token-command", a_command(key))
        for _ in range(2):
            assert json.loads((await call(*ask)).out[0])["code"] == 404


@pytest.mark.parametrize(
    ("said", "status", "why"),
    [
        (None, 0, ""),
        (Said(401, {"error": "invalid_client"}), ExitCode.REFUSED, "refuses: invalid_client"),
        (Said(500), ExitCode.CANNOT_CONNECT, "answers with status 500"),
    ],
    ids=["good", "refused", "away"],
)
async def test_a_token_endpoint_gives_a_token(key, tmp_path, said, status, why):
    secret = tmp_path / "secret"
    secret.write_text("very-secret\n")

    async def endpoint(_):
        await trio.lowlevel.checkpoint()
        return said or Said(body={"access_token": token_of(key)})

    async with serving(*NODE, "--jwks", key["jwks"]) as node, open_http_server(endpoint) as server:
        ended = await call(
            *request(node, "hyperty://a.example/1"),
            *("--token-url", f"{server.url}/token", "--client-id", "app"),
            *("--client-secret-file", str(secret)),
        )

    if said is None:
        assert json.loads(ended.out[0])["code"] == 404
    else:
        assert (ended.status, ended.out) == (status, [])
        assert why in ended.err[-1]
    assert "very-secret" not in "".join(ended.err)


async def test_a_token_endpoint_whose_certificate_does_not_fit_is_one_sentence(key, tmp_path):
    """SEC-14."""
    certificates, secret = Certificates(tmp_path), tmp_path / "secret"
    secret.write_text("very-secret\n")
    shown = ("--http-tls-cert", certificates.cert, "--http-tls-key", certificates.key)
    http = ("--http", "127.0.0.1:0", *map(str, shown))
    async with serving(*NODE, "--jwks", key["jwks"], *http) as node:
        endpoint = f"{node.ready['http_url']}/token"
        login = ("--token-url", endpoint, "--client-id", "app", "--client-secret-file", str(secret))
        ended = await call(*runtime(node, *login))

    assert ended.status == ExitCode.CANNOT_CONNECT
    assert endpoint in ended.err[-1]
    assert "its certificate is not accepted: unable to get local issuer" in ended.err[-1]
    assert ended.err[-1].endswith("; name its authority with --ca")


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


async def test_a_node_limits_the_life_of_tokens(key):
    async with serving(*NODE, "--jwks", key["jwks"], "--max-token-life", "60") as node:
        ask = request(node, "hyperty://a.example/1")
        ended = await call(*ask, "--token-command", a_command(key, "--life", "61"))
        asked = await call(*ask, "--token-command", a_command(key, "--life", "60"))

    assert (ended.status, len(ended.err)) == (ExitCode.REFUSED, 1)
    assert "lives longer than 60 s" in ended.err[0]
    assert json.loads(asked.out[0])["code"] == 404


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
