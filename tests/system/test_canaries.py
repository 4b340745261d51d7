"""Secrets that go through a node are in nothing that it tells: log, metrics, trace, ready line."""

import json
import time

import pytest

from tests.support.command import serving
from tests.support.node.issuer import Issuer
from tests.support.node.node_process import UNHURRIED
from tests.support.node.web import get
from tests.support.wire.wire_speakers import FORMS

pytestmark = pytest.mark.timeout(240)

BODY = "CANARY-in-a-body"
LOGIN = "CANARY-in-a-login"
READER = "CANARY-of-who-reads-metrics"
WRONG = "CANARY-of-who-guesses"
WORD = "CANARY"


async def enter(form, urls, login):
    """Open a session, by links after a login that is refused; return the peer."""
    peer = FORMS[form](urls, "a.ex", f"{form}-1")
    await peer.connect()
    if form == "link":
        for forged in (LOGIN, f"{login[:-4]}AAAA"):
            assert (await peer.open(forged))["body"]["code"] == 401
        await peer.vanish()
        await peer.connect()
    await peer.open(login if form == "link" else "")
    return peer


async def speak(form, urls, login):
    """All that a peer may say, right and wrong; return the token of its session."""
    peer = await enter(form, urls, login)
    await peer.allocate()
    sender, self_ = peer.part("canary"), peer.part("sm")
    await peer.ask("update", self_, "hyperty://a.ex/nobody", value=BODY, attribute=BODY)
    await peer.ask("read", "runtime://a.ex/other/x", f"{peer.node}/sm", value=BODY)
    await peer.ask("subscribe", self_, f"{peer.node}/sm", resources=BODY)
    await peer.ask("execute", self_, f"{peer.node}/session", method=BODY, params={BODY: LOGIN})
    record = {"hypertyURL": f"hyperty://a.ex/{form}", "descriptor": BODY, "runtime": BODY}
    await peer.ask("create", self_, "domain://registry.a.ex", value=record)
    await peer.say("update", sender, peer.runtime, value=BODY, identity={"assertion": LOGIN})
    await peer.raw(json.dumps({"id": 1, "type": BODY, "from": "x", "to": BODY}).encode())
    await peer.raw(b'{"body": "' + BODY.encode() + b'", ')
    await peer.rest()
    token = peer.token
    await peer.vanish()
    return token


@pytest.mark.parametrize("style", ["text", "json"])
async def test_secrets_are_reported_nowhere(tmp_path, style):
    reader = tmp_path / "reader.token"
    reader.write_text(f"{READER}\n")
    reported = tmp_path / "log"
    issuer = Issuer(now=time.time_ns() / 1e9)
    keys = tmp_path / "keys.json"
    keys.write_bytes(issuer.jwks())
    login = issuer.token()
    options = (
        "--domain", "a.ex", "--allow-legacy", "--rest", "--registry", str(tmp_path / "r.sqlite"),
        "--http", "127.0.0.1:0", "--http-token-file", str(reader), "--trace", str(tmp_path / "t"),
        "--jwks", str(keys), "--log", "debug", "--log-style", style, *UNHURRIED,
    )  # fmt: skip
    with reported.open("wb") as err:
        async with serving("node", *options, stderr=err) as node:
            tokens = [await speak(form, node.ready, login) for form in FORMS]
            page = f"{node.ready['http_url']}/metrics"
            metrics = await get(page, authorization=f"Bearer {READER}")
            assert metrics.status == 200
            for secret in (WRONG, READER[:-1]):
                refused = await get(page, authorization=f"Bearer {secret}", cookie=WRONG)
                assert refused.status == 401
                assert WORD.encode() not in refused.body
            assert await node.stop() == 0
            ready = json.dumps(node.ready)
    trace = b"".join(part.read_bytes() for part in (tmp_path / "t").rglob("*.jsonl"))
    log = reported.read_bytes()
    assert b"session opened" in log
    assert trace.count(b"\n") > 50
    secrets = [BODY, LOGIN, READER, WRONG, login, *login.split("."), *filter(None, tokens)]
    assert len(secrets) > 8
    for place in (log, trace, metrics.body, ready.encode()):
        assert [secret for secret in secrets if secret.encode() in place] == []
