"""Data objects in the domain registry, from their creation to their end (REG-10, SYN-03)."""

import trio
from typing_extensions import override

from actors.runtime.policy import Policy
from specs.addresses.address import domain_registry
from specs.message import Message, MessageType
from specs.trace import Kind, Op
from tests.support.runtime.domain import DOMAIN, DomainOptions, open_domain
from tests.support.runtime.parties import SCHEMA, Party, parties

REGISTRY = domain_registry(DOMAIN)


class Unlisted(Policy):
    """Lets nobody register an object."""

    @override
    def refusal(self, message: Message, by: str) -> str | None:
        value = message.body.get("value")
        is_object = isinstance(value, dict) and "reporter" in value
        return "not to be found" if is_object and message.to == REGISTRY else None


async def create(party, **reported):
    value = {"reporter": party.url, "runtime": party.member.runtime.url, "data": {}, **reported}
    return await party.ask(MessageType.CREATE, schema=SCHEMA, value=value)


async def record(party, url, registry=REGISTRY):
    answer = await party.ask(MessageType.READ, registry, resource=url)
    return answer.code, answer.body.get("value")


async def test_the_record_of_an_object_says_how_to_link_to_its_runtime(autojump_clock):
    """REG-10."""
    async with open_domain("alice", "bob") as domain:
        alice, bob = (Party(domain[name], domain) for name in ("alice", "bob"))
        _, found = await record(bob, await alice.create())
        _, hyperty = await record(bob, alice.url)
        handler = alice.member.runtime.handler
    assert handler is not None
    assert [each["p2pHandler"] for each in (found, hyperty)] == [handler, handler]
    assert found["p2pRequester"] == hyperty["p2pRequester"]


# ---- refused


class NoObjects(Policy):
    """Lets nobody create an object."""

    @override
    def refusal(self, message: Message, by: str) -> str | None:
        is_create = message.type is MessageType.CREATE and message.to.endswith("/sm")
        return "no objects here" if is_create else None


async def test_policy_is_asked_before_anything_is_done_for_an_object(autojump_clock):
    """SYN-01: no address is allocated for what may not be created."""
    options = DomainOptions(kinds=(), policies={"alice": NoObjects()})
    async with open_domain("alice", options=options) as domain:
        alice = Party(domain["alice"], domain)
        code = (await create(alice)).code
        addresses = {fact.key for fact in domain.node_tracer.facts if fact.machine == "address"}
    assert (code, addresses) == (403, {alice.url})


async def test_an_object_that_is_not_registered_is_taken_down_and_its_reporter_reported(
    autojump_clock,
):
    """SYN-03, SYN-02: address and path are gone, and so are its listeners."""
    options = DomainOptions(kinds=(), policies={"alice": Unlisted()})
    async with open_domain("alice", options=options) as domain:
        alice = Party(domain["alice"], domain)
        answer = await create(alice)
        await trio.sleep(1)
        (url,) = {fact.key for fact in alice.member.facts(Op.WRITE, Kind.OBJ)}
        observed = await alice.observe(url)
        facts = list(domain.node_tracer.facts)
    last = {(fact.machine, fact.key): fact.new for fact in facts if fact.k is Kind.STATE}
    paths = [fact.op for fact in facts if (fact.k, fact.key) == (Kind.TABLE, f"{url}/subscription")]
    assert (answer.code, "not to be found" in answer.body["description"]) == (403, True)
    assert last["address", url] == "released"
    assert ("registration", url) not in last
    assert (paths[0], paths[-1]) == (Op.ADD, Op.DEL)
    assert observed.code == 404


# ---- the end


async def test_the_status_of_an_object_is_listened_to_while_it_is_there(autojump_clock):
    """SYN-03: by the registry."""
    async with parties() as (alice, _):
        url = await alice.create()
        await alice.ask(MessageType.DELETE, resource=url)
        rows = [
            (fact.op, fact.val)
            for fact in alice.member.tracer.facts
            if (fact.k, fact.table, fact.key) == (Kind.TABLE, "listeners", f"{url}/status")
        ]
    assert rows == [(Op.ADD, "registry"), (Op.DEL, "registry")]
