"""Registries of whole runtimes follow each other over a live link (P2P-23..26, SC-18)."""

from specs.message import MessageType
from tests.support.runtime.domain import go_live, open_domain


async def test_only_a_registry_may_follow_and_only_by_a_link(autojump_clock):
    """I-C4: what lives here is reported to the other end of a link, to nobody else."""
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        body = {"resources": [f"{bob.runtime.url}/registry/changes"], "p2p": False}
        subscribe, registry = MessageType.SUBSCRIBE, f"{bob.runtime.url}/registry"
        by_hyperty = await alice.hyperty.ask(registry, subscribe, body)
        by_node = await alice.runtime.order("registry", subscribe, registry, body)
        await go_live(domain)
        by_link = await alice.hyperty.ask(registry, subscribe, {**body, "p2p": True})
        assert [by_hyperty.code, by_node.code, by_link.code] == [403, 403, 403]
