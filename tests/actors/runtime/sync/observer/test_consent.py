"""Our runtimes at a node that delivers nothing an owner did not consent to (S3, SC-30, M-38)."""

from contextlib import asynccontextmanager

import trio

from specs.message import MessageType
from tests.support.runtime.domain import DomainOptions, go_live, open_domain
from tests.support.runtime.parties import Party, heard, keep_events
from transports.link import Kind


@asynccontextmanager
async def linked():
    """Two runtimes with a live P2P link, whose hyperties keep what they hear."""
    async with open_domain("alice", "bob", options=DomainOptions(kinds=(Kind.TCP,))) as domain:
        await go_live(domain)
        for member in domain.members.values():
            keep_events(member.hyperty)
        yield domain, Party(domain["alice"], domain), Party(domain["bob"], domain)


async def test_with_a_live_link_the_owner_is_still_asked_by_the_node(autojump_clock):
    async with linked() as (domain, alice, bob):
        url = await alice.create(t=1)
        assert (await bob.observe(url)).code == 200
        asked = [f for f in domain.node_tracer.facts if f.to == f"{url}/subscription"]
        assert asked
        for version in (2, 3, 4):
            await alice.change(url, "t", version)
        await trio.sleep(1)
        assert heard(bob) == [2, 3, 4]

        assert (await bob.ask(MessageType.UNSUBSCRIBE, resource=url)).code == 200
        await alice.change(url, "t", 5)
        await trio.sleep(1)
        assert heard(bob) == [2, 3, 4]
        paths = [fact.new for fact in domain.node_tracer.facts if fact.key and url in fact.key
                 and fact.machine == "node_subscription" and "/changes|" in fact.key]  # fmt: skip
        assert paths == ["held", "active", "removed"]
