"""Which address is dialled is decided when it is dialled (S15)."""

import socket

import pytest
import trio

from actors.kit.guarded_network import GuardedNetwork
from actors.kit.http_client import PrivatePlaceError, dial_anywhere, dial_public
from transports.errors import DialError
from transports.link import Kind
from transports.memory import MemoryNetwork


class Names(trio.abc.HostnameResolver):
    """A directory of names that may say something else each time it is asked."""

    def __init__(self, **names):
        self.names = {name.replace("_", "."): list(reported) for name, reported in names.items()}
        self.asked = 0

    async def getaddrinfo(self, host, port, *_):
        self.asked += 1
        name = host.decode() if isinstance(host, bytes) else host
        reported = self.names.get(name)
        if reported is None:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        addresses = reported.pop(0) if len(reported) > 1 else reported[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in addresses]

    async def getnameinfo(self, sockaddr, flags):
        raise NotImplementedError


@pytest.fixture
async def names():
    made = Names(
        good_ex=[["8.8.8.8"]],
        private_ex=[["10.0.0.1"]],
        mixed_ex=[["8.8.8.8", "127.0.0.1"]],
        rebinding_ex=[["8.8.8.8"], ["127.0.0.1"]],
        mapped_ex=[["::ffff:127.0.0.1"]],
        nat_ex=[["64:ff9b::a00:1"]],
        scoped_ex=[["fe80::1%eth0"]],
        empty_ex=[[]],
    )
    trio.socket.set_custom_hostname_resolver(made)
    return made


async def test_an_operators_address_is_dialled_unchanged(names):
    assert await dial_anywhere("private.ex", 80) == "private.ex"
    assert names.asked == 0


async def test_a_public_name_is_dialled_by_the_address_that_was_judged(names):
    """DNS rebinding: the name is looked up once, and not dialled."""
    assert await dial_public("rebinding.ex", 80) == "8.8.8.8"
    assert names.asked == 1
    with pytest.raises(PrivatePlaceError):
        await dial_public("rebinding.ex", 80)


@pytest.mark.parametrize(
    "host",
    ["private.ex", "mixed.ex", "mapped.ex", "nat.ex", "scoped.ex", "empty.ex", "127.0.0.1", "::1"],
)
async def test_a_private_place_is_refused(names, host):
    with pytest.raises(PrivatePlaceError, match="it is in a private network"):
        await dial_public(host, 80)


async def test_an_unknown_name_is_refused(names):
    with pytest.raises(PrivatePlaceError, match="cannot be looked up"):
        await dial_public("nobody.ex", 80)


class Seen(MemoryNetwork):
    """Tells what it is asked to dial."""

    def __init__(self):
        super().__init__()
        self.dialled = []

    async def dial(self, kind, address, subprotocol=None, tls=None):
        self.dialled.append((kind, address))
        raise DialError(address, "nobody is there")


@pytest.mark.parametrize(
    ("kind", "address", "dialled"),
    [
        (Kind.WEBSOCKET, "ws://good.ex:81/link?a=1", "ws://8.8.8.8:81/link?a=1"),
        (Kind.WEBSOCKET, "ws://good.ex", "ws://8.8.8.8:80/"),
        (Kind.TCP, "good.ex:99", "8.8.8.8:99"),
        (Kind.STREAM, "good.ex:99", "8.8.8.8:99"),
    ],
)
async def test_a_guarded_network_dials_numbers(names, kind, address, dialled):
    network = Seen()
    with pytest.raises(DialError, match="nobody is there"):
        await GuardedNetwork(network, dial_public).dial(kind, address)
    assert network.dialled == [(kind, dialled)]


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        (Kind.WEBSOCKET, "ws://private.ex/link"),
        (Kind.WEBSOCKET, "ws://127.0.0.1:80/link"),
        (Kind.WEBSOCKET, "http://good.ex/link"),
        (Kind.TCP, "private.ex:1"),
        (Kind.TCP, "good.ex"),
        (Kind.STREAM, "127.0.0.1:1"),
        (Kind.UNIX, "/run/secret.sock"),
    ],
)
async def test_a_guarded_network_dials_nothing_private(names, kind, address):
    network = Seen()
    with pytest.raises(DialError):
        await GuardedNetwork(network, dial_public).dial(kind, address)
    assert network.dialled == []
