"""A node process for all, and peers of every wire form.

A test that asks for `join` runs once for each wire form; `@needs(...)` leaves out those
that cannot do what the test is about, by the table in `tests.support.wire_forms`.
"""

from contextlib import AsyncExitStack
from itertools import count

import pytest

from tests.support.node_process import DOMAIN, UNHURRIED, NodeProcess, node_process
from tests.support.wire_forms import forms_for
from tests.support.wire_peer import FORMS, WirePeer

NUMBERS = count(1)


def pytest_generate_tests(metafunc):
    if "form" in metafunc.fixturenames:
        wanted = getattr(metafunc.function, "needs", frozenset())
        metafunc.parametrize("form", forms_for(wanted))


class Joining:
    """Lets peers come to a node; they are gone when the test is over."""

    def __init__(self, node: NodeProcess, form: str) -> None:
        self.node = node
        self.form = form
        self.stack = AsyncExitStack()

    def named(self, form: str | None = None, name: str | None = None) -> WirePeer:
        """Make a peer that has not come yet; its runtime is nobody else's."""
        name = name or f"r{next(NUMBERS)}"
        return FORMS[form or self.form](self.node.urls, DOMAIN, name)

    async def stranger(self, form: str | None = None, name: str | None = None) -> WirePeer:
        """Connect, and say nothing."""
        return await self.connect(self.named(form, name))

    async def connect(self, peer: WirePeer) -> WirePeer:
        await peer.connect()
        self.stack.push_async_callback(peer.vanish)
        return peer

    async def back(self, peer: WirePeer) -> WirePeer:
        """Connect again as the runtime of a peer, with what it knows, and say nothing."""
        again = await self.connect(FORMS[peer.form](self.node.urls, DOMAIN, peer.name))
        again.token = peer.token
        return again

    async def __call__(self, form: str | None = None, name: str | None = None) -> WirePeer:
        """Connect and have a session."""
        peer = await self.stranger(form, name)
        opened = await peer.open()
        assert opened is None or opened["body"]["code"] == 200, opened
        return peer


@pytest.fixture(scope="session")
def the_node(tmp_path_factory):
    """The node that all tests share that need no other."""
    log = tmp_path_factory.mktemp("node") / "stderr"
    with node_process(log, "--domain", DOMAIN, "--allow-legacy", *UNHURRIED) as node:
        yield node
        assert node.is_alive
        assert node.stop() == 0
        assert node.complaints == []


@pytest.fixture
def node(the_node):
    """The node under test; a module that needs another one overrides this."""
    return the_node


@pytest.fixture
async def guests(node):
    """For tests that say themselves which form is spoken."""
    joining = Joining(node, "link")
    async with joining.stack:
        yield joining
    assert node.is_alive


@pytest.fixture
async def join(guests, form):
    """Peers that speak the form this run is about."""
    guests.form = form
    return guests
