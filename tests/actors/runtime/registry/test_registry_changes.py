"""Registries of whole runtimes follow each other over a live link (P2P-23..26, SC-18)."""

import trio
import trio.testing
from typing_extensions import override

from actors.runtime.bus.messages import Origin
from actors.runtime.policy import Policy
from fsm.judge.trace_line import Verdict
from specs.message import Message, MessageType
from specs.reply_code import DropReason
from specs.trace import Op
from tests.support.runtime.domain import DomainOptions, Echo, go_live, judged, open_domain
from transports.link import Kind as Carrier


async def known_of(member, other):
    """What a registry knows to live at the other end of its link."""
    links = {entry.remote: entry for entry in await member.runtime.links()}
    entry = links.get(other.runtime.url)
    return None if entry is None else set(entry.entities)


async def until_known(member, other, *urls):
    async def is_known():
        return await known_of(member, other) == set(urls)

    with trio.fail_after(60):
        await member.tracer.until(is_known)


def reads_of(member):
    """Records that a runtime has asked for."""
    return [
        fact
        for fact in member.facts(Op.SUBMIT)
        if fact.type == "read" and (fact.to or "").startswith("domain://registry.")
    ]


async def test_each_end_knows_the_addresses_at_the_other_and_their_changes(autojump_clock):
    """P2P-23, P2P-24, P2P-25."""
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
        await until_known(alice, bob, bob.address)
        await until_known(bob, alice, alice.address)
        second = await bob.runtime.deploy("second", Echo)
        await until_known(alice, bob, bob.address, second)
        await bob.runtime.undeploy(second)
        await until_known(alice, bob, bob.address)
    for member in (alice, bob):
        assert judged(member).verdict is Verdict.CONFORMANT


async def test_a_reported_address_is_reached_by_the_link_without_its_record(autojump_clock):
    """RES-02, I-R8: what a registry lists is where the link leads."""
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
        second = await bob.runtime.deploy("second", Echo)
        await until_known(alice, bob, bob.address, second)
        before = len(reads_of(alice))
        answer = await alice.hyperty.request(second, "hello")
        assert (answer.code, answer.via[0]) == (200, f"{bob.runtime.url}/p2phandler/1/conn/1")
        assert len(reads_of(alice)) == before


async def test_a_removed_address_is_requested_by_the_node(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
        second = await bob.runtime.deploy("second", Echo)
        await until_known(alice, bob, bob.address, second)
        await bob.runtime.undeploy(second)
        await until_known(alice, bob, bob.address)
        answer = await alice.hyperty.request(second, "hello")
        assert answer.code == 404
        assert answer.from_ == second


async def test_changes_during_the_loss_of_a_link_are_known_once_it_is_back(
    autojump_clock,
):
    """P2P-26: following ends with the link, and begins anew; nothing stale is left."""
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
        old = await bob.runtime.deploy("old", Echo)
        await until_known(alice, bob, bob.address, old)
        async with trio.open_nursery() as nursery:
            domain.cut_links(Carrier.TCP)
            nursery.start_soon(bob.runtime.undeploy, old)
            new = await bob.runtime.deploy("new", Echo)
        await until_known(alice, bob, bob.address, new)
        assert await alice.status(bob) == "live"
        machine = "object_subscription"
        ends = [new for key, new in bob.steps(machine) if key.startswith(bob.runtime.url)]
        assert ends == ["requested", "active", "removed", "requested", "active"]
    for member in (alice, bob):
        assert judged(member).verdict is Verdict.CONFORMANT


class NobodyFollows(Policy):
    """Forbids that others follow the registry."""

    @override
    def refusal(self, message, by):
        is_asked = message.to.endswith("/bob/registry")
        is_following = is_asked and message.type is MessageType.SUBSCRIBE
        return "what lives here is nobody's business" if is_following else None


async def test_a_runtime_with_a_refused_list_still_uses_the_link(autojump_clock):
    options = DomainOptions(policies={"bob": NobodyFollows()})
    async with open_domain("alice", "bob", options=options) as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
        await until_known(bob, alice, alice.address)
        assert (await alice.ask(bob, 1)).via[0].endswith("/conn/1")
        assert await alice.status(bob) == "live"
        second = await bob.runtime.deploy("second", Echo)
        assert (await alice.hyperty.request(second, 2)).code == 200
        steps = [new for key, new in alice.steps("observer_copy") if "/registry|" in key]
        assert steps == ["syncing", "deleted"]


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


async def test_a_report_in_the_name_of_a_registry_is_ignored(autojump_clock):
    """I-R8: an entity is bound by the other registry's own word, over the link itself."""
    async with open_domain("alice", "bob", "carol") as domain:
        alice, bob, carol = (domain[name] for name in ("alice", "bob", "carol"))
        await go_live(domain)
        await go_live(domain, "carol", "bob")
        await until_known(bob, alice, alice.address)
        value = {"value": ["hyperty://a.example/made-up"], "operation": "add"}
        body = {**value, "attributeType": "array"}
        changes = f"{alice.runtime.url}/registry/changes"
        context = alice.hyperty._participant
        forged = Message(
            context.ids.next(alice.address), MessageType.UPDATE, alice.address, changes, body
        )
        before = len(bob.facts(Op.DROP))
        await context.port.post(forged)
        other = carol.hyperty._participant
        number = other.ids.next(carol.address)
        await other.port.post(Message(number, MessageType.UPDATE, carol.address, changes, body))
        await trio.sleep(1)
        assert await known_of(bob, alice) == {alice.address}
        dropped = [fact.reason for fact in bob.facts(Op.DROP)[before:]]
        assert set(dropped) <= {DropReason.FORGED_STATUS.value}
        assert dropped


async def test_a_list_of_foreign_addresses_routes_no_message_to_its_link(autojump_clock):
    """T18, I-R8: a list is a hint, and the record is what counts."""
    async with open_domain("alice", "bob", "carol") as domain:
        alice, bob, carol = (domain[name] for name in ("alice", "bob", "carol"))
        await go_live(domain)
        await until_known(alice, bob, bob.address)
        registry = f"{bob.runtime.url}/registry"
        bob.runtime.bus.grant(registry, registry, Origin.LOCAL)
        body = {"value": [carol.address], "operation": "add", "attributeType": "array"}
        claim = Message(10**9, MessageType.UPDATE, registry, f"{registry}/changes", body)
        before = len(reads_of(alice))
        await bob.hyperty._participant.port.post(claim, registry)
        with trio.fail_after(60):
            while len(reads_of(alice)) == before:  # noqa: ASYNC110 - looked at
                await trio.sleep(0.05)
        answer = await alice.hyperty.request(carol.address, 1)
        assert (answer.code, answer.from_) == (200, carol.address)
        assert await known_of(alice, bob) == {bob.address}


async def test_a_malformed_word_of_a_registry_is_dropped_and_the_link_stays(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        await go_live(domain)
        await until_known(bob, alice, alice.address)
        registry = f"{alice.runtime.url}/registry"
        alice.runtime.bus.grant(registry, registry, Origin.LOCAL)
        body = {"value": "nothing", "operation": "add"}
        number = 10**9
        message = Message(number, MessageType.UPDATE, registry, f"{registry}/changes", body)
        await alice.hyperty._participant.port.post(message, registry)
        await trio.sleep(1)
        assert [f.reason for f in bob.facts(Op.DROP)][-1:] == [DropReason.MALFORMED.value]
        assert (await alice.ask(bob, 1)).via[0].endswith("/conn/1")
