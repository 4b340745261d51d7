"""What a runtime sets up for links and takes down after them, as its node sees it (P2P-01..06)."""

import orjson
import pytest

from specs.addresses.address import domain_registry
from specs.bodies.object import ObjectName
from specs.message import Message, MessageType
from specs.reply_code import Code
from specs.trace import Kind, Op
from tests.support.runtime.domain import DOMAIN, NODE_PLACE, DomainOptions, go_live, open_domain
from transports.bodies import write_body


def rows(domain, op):
    """The rows of the node's tables that came, or went, in their order."""
    return [
        (fact.table, fact.key)
        for fact in domain.node_tracer.facts
        if fact.k is Kind.TABLE and fact.op is op and fact.table in {"subs", "alloc"}
    ]


async def record_of(member):
    """What the domain registry says of a member's hyperty."""
    body = {"resource": member.address}
    answer = await member.hyperty.ask(domain_registry(DOMAIN), MessageType.READ, body)
    return answer.body["value"]


async def row(member, whom):
    """The answer of the registry to a part of the runtime that asks for a link."""
    parts = member.runtime
    from_, to = parts.agent.url, f"{member.runtime.url}/registry"
    asked = write_body(ObjectName(whom))
    number = parts.config.ids.next(from_)
    return await parts.agent.request(Message(number, MessageType.READ, from_, to, asked))


# ---- coming


async def test_the_handler_is_reached_before_anything_is_registered(autojump_clock):
    """P2P-01, P2P-02, I-P9."""
    async with open_domain("alice") as domain:
        alice = domain["alice"]
        there = rows(domain, Op.ADD)
        record = await record_of(alice)
    assert there.index(("subs", alice.runtime.handler)) < there.index(("alloc", alice.address))
    assert record["p2pHandler"] == alice.runtime.handler


# ---- a link


async def test_the_record_of_the_other_is_read_at_its_domains_registry(autojump_clock):
    """RES-04, I-R10."""
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        alice = domain["alice"]
        read = [
            fact.to
            for fact in alice.facts(Op.SUBMIT)
            if (fact.type, fact.from_) == ("read", f"{alice.runtime.url}/registry")
        ]
    assert read == [domain_registry(DOMAIN)]


async def test_a_link_is_found_by_the_other_runtime_and_by_its_hyperties(autojump_clock):
    """P2P-18, REG-04."""
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        alice, bob = domain["alice"], domain["bob"]
        found = [(await row(alice, whom)).body["value"] for whom in (bob.runtime.url, bob.address)]
        nobody = await row(alice, "hyperty://a.example/nobody")
    assert [(one["remote"], one["role"], one["status"]) for one in found] == [
        (bob.runtime.url, "requester", "live")
    ] * 2
    assert nobody.code == Code.NOT_FOUND


# ---- going


@pytest.mark.parametrize("leaving", ["alice", "bob"], ids=["requester", "handler"])
async def test_a_leaving_runtime_removes_its_links_before_its_session_ends(leaving, autojump_clock):
    """P2P-03, P2P-06, P2P-28: nothing is left for the end of the session to clear away."""
    staying = {"alice": "bob", "bob": "alice"}[leaving]
    async with open_domain(staying) as domain:
        async with domain.visitor(leaving) as visitor:
            members = {leaving: visitor, staying: domain[staying]}
            await go_live_with(members["alice"], members["bob"])
        facts = domain.node_tracer.facts
        [end] = [
            at for at, fact in enumerate(facts)
            if fact.machine == "session" and fact.new == "closed"
            and visitor.runtime.url in (fact.key or "")
        ]  # fmt: skip
        of_visitor = [
            fact.key for fact in facts[end:]
            if fact.k is Kind.TABLE and fact.op is Op.DEL and fact.table in {"subs", "alloc"}
        ]  # fmt: skip
        paths = [key for table, key in rows(domain, Op.DEL) if table == "subs"]
    assert of_visitor == []
    assert visitor.runtime.handler in paths
    assert [key for key in paths if "/p2prequester/" in key] == [
        f"{members['alice'].runtime.url}/p2prequester/1"
    ]


async def go_live_with(one, other):
    await one.ask(other, 1)
    await one.wait_for("live", other)
    await other.wait_for("live", one)


def asks_for_a_handlers_path(frame):
    asked = [orjson.loads(line) for line in frame.split(b"\n") if line.startswith(b'{"id":')]
    resources = [url for one in asked for url in one.get("body", {}).get("resources", [])]
    return any("/p2phandler/" in url for url in resources)


def no_handler_is_reached(network):
    """Let nobody ask the node for the path of a handler."""

    def lose_frame(_number, frame):
        return () if asks_for_a_handlers_path(frame) else (0.0,)

    network.disturb(NODE_PLACE, lose_frame, lambda *_: (0.0,))


async def test_a_runtime_unreachable_by_its_handler_does_not_offer_it(autojump_clock):
    """P2P-02, I-P9: its hyperties are reached by the node, as without links."""
    options = DomainOptions(weather=no_handler_is_reached)
    async with open_domain("alice", "bob", options=options) as domain:
        alice, bob = domain["alice"], domain["bob"]
        assert not {"p2pHandler", "p2pRequester"} & set(await record_of(bob))
        assert (await alice.ask(bob, 1)).code == Code.OK
        assert await alice.runtime.links() == ()
