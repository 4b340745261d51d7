"""Each command is run against texts that others chose: none reaches the terminal as it is."""

import json
import re
import subprocess
import sys
from base64 import urlsafe_b64encode
from contextlib import asynccontextmanager

import pytest
import trio

from tests.support.command import ROOT, Ended, call, typed
from tests.test_plain_output import ACTIVE, ODD
from transports.errors import LinkError
from transports.link import Kind
from transports.system import open_system_network

EVIL = f"be{ODD}low\nforged"
SPELT = "be\\u001b"
DOMAIN = "a.example"


class HostileNode:
    """Lets everybody in, or nobody, and says all that it may say in active characters."""

    def __init__(self, listener, nursery, *, is_open):
        self.url = f"{listener.address}/link"
        self._is_open = is_open
        self._nursery = nursery
        nursery.start_soon(self._accept, listener)

    async def _accept(self, listener):
        while True:
            self._nursery.start_soon(self._serve, await listener.accept())

    async def _serve(self, link):
        try:
            while True:
                for line in (await link.receive()).split(b"\n"):
                    await self._take(link, json.loads(line))
        except LinkError:
            await link.aclose()

    async def _take(self, link, asked):
        if asked["type"] == "response":
            return
        body = {"code": 403, "description": EVIL, "value": {"text": EVIL}}
        if self._is_open and asked["to"].endswith("/session"):
            body = {"code": 200, "value": {"sessionToken": "t1"}}
        said = {"id": asked["id"], "type": "response", "from": asked["to"], "to": asked["from"]}
        await link.send(json.dumps(said | {"body": body}).encode())


@asynccontextmanager
async def hostile_node(*, is_open):
    async with (
        open_system_network() as network,
        network.listen(Kind.WEBSOCKET, "127.0.0.1:0") as listener,
        trio.open_nursery() as nursery,
    ):
        yield HostileNode(listener, nursery, is_open=is_open)
        nursery.cancel_scope.cancel()


def assert_clean(ended):
    shown = "\n".join([*ended.out, *ended.err])
    assert not ACTIVE.search(shown), ascii(shown)
    assert not re.search("^forged", shown, re.MULTILINE), ascii(shown)
    return shown


ASKING = {
    "request": ("request", "hyperty://a.example/x", "1"),
    "find": ("find", "--name", "x"),
    "release": ("release", "x"),
}


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("asking", ASKING)
async def test_what_a_node_says(asking, is_open):
    async with hostile_node(is_open=is_open) as node:
        name, *more = ASKING[asking]
        ended = await call(name, "--domain", DOMAIN, "--node", node.url, *more)
    shown = assert_clean(ended)
    assert SPELT in shown or not ended.status


@pytest.mark.parametrize("style", ["text", "json"])
async def test_the_log_of_a_runtime_that_is_refused(style):
    async with hostile_node(is_open=False) as node:
        place = ("--domain", DOMAIN, "--node", node.url, "--name", "x")
        ended = await call("runtime", *place, "--log-style", style)
    assert ended.status
    assert SPELT in assert_clean(ended)


def jws(*parts):
    """Return parts as a signed text; its signature is none."""
    texts = [urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*texts, "AA"])


def test_texts_in_files(tmp_path):
    """Policies, options, tokens and traces that others wrote."""
    policy = {"id": EVIL, "rules": [{"id": EVIL, "effect": EVIL}]}
    (tmp_path / "policy").write_text(json.dumps(policy))
    (tmp_path / "options.toml").write_text(f"{json.dumps(EVIL)} = {json.dumps(EVIL)}\n")
    claims = [{"alg": "EdDSA", "kid": EVIL}, {"iss": EVIL, "sub": EVIL, EVIL: EVIL}]
    odd = str(tmp_path / f"no{ODD.replace(chr(0), '')}file\nforged")
    for arguments in (
        ("policy", "check", str(tmp_path / "policy")),
        ("policy", "check", odd),
        ("config", "check", str(tmp_path / "options.toml")),
        ("token", "show", jws(*claims)),
        ("stub", "verify", odd),
        ("fsm", "judge", odd),
    ):
        assert_clean(typed(*arguments))


@pytest.mark.parametrize("listed", ["default", EVIL])
def test_what_a_catalogue_offers(tmp_path, listed):
    place = tmp_path / ".well-known"
    (place / "protocolstub").mkdir(parents=True)
    entries = {"entries": [{"type": "protocolstub", "name": listed}]}
    (place / "actors-catalogue.json").write_text(json.dumps(entries))
    cguid = "hyperty-catalogue://a.example/.well-known/protocolstub/default"
    content = {"cguid": cguid, "type": "protocolstub", "objectName": "default", "counter": 1}
    content |= {"expires": 9_000_000_000, "version": EVIL, "description": EVIL, EVIL: EVIL}
    sealed = jws({"alg": "EdDSA", "typ": "protofly-descriptor+jws", "kid": "k" + EVIL}, content)
    (place / "protocolstub" / "default").write_text(sealed)
    for more in ([], ["--json"]):
        assert "u202e" in assert_clean(typed("stub", "list", str(tmp_path), *more))


ARGUMENT = EVIL.replace("\0", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("dev", ARGUMENT),
        ("dev", "--hyperty", ARGUMENT),
        ("stub", "list", "x", ARGUMENT),
        ("node", "--listen", ARGUMENT),
        ("node", f"--{ARGUMENT}"),
        ("find", "--address", ARGUMENT),
        ("fsm", "check", f"--{ARGUMENT}"),
        ("spark", "watch", ARGUMENT),
        (ARGUMENT,),
    ],
)
def test_a_wrong_command_line(arguments):
    assert "\\u202e" in assert_clean(typed(*arguments))


@pytest.mark.parametrize("program", ["fsm", "spark"])
def test_a_wrong_command_line_of_a_program_of_its_own(program):
    command = [sys.executable, "-m", program, "claims" if program == "spark" else "list", ARGUMENT]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603
    assert done.returncode == 2
    assert "\\u202e" in assert_clean(Ended(2, [done.stdout], [done.stderr]))
