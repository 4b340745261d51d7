"""A kind of candidate that cannot be opened here is left out at once, and the others are tried."""

import tempfile
from contextlib import asynccontextmanager

import pytest
import trio

from tests.support.runtime.domain import DomainOptions, go_live, open_domain
from transports.errors import LinkClosedError, ListenError
from transports.link import DEFAULT_PATHS, EVERYBODY, PROTOFLY_V1, Kind, Listener, Network
from transports.memory import MemoryNetwork
from transports.system import open_system_network


class DeadListener(Listener):
    """A listener that dies as soon as it is asked."""

    async def accept(self):
        await trio.lowlevel.checkpoint()
        raise LinkClosedError(self.address)


class Lacking(Network):
    """A network in memory on which one kind of candidate is refused, or dies."""

    def __init__(self, kind, *, dies=False):
        self._network = MemoryNetwork()
        self._kind = kind
        self._dies = dies

    async def dial(self, kind, address, subprotocol=PROTOFLY_V1, tls=None):
        return await self._network.dial(kind, address, subprotocol, tls)

    @asynccontextmanager
    async def listen(self, kind, where, paths=DEFAULT_PATHS, gate=EVERYBODY):
        if kind is not self._kind or "/p2p" not in paths:
            async with self._network.listen(kind, where, paths, gate) as listener:
                yield listener
        elif self._dies:
            yield DeadListener(where)
        else:
            raise ListenError(where, "the port is taken")


def on(network):
    @asynccontextmanager
    async def opened():
        await trio.lowlevel.checkpoint()
        yield network

    return opened


def ends(member):
    return [
        (fact.new, fact.why) for fact in member.tracer.facts if fact.machine == "p2p_connection"
    ]


@pytest.fixture
def deep_folder(tmp_path, monkeypatch):
    """Let temporary files be where the path of no Unix socket fits."""
    folder = tmp_path / ("x" * 110)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


async def test_a_set_up_for_which_no_end_can_open_anything_fails_at_once(deep_folder):
    options = DomainOptions(kinds=(Kind.UNIX,), network=open_system_network)
    with trio.fail_after(60):
        async with open_domain("alice", "bob", options=options) as domain:
            alice, bob = domain["alice"], domain["bob"]
            assert (await alice.ask(bob, "by the node")).value == "by the node"

            async def has_failed():
                return ("failed", "no candidate of either end opens") in ends(alice)

            await alice.tracer.until(has_failed)
            assert (await alice.ask(bob, "by the node")).value == "by the node"


async def test_a_data_channel_that_cannot_be_made_leaves_the_others(caplog, autojump_clock):
    options = DomainOptions(kinds=(Kind.WEBRTC, Kind.TCP), network=on(Lacking(Kind.UNIX)))
    async with open_domain("alice", "bob", options=options) as domain:
        await go_live(domain)
    assert any("no data channel is offered" in line for line in caplog.messages)
