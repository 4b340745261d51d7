"""What the node of another domain tells a runtime in the triangle (SEC-08, MN-18)."""

import pytest
import trio

from fsm.registry.node_rights import NodeRights, Ownership
from fsm.registry.resolve.config import Topology
from tests.support.node.node_peer import Peer
from tests.support.runtime.abroad import B, DomainOptions, open_two
from transports.link import Kind


@pytest.mark.parametrize(
    ("from_", "is_heard"),
    [
        ("hyperty://a.ex/victim", False),
        ("hyperty-runtime://a.ex/victim/sm", False),
        ("domain://registry.a.ex", False),
        ("hyperty://c.ex/third", False),
        ("hyperty://b.ex/own", True),
    ],
)
async def test_a_node_speaks_for_its_own_domain_only(from_, is_heard, autojump_clock, monkeypatch):
    """Whatever its operator lets somebody say there."""
    options = DomainOptions(topology=Topology.TRIANGLE, a_knows={}, b_knows={})
    async with open_two(options) as world:
        assert (await world.a.ask(world.b)).code == 200
        honest, heard = NodeRights.ownership, len(world.a.hyperty.asked)

        def lying(rights: NodeRights, address: str, by: str) -> Ownership:
            return Ownership.OWN if address == from_ else honest(rights, address, by)

        monkeypatch.setattr(NodeRights, "ownership", lying)
        link = await world.network.dial(Kind.WEBSOCKET, world.b.node.url)
        peer = Peer(link, f"hyperty-runtime://{B}/mallory", B)
        assert (await peer.control("open", runtimeURL=peer.runtime)).code == 200
        await peer.post("create", from_, world.a.address, value="forged")
        await trio.sleep(1)
        assert len(world.a.hyperty.asked) - heard == is_heard
        await link.aclose()
