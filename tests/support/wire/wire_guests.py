"""Peers that come to a node process, by any wire form, and are gone afterwards."""

from contextlib import AsyncExitStack
from itertools import count

from tests.support.node.node_process import DOMAIN, NodeProcess
from tests.support.wire.wire_peer import WirePeer
from tests.support.wire.wire_speakers import FORMS

NUMBERS = count(1)


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

    def abroad(self, domain: str, form: str | None = None, name: str | None = None) -> WirePeer:
        """Make a peer that has not come yet and says that its runtime is of another domain."""
        peer = self.named(form, name)
        peer.runtime = peer.runtime.replace(f"://{DOMAIN}/", f"://{domain}/")
        peer.inside = peer.inside.replace(f"://{DOMAIN}/", f"://{domain}/")
        return peer

    async def outsider(self, form: str | None = None, name: str | None = None) -> WirePeer:
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
        peer = await self.outsider(form, name)
        opened = await peer.open()
        assert opened is None or opened["body"]["code"] == 200, opened
        return peer
