"""No token is ever in a log, a trace, a metric or an error: everything is looked through (S11)."""

import json

import pytest

from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from actors.kit.http_client import HttpClient, ServerUrl
from tests.support.command import call, called, serving
from tests.support.node.node_peer import Peer
from transports.link import Kind
from transports.system import open_system_network

DOMAIN = "a.example"
LOUD = ("--log", "debug")


@pytest.fixture
def key(tmp_path):
    return json.loads(called(keys, "--out", str(tmp_path / "keys")).out[0])


def token_of(key, user, *more):
    who = ("--user", f"user://{DOMAIN}/{user}", "--domain", DOMAIN)
    return called(issue, "--key", key["key"], *who, *more).out[0]


def canaries(*tokens):
    """What must be nowhere: tokens, and those parts of them that nobody else has."""
    return [part for token in tokens for part in (token, *token.split(".")[1:])]


async def logs_in(network, url, token, name="rb"):
    """Try to log in; return the session's token if that is granted, and what was heard."""
    runtime = f"hyperty-runtime://{DOMAIN}/{name}"
    peer = Peer(await network.dial(Kind.WEBSOCKET, url), runtime, DOMAIN)
    answer = await peer.control("open", runtimeURL=runtime, token=token)
    await peer.link.aclose()
    return answer.body.get("value", {}).get("sessionToken"), json.dumps(answer.body)


async def metrics_of(url):
    client = HttpClient(ServerUrl.read(url))
    try:
        return (await client.ask("GET", "/metrics")).body.decode()
    finally:
        await client.aclose()


async def test_no_token_is_ever_reported(key, tmp_path, capfd):
    good, used = token_of(key, "alice"), token_of(key, "bob")
    late, wrong = token_of(key, "carol", "--not-before", "250"), token_of(key, "dave") + "x"
    (tmp_path / "token").write_text(used)
    node = ("node", "--domain", DOMAIN, "--jwks", key["jwks"], "--http", "127.0.0.1:0", *LOUD)
    heard = []
    async with serving(*node, "--trace", str(tmp_path / "trace")) as serves:
        url, http = serves.url, str(serves.ready["http_url"])
        async with open_system_network() as network:
            session, _ = await logs_in(network, url, good, "ra")
            heard += [(await logs_in(network, url, bad))[1] for bad in (good, late, wrong, session)]
            newer = (await logs_in(network, url, session, "ra"))[0]
            assert newer not in {None, session}
        asked = ("request", "--domain", DOMAIN, "--node", url, f"hyperty://{DOMAIN}/1", "1", *LOUD)
        for _ in range(2):
            ended = await call(*asked, "--token-file", str(tmp_path / "token"))
            heard += [*ended.out, *ended.err]
        heard.append(await metrics_of(http))
        await serves.stop()
    files = [one for one in (tmp_path / "trace").rglob("*") if one.is_file()]
    everything = "\n".join([*heard, *capfd.readouterr(), *(one.read_text() for one in files)])

    for place in ("login refused", f"domain://idm.{DOMAIN}", "used already", "# HELP"):
        assert place in everything
    for canary in canaries(good, used, late, wrong, session, newer):
        assert canary not in everything
