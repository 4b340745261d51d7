"""Data channels by a TURN server, with the credentials that the broker of the domain gives."""

import shutil
import socket
import subprocess
import time
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from actors.kit.back_ends.ice import IcePlan, ListedServer
from actors.node.connectors.back_ends import BackEnds
from actors.node.connectors.quality import ConfiguredServers
from actors.runtime.stubs.stub import IceSource
from specs.bodies.sdp import read_ice
from specs.bodies.session import IceServer
from specs.message import MessageType, reply_to
from specs.reply_code import Code
from tests.support.ports import free_port
from tests.support.runtime.channels import CERTIFICATE, HOST, open_shared_network
from tests.support.runtime.domain import DOMAIN, DomainOptions, go_live, open_domain
from transports.link import ChannelTerms, Kind
from transports.webrtc.process import is_webrtc_installed

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


def relayed(url: str, secret: str = SECRET) -> DomainOptions:
    plan = IcePlan((ListedServer((url,), secret),))
    # A credential ends at a time of the server's clock.
    offset = time.time_ns() / 1e9 - trio.current_time()
    one = {"ice": plan, "ice_relay_only": True, "clock_offset": offset}
    return DomainOptions(
        kinds=(Kind.WEBRTC,), network=open_shared_network, more={"alice": one, "bob": one}
    )


@NEEDED
async def test_two_runtimes_that_use_nothing_but_a_relay_have_a_link(tmp_path):
    async with open_turn_server(tmp_path) as (url, log):
        async with open_domain("alice", "bob", options=relayed(url)) as domain:
            with trio.fail_after(30):
                await go_live(domain)
                for number in range(20):
                    answer = await domain["alice"].ask(domain["bob"], number)
                    assert answer.via[0].endswith("/conn/1")
        users = {line.split("user <")[1].split(">")[0] for line in lines_of(log)}
        assert len(users - {""}) == 2  # each runtime has credentials of its own


def lines_of(log):
    return [line for line in log.read_text().splitlines() if "user <" in line]


@NEEDED
@pytest.mark.parametrize("is_relayed", [True, False])
async def test_candidates_tell_no_more_than_they_must(is_relayed, tmp_path):
    """SEC-25: by a relay alone, no address of the machine; the one behind a NAT in no case."""
    async with open_turn_server(tmp_path) as (url, _):
        plan = IcePlan(
            (
                ListedServer((url,), SECRET),
                ListedServer((url.split("?")[0].replace("turn", "stun"),)),
            )
        )
        servers = plan.servers_for(STUB, time.time_ns() / 1e9).servers
        terms = ChannelTerms(CERTIFICATE, HOST, servers=servers, relay_only=is_relayed)
        async with open_shared_network() as network, network.negotiate(terms) as end:
            with trio.fail_after(60):
                *found, last = [one async for one in end.candidates]
    kinds = {read_ice(one).kind for one in found}
    assert kinds == ({"relay"} if is_relayed else {"host", "relay", "srflx"})
    told = [one.split("raddr ")[1].split()[0] for one in found if "raddr" in one]
    assert (last, set(told) - {"0.0.0.0"}) == ("", set())  # noqa: S104 - said only


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


async def test_the_broker_of_the_domain_is_asked_for_servers(autojump_clock):
    bus = Bus(value={"servers": [{"urls": ["stun:s.example"]}], "ttl": 60})

    assert await IceSource().servers(bus, Ids(), STUB) == (IceServer(("stun:s.example",)),)
    (inquiry,) = bus.asked
    assert (inquiry.type, inquiry.to) == (MessageType.READ, f"domain://qos.{DOMAIN}")


@pytest.mark.parametrize(
    "bus",
    [Bus(Code.NOT_FOUND), Bus(Code.OK, {"servers": "none"}), Bus(None)],
    ids=["there is none", "its answer is malformed", "it does not answer"],
)
async def test_without_a_broker_there_are_no_servers(bus, autojump_clock):
    assert await IceSource().servers(bus, Ids(), STUB) == ()


@NEEDED
async def test_a_link_uses_the_servers_of_the_broker(tmp_path):
    """CON-04: neither runtime is configured; the node makes each of them its credentials."""
    async with open_turn_server(tmp_path) as (url, log):
        plan = IcePlan((ListedServer((url,), SECRET),))
        broker = BackEnds(quality=partial(ConfiguredServers, plan))
        only = {"ice_relay_only": True}
        options = DomainOptions(
            kinds=(Kind.WEBRTC,),
            network=open_shared_network,
            more={"alice": only, "bob": only},
            node={"back_ends": broker},
        )
        async with open_domain("alice", "bob", options=options) as domain:
            with trio.fail_after(30):
                await go_live(domain)
                assert (await domain["alice"].ask(domain["bob"], 1)).via[0].endswith("/conn/1")
        assert lines_of(log)
