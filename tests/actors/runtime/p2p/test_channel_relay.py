"""Data channels by a TURN server, with the credentials that the broker of the domain gives."""

import shutil
import socket
import subprocess
import time
from contextlib import asynccontextmanager

import pytest
import trio

from actors.kit.back_ends.ice import IcePlan, ListedServer
from actors.runtime.stubs.stub import IceSource
from specs.bodies.session import IceServer
from specs.message import reply_to
from specs.reply_code import Code
from tests.support.ports import free_port
from tests.support.runtime.channels import CERTIFICATE, HOST, open_shared_network
from tests.support.runtime.domain import DOMAIN
from transports.link import ChannelTerms
from transports.webrtc.extra import is_webrtc_installed

STUB = f"hyperty-runtime://{DOMAIN}/alice/p2prequester/1"
SECRET = "of the test"  # noqa: S105 - opens nothing else
NEEDED = pytest.mark.skipif(
    not is_webrtc_installed() or shutil.which("turnserver") is None,
    reason="the extra 'webrtc' or the program turnserver (package coturn) is not installed",
)


@asynccontextmanager
async def open_turn_server(folder, host="127.0.0.1"):
    """Run a TURN server at an address of this machine; return its URL and its log."""
    for attempt in range(3):
        port, log = free_port(host), folder / f"turn-{attempt}.log"
        process = await started(folder, log, host, port)
        try:
            if await is_up(process, host, port):
                yield f"turn:{host}:{port}?transport=udp", log
                return
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
    pytest.fail(f"no TURN server starts:\n{log.read_text()}")


async def started(folder, log, host, port):
    options = {
        "listening-ip": host,
        "relay-ip": host,
        "listening-port": port,
        "static-auth-secret": SECRET,
        "realm": DOMAIN,
        "log-file": log,
        "pidfile": folder / "turn.pid",
        "userdb": folder / "turn.db",
    }
    flags = ("use-auth-secret", "no-cli", "no-tls", "no-dtls", "allow-loopback-peers", "verbose")
    words = [f"--{name}={value}" for name, value in options.items()]
    command = ["turnserver", "-n", "--simple-log", *words, *(f"--{flag}" for flag in flags)]
    return await trio.lowlevel.open_process(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


async def is_up(process: trio.Process, host: str, port: int) -> bool:
    """Wait for a server; False: another program has taken one of its ports just before."""
    with trio.move_on_after(15):
        while process.poll() is None:
            with trio.move_on_after(1):
                if await answers(host, port):
                    return True
    return False


async def answers(host: str, port: int) -> bool:
    """Ask a server of STUN for its answer to a binding request."""
    binding = bytes.fromhex("000100002112a442") + b"0" * 12
    with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        await asking.connect((host, port))
        await asking.send(binding)
        try:
            return len(await asking.recv(2048)) > 0
        except ConnectionRefusedError:
            await trio.sleep(0.05)  # real time: it is asked again
            return False


@NEEDED
async def test_a_relay_that_refuses_the_credentials_gives_no_candidate(tmp_path):
    async with open_turn_server(tmp_path) as (url, _):
        plan = IcePlan((ListedServer((url,), "of somebody else"),))
        servers = plan.servers_for(STUB, time.time_ns() / 1e9).servers
        terms = ChannelTerms(CERTIFICATE, HOST, servers=servers, relay_only=True)
        async with open_shared_network() as network, network.negotiate(terms) as end:
            with trio.fail_after(60):
                assert [one async for one in end.candidates] == [""]


# --- where the servers come from ----------------------------------------------------------


PLAN = IcePlan((ListedServer(("stun:stun.example",)), ListedServer(("turn:t.example",), SECRET)))


class Bus:
    """A port whose runtime answers each request alike."""

    def __init__(self, code=Code.OK, value=None):
        self.asked = []
        self._answer = code, value

    async def request(self, message):
        await trio.lowlevel.checkpoint()
        self.asked.append(message)
        code, value = self._answer
        if code is None:
            await trio.sleep_forever()
        return reply_to(message, code, {} if value is None else {"value": value})


class Ids:
    def next(self, _):
        return 1


async def test_servers_that_are_configured_need_no_broker(autojump_clock):
    bus = Bus()
    stun, turn = await IceSource(PLAN).servers(bus, Ids(), STUB)
    assert (stun, bus.asked) == (IceServer(("stun:stun.example",)), [])
    assert turn.credential


@pytest.mark.parametrize(
    "bus",
    [Bus(Code.NOT_FOUND), Bus(Code.OK, {"servers": "none"}), Bus(None)],
    ids=["there is none", "its answer is malformed", "it does not answer"],
)
async def test_without_a_broker_there_are_no_servers(bus, autojump_clock):
    assert await IceSource().servers(bus, Ids(), STUB) == ()
