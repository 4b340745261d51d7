"""The process of WebRTC: what it opens, what it survives, and what it leaves."""

import os
import signal
import subprocess
import sys
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import orjson
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.keys.certificate import fingerprint_of, make_channel_certificate
from specs.bodies.sdp import read_description
from specs.bodies.session import IceServer
from specs.limits.protocol import MAX_FRAME_BYTES
from tests.support.runtime.channels import (
    CERTIFICATE,
    HOST,
    open_ends,
    open_shared_network,
    pass_on,
)
from tests.support.runtime.links import drain
from transports.errors import (
    CloseReason,
    DialError,
    FrameTooLargeError,
    LinkBrokenError,
    ListenError,
)
from transports.link import ChannelTerms, Kind
from transports.system import open_system_network
from transports.webrtc import process
from transports.webrtc.memory import read_terms, write_terms
from transports.webrtc.process import is_webrtc_installed

pytestmark = pytest.mark.skipif(
    not is_webrtc_installed(), reason="the extra 'webrtc' is not installed"
)

OFFER = ChannelTerms(CERTIFICATE, HOST)
PROGRAM = Path(__file__).parents[2] / "support/runtime/other_end.py"


@pytest.fixture
async def network():
    async with open_shared_network() as network:
        yield network


def children() -> set[int]:
    tasks = Path("/proc/self/task").iterdir()
    return {int(one) for task in tasks for one in (task / "children").read_text().split()}


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_network_that_is_left_leaves_no_process_and_no_descriptor():
    before = children()
    held = descriptors()
    async with open_system_network() as network:
        used = []
        for _ in range(2):
            async with open_ends(network) as (one, other):
                link = await one.opened()
                await trio.aclose_forcefully(await other.opened())
                await drain(link)
            used.append(descriptors())
        assert used[0] == used[1]
        assert len(children() - before) == 1
    assert (children(), descriptors()) == (before, held)


async def test_a_network_without_data_channels_starts_no_process():
    before = children()
    async with open_system_network():
        assert children() == before


async def test_a_process_that_dies_breaks_its_links_and_the_next_one_starts():
    before = children()
    async with open_system_network() as network:
        async with open_ends(network) as (one, other):
            links = await one.opened(), await other.opened()
            (first,) = children() - before
            os.kill(first, signal.SIGKILL)
            for link in links:
                with pytest.raises(LinkBrokenError):
                    await link.receive()
                await link.aclose()
        await wait_all_tasks_blocked(0.1)  # the network has noticed it, too
        async with open_ends(network) as (one, other):
            assert (await one.opened()).kind is (await other.opened()).kind is Kind.WEBRTC
            assert children() - before != {first}


@pytest.mark.parametrize("pause", [0.0, 0.01, 0.05])
async def test_a_cancelled_negotiation_leaves_nothing_open(network, pause):
    held = descriptors()
    with trio.move_on_after(pause):
        async with open_ends(network) as (one, _):
            await one.opened()
            await trio.sleep_forever()
    assert descriptors() == held


async def test_a_signal_that_is_meant_for_the_runtime_ends_no_link():
    """Ctrl-C reaches the whole process group; the runtime says goodbye by its links first."""
    before = children()
    async with open_system_network() as network, open_ends(network) as (one, other):
        links = await one.opened(), await other.opened()
        (process,) = children() - before
        for which in (signal.SIGINT, signal.SIGTERM):
            os.kill(process, which)
            await links[0].send(b"still here")
            assert await links[1].receive() == b"still here"


async def test_a_data_channel_is_neither_dialled_nor_listened_for(network):
    with pytest.raises(DialError, match="negotiated"):
        await network.dial(Kind.WEBRTC, "127.0.0.1:1")
    with pytest.raises(ListenError, match="negotiated"):
        network.listen(Kind.WEBRTC, "127.0.0.1:0")


async def test_connections_are_bounded_and_one_that_ends_makes_room(network, monkeypatch):
    monkeypatch.setattr(process, "WEBRTC_PEERS", 2)
    async with network.negotiate(OFFER):
        async with network.negotiate(OFFER):
            with pytest.raises(DialError, match="2 connections are open"):
                async with network.negotiate(OFFER):
                    pass
        async with network.negotiate(OFFER) as end:
            assert end.sdp


async def test_an_end_whose_answer_never_comes_waits_until_it_is_cancelled(network):
    async with network.negotiate(OFFER) as end:
        with trio.move_on_after(0.05) as patience:
            await end.opened()
    assert patience.cancelled_caught


async def test_an_end_with_another_certificate_than_its_description_says_gets_no_link(network):
    stranger = make_channel_certificate()
    async with network.negotiate(OFFER) as one, trio.open_nursery() as nursery:
        terms = ChannelTerms(stranger, HOST, offer=one.sdp)
        async with network.negotiate(terms) as other:
            said = fingerprint_of(stranger).removeprefix("sha-256 ")
            expected = fingerprint_of(CERTIFICATE).removeprefix("sha-256 ")
            await one.answered(other.sdp.replace(said, expected))
            nursery.start_soon(pass_on, one, other)
            nursery.start_soon(pass_on, other, one)
            with trio.fail_after(60), pytest.raises(DialError):
                await one.opened()
            nursery.cancel_scope.cancel()


async def test_an_answer_that_cannot_be_read_ends_the_negotiation(network):
    async with network.negotiate(OFFER) as one:
        await one.answered("nonsense")
        with pytest.raises(DialError):
            await one.opened()


async def test_a_candidate_that_cannot_be_used_harms_no_link(network):
    async with open_ends(network) as (one, other):
        await one.hear("candidate:1 1 udp 1 not-an-address 9 typ host")
        await one.hear("candidate:1 1 udp 1 198.51.100.1 9 typ host raddr x rport y")
        await one.hear("candidate:1 1 udp 1 198.51.100.1 9 typ host")
        await one.hear("")
        await one.hear("candidate:1 1 udp 1 198.51.100.1 10 typ host")

        assert await one.opened()
        assert await other.opened()


async def test_the_certificate_of_the_terms_is_the_one_of_the_description(network):
    async with network.negotiate(OFFER) as one:
        assert read_description(one.sdp, "offer").fingerprint == fingerprint_of(CERTIFICATE)


# --- the other end is written by hand -----------------------------------------------------


@asynccontextmanager
async def open_other_end(network, mode):
    """Open a channel to a program; return the link, and what the program says."""
    process = await trio.lowlevel.open_process(
        [sys.executable, str(PROGRAM), mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        # This program has no sockets at the loopback address.
        everywhere = ChannelTerms(CERTIFICATE, "0.0.0.0")  # noqa: S104 - what is tried
        async with (
            aclosing(said(process.stdout)) as lines,
            network.negotiate(everywhere) as end,
        ):
            # This program knows no trickle: its offer has the candidates in it.
            found = [one async for one in end.candidates]
            sdp = end.sdp + "".join(f"a={one}\r\n" for one in found if one)
            await process.stdin.send_all(orjson.dumps({"sdp": sdp}) + b"\n")
            answer = (await anext(lines))["sdp"]
            for candidate in read_description(answer, "answer").candidates:
                await end.hear(candidate)
            await end.answered(answer)
            link = await end.opened()
            try:
                yield link, lines
            finally:
                await trio.aclose_forcefully(link)
    finally:
        process.kill()
        await process.wait()
        await process.stdin.aclose()
        await process.stdout.aclose()


async def said(stream):
    rest = b""
    async for data in stream:
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield orjson.loads(line)


async def read_on(link):
    while True:
        await link.receive()


async def test_the_other_end_may_be_any_peer_connection(network):
    async with open_other_end(network, "echo") as (link, lines):
        assert await anext(lines) == {"open": True}
        await link.send_many([b"one", "gr\u00fc\u00df".encode()])
        assert [await link.receive(), await link.receive()] == [b"one", "gr\u00fc\u00df".encode()]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.aclose)
            assert await anext(lines) == {"bytes": "0303e8"}


@pytest.mark.parametrize("mode", ["flood", "nonsense", "second"])
async def test_a_peer_that_breaks_the_rules_loses_its_link(network, mode):
    """SEC-26."""
    async with open_other_end(network, mode) as (link, lines):
        with trio.fail_after(60):
            # The application does not read yet.
            while await anext(lines) != {"closed": True}:
                pass
            with pytest.raises(LinkBrokenError) as caught:
                await read_on(link)
        assert caught.value.close_reason is None


async def test_a_frame_without_an_end_is_too_large(network):
    async with open_other_end(network, "endless") as (link, lines):
        with trio.fail_after(20), pytest.raises(FrameTooLargeError):
            await link.receive()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.aclose, CloseReason.TOO_LARGE)
            assert {"bytes": "0303f1"} in [await anext(lines), await anext(lines)]


async def test_a_peer_that_grants_no_credit_stops_its_sender_only(network):
    """SEC-26."""
    async with open_other_end(network, "deaf") as (link, _), open_ends(network) as (one, other):
        with trio.move_on_after(0.5) as patience:
            while True:
                await link.send(b"x" * MAX_FRAME_BYTES)
        assert patience.cancelled_caught
        left, right = await one.opened(), await other.opened()
        await left.send(b"others are not held up")
        assert await right.receive() == b"others are not held up"
        await trio.aclose_forcefully(left)
        await trio.aclose_forcefully(right)


# --- servers ------------------------------------------------------------------------------


def told(*urls: str) -> tuple[object, ...]:
    """Return what the process is told of a server with these URLs."""
    servers = (IceServer(urls, "user", "password"),)
    read = read_terms(write_terms(ChannelTerms(CERTIFICATE, HOST, servers=servers)))
    return read.stun_server, read.turn_server, read.turn_transport, read.turn_tls


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("stun:stun.example", (("stun.example", 3478), None, "udp", False)),
        ("turn:192.0.2.1:99?transport=tcp", (None, ("192.0.2.1", 99), "tcp", False)),
        ("turns:turn.example", (None, ("turn.example", 5349), "tcp", True)),
        ("turn:[2001:db8::1]:1", (None, ("2001:db8::1", 1), "udp", False)),
    ],
)
def test_the_url_of_a_server_is_read(url, parts):
    assert told(url) == parts
    assert told("turn:x:0", url, "stun:later.example", "turn:later.example")[:2] == tuple(
        part or later
        for part, later in zip(
            parts[:2], (("later.example", 3478), ("later.example", 3478)), strict=True
        )
    )


@pytest.mark.parametrize(
    "url", ["http://a.example", "stun://a.example", "turn:a:0", "turns:a?transport=udp", "turn:"]
)
def test_a_server_that_cannot_be_used_is_left_out(url):
    assert told(url) == (None, None, "udp", False)


def test_terms_hide_what_is_secret():
    servers = (IceServer(("turns:t.example",), "user", "password"),)
    terms = ChannelTerms(CERTIFICATE, HOST, servers=servers)
    read = read_terms(write_terms(terms))

    assert (read.turn_username, read.turn_password, read.turn_tls) == ("user", "password", True)
    assert "password" not in repr(read) + repr(terms)
    assert "PRIVATE" not in repr(read) + repr(terms)
