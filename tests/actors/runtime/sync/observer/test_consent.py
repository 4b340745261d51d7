"""Our runtimes at a node that delivers nothing an owner did not consent to (S3, SC-30, M-38)."""

from contextlib import asynccontextmanager

import pytest
import trio

from actors.runtime.hyperty.hyperty import Refused
from specs.message import MessageType
from specs.reply_code import Code
from tests.actors.runtime.stubs.test_node_restart import open_place
from tests.support.runtime.domain import DomainOptions, go_live, open_domain
from tests.support.runtime.parties import Party, heard, keep_events, neighbour, parties, slow
from transports.link import Kind


def steps(domain_tracer, machine="node_subscription"):
    """What became of the paths on changes at the node."""
    return [
        fact.new
        for fact in domain_tracer.facts
        if fact.machine == machine and "/changes|" in (fact.key or "")
    ]


async def refuse(_message):
    raise Refused(Code.FORBIDDEN, "no")


async def test_the_path_waits_for_the_owner_and_then_serves(autojump_clock):
    async with parties() as (alice, bob):
        decide = slow(alice)
        url = await alice.create(t=1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bob.observe, url)
            await trio.sleep(1)
            assert steps(alice.domain.node_tracer) == ["held"]
            decide.set()
        await alice.change(url, "t", 2)
        await trio.sleep(1)

        assert heard(bob) == [2]
        assert steps(alice.domain.node_tracer) == ["held", "active"]


async def test_a_refused_observer_leaves_no_path(autojump_clock):
    async with parties() as (alice, bob):
        alice.member.hyperty.on_request = refuse
        url = await alice.create(t=1)
        assert (await bob.observe(url)).code == 403
        await trio.sleep(1)

        assert steps(alice.domain.node_tracer) == ["held", "removed"]


@pytest.mark.parametrize("pause", [0.0, 0.001, 0.5])
async def test_a_neighbour_of_a_refused_observer_is_served_whenever_it_comes(pause, autojump_clock):
    """The refusal takes the path away; who came meanwhile has it set again."""
    async with parties() as (alice, bob):
        carol = await neighbour(bob, "carol")
        url = await alice.create(t=1)
        await alice.invite(url, carol)
        decide = trio.Event()

        async def no(_message):
            await decide.wait()
            raise Refused(Code.FORBIDDEN, "no")

        alice.member.hyperty.on_request = no
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bob.observe, url)
            await trio.sleep(1)
            decide.set()
            await trio.sleep(pause)
            assert (await carol.observe(url)).code == 200
        await trio.sleep(1)
        await alice.change(url, "t", 2)
        await trio.sleep(1)

        assert (heard(bob), heard(carol)) == ([], [2])


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


async def test_when_the_link_is_lost_the_changes_come_by_the_node(autojump_clock):
    async with linked() as (domain, alice, bob):
        url = await alice.create(t=1)
        await bob.observe(url)
        await alice.change(url, "t", 2)
        await trio.sleep(1)
        domain.cut_links(Kind.TCP)
        await alice.change(url, "t", 3)
        await trio.sleep(5)

        assert heard(bob) == [2, 3]


@pytest.mark.parametrize("pause", [0.5, 5, 61])
async def test_after_a_restart_of_the_node_changes_come_again(pause, autojump_clock):
    """It has forgotten every consent: both runtimes set their paths, and the owner is asked."""
    async with open_place() as place:
        for member in place.members:
            keep_events(member.hyperty)
        alice, bob = (Party(member) for member in place.members)
        url = await alice.create(t=1)
        assert (await bob.observe(url)).code == 200
        await place.restart_node(pause)
        await alice.member.ask(bob.member, 0)
        await bob.member.ask(alice.member, 0)
        await trio.sleep(20)
        await alice.change(url, "t", 2)
        await trio.sleep(1)

        assert heard(bob) == [2]
