"""A runtime speaks a protocol that it had never heard of: its stub is fetched (PFY-01, T13).

The protocol is in `tests/support/line_chat` and nowhere else. Its operator signs and
publishes a package with our commands; a runtime is notified only where catalogues are and who
is trusted.
"""

import json
import os
import signal
import socket
import time
from contextlib import AsyncExitStack
from pathlib import Path

import attrs
import pytest
import trio
from typing_extensions import override

from actors.catalogue.client import CatalogueAccess
from actors.catalogue.source import read_places
from actors.catalogue.trust_file import read_trust
from actors.commands import stub, token
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Hyperty
from tests.support.command import call, called, serving
from tests.support.line_chat.server import ChatServer, open_chat
from tests.support.packages import LINE_CHAT
from tests.support.trace.memory import MemoryTracer
from transports.system import open_system_network

pytestmark = pytest.mark.timeout(240)

CHAT = "chat.example"
TRUST = f"""
[domains."{CHAT}"]
keys = "chat/jwks.json"
publishers = ["acme"]
reach = "anywhere"

[publishers.acme]
keys = "acme/jwks.json"
"""


class Chatter(Hyperty):
    """Asks, and hears what nobody had asked for."""

    def __init__(self):
        self.heard, self.came = [], trio.Event()

    @override
    async def on_request(self, message):
        self.heard.append((message.from_, message.body["value"]))
        self.came.set()

    async def say(self, who, text="hello"):
        with trio.fail_after(30):
            return await self.request(f"hyperty://{CHAT}/{who}", text)

    async def insist(self, who, text):
        """Say it again until it is known that there is no stub, or no link, any more."""
        answer = await self.say(who, text)
        while answer.code == 503:
            answer = await self.say(who, text)
        assert answer.code == 200, answer.body
        return answer.body["value"]


def children():
    own = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return {int(one) for one in own.read_text().split()}


def run(command, *arguments):
    ended = called(command, *map(str, arguments))
    assert ended.status == 0, ended.err


def make_key(folder, who):
    run(token.make_keys, "--out", folder / who)


def private_of(folder, who):
    (private,) = {one for one in (folder / who).iterdir() if one.name != "jwks.json"}
    return private


def signing(folder, signed):
    """Arguments of the command that signs."""
    package = ("--package", LINE_CHAT, "--entry-point", "line_chat_stub:activate")
    by = ("--publisher", "acme", "--publisher-key", private_of(folder, "acme"))
    of = ("--domain", CHAT, "--key", private_of(folder, "chat"), "--machine", "stub_connection")
    return folder / "draft.json", *of, *package, *by, "--out", signed


def publishing(folder, signed, into):
    """Arguments of the command that publishes."""
    return signed, "--keys", folder / "chat/jwks.json", "--into", into


@pytest.fixture(scope="module")
def place():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, place):
    """What the operator of the chat publishes, and what the operator of the runtime trusts."""
    folder = tmp_path_factory.mktemp("chat")
    draft = {
        "version": "1",
        "endpoints": [f"stream://127.0.0.1:{place}"],
        "configuration": {"nick": "zoe"},
    }
    (folder / "draft.json").write_text(json.dumps(draft))
    for who in ("chat", "acme"):
        make_key(folder, who)
    signed = folder / "signed.jws"
    run(stub.sign, *signing(folder, signed))
    run(stub.publish, *publishing(folder, signed, folder / "catalogue"))
    (folder / "trust.toml").write_text(TRUST)
    return folder


@attrs.frozen
class World:
    chat: ChatServer
    hyperty: Chatter
    address: str
    tracer: MemoryTracer
    others: set
    url: str = "hyperty-runtime://a.example/ra"

    @property
    def sandbox(self):
        """The process of the stub."""
        (pid,) = children() - self.others
        return pid

    def _steps(self, machine):
        """The steps of one machine that the chat's stubs took: those in sandboxes."""
        own = {f"{self.url}/protostub/1"}
        facts = [fact for fact in self.tracer.facts if fact.machine == machine]
        return [fact for fact in facts if fact.key not in own]

    def connection(self):
        return [fact.new for fact in self._steps("stub_connection")]

    @property
    def stubs(self):
        """How many stubs were deployed for the chat, each with an address of its own."""
        return len({fact.key for fact in self._steps("stub_deployment")})


@pytest.fixture
async def world(folder, place):
    tracer, hyperty, others = MemoryTracer(), Chatter(), children()
    access = CatalogueAccess(
        read_places([f"{CHAT}={folder / 'catalogue'}"]),
        read_trust(folder / "trust.toml"),
        clock_offset=time.time_ns() / 1e9 - trio.current_time(),
    )
    at = NodeConfig(domain="a.example", listen="127.0.0.1:0")
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        chat, network = await enter(open_chat(place)), await enter(open_system_network())
        node = await enter(open_node(at, network, MemoryTracer()))
        config = RuntimeConfig(domain="a.example", name="ra", node=node.url, catalogues=access)
        runtime = await enter(open_runtime(config, network, tracer))
        address = await runtime.deploy("chatter", lambda: hyperty)
        yield World(chat, hyperty, address, tracer, others)


async def test_a_domain_is_reached_by_a_protocol_that_only_its_stub_knows(world):
    answer = await world.hyperty.say("bob", {"words": ["hello", 7]})
    assert (answer.code, answer.body["value"]) == (200, {"words": ["hello", 7]})
    assert world.chat.heard == ["HELLO zoe", 'SAY 1 bob {"words": ["hello", 7]}']
    assert (await world.hyperty.say("nobody")).code == 404
    await world.chat.whisper("bob", world.address, "psst")
    with trio.fail_after(60):
        await world.hyperty.came.wait()
    assert world.hyperty.heard == [(f"hyperty://{CHAT}/bob", "psst")]
    assert world.connection() == ["created", "in-progress", "live"]


async def test_a_killed_sandbox_is_reported_at_once_and_the_next_request_has_a_new_one(
    world, nursery
):
    """R11, STB-15: whoever waits is answered 503 once; the new stub has a new address."""
    assert (await world.hyperty.say("bob")).code == 200
    first, answers, reported = world.sandbox, [], trio.Event()

    async def wait_in_vain():
        answers.append(await world.hyperty.say("mute"))
        reported.set()

    nursery.start_soon(wait_in_vain)
    await world.chat.wait_for("SAY 2 mute")
    os.kill(first, signal.SIGKILL)
    with trio.fail_after(60):
        await reported.wait()
    assert [one.code for one in answers] == [503]
    assert await world.hyperty.insist("bob", "again") == "again"
    assert world.sandbox != first
    assert world.stubs == 2


async def test_a_server_that_hangs_up_is_called_again_by_the_same_stub(world):
    assert (await world.hyperty.say("bob")).code == 200
    await world.chat.hang_up()
    assert await world.hyperty.insist("bob", "again") == "again"
    assert world.chat.heard.count("HELLO zoe") == 2
    assert world.connection() == ["created", "in-progress", "live", "disconnected", "live"]
    assert world.stubs == 1


async def by_command(*arguments):
    """Run a command to its end, as a process; return what it prints."""
    ended = await call(*map(str, arguments))
    assert ended.status == 0, ended.err
    return ended.out


@pytest.mark.timeout(300)
async def test_the_commands_suffice_to_sign_publish_and_run_a_stub(folder, place):
    """PFY-01: processes from end to end; the runtime's hyperty asks the unknown domain."""
    signed, into = folder / "again.jws", folder / "elsewhere"
    await by_command("stub", "sign", *signing(folder, signed))
    await by_command("stub", "publish", *publishing(folder, signed, into))
    of = ("--domain", "a.example", "--node")
    ways = ("--catalogue", f"{CHAT}={into}", "--trust", str(folder / "trust.toml"))
    crew = ("--name", "ra", "--p2p", "none", "--hyperty", "asker=tests.support.runtime.rough:Rough")
    async with (
        open_chat(place) as chat,
        serving("node", "--domain", "a.example", "--allow-legacy") as node,
        serving("runtime", *of, node.url, *crew, *ways) as runtime,
    ):
        asker = runtime.ready["hyperties"]["asker"]
        asked = json.dumps({"ask": f"hyperty://{CHAT}/bob", "value": ["hello", 7]})
        (line,) = await by_command("request", *of, node.url, asker, asked)
    assert json.loads(line)["value"] == {"code": 200, "value": ["hello", 7]}
    assert chat.heard == ["HELLO zoe", 'SAY 1 bob ["hello", 7]']
