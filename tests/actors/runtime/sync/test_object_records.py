"""Data objects in the domain registry, from their creation to their end (REG-10, SYN-03)."""

import pytest
import trio
from typing_extensions import override

from actors.runtime.policy import Policy
from specs.addresses.address import domain_registry
from specs.limits.protocol import REGISTRATION_EXPIRES
from specs.message import Message, MessageType
from specs.trace import Kind, Op
from tests.actors.runtime.stubs.test_node_restart import open_place
from tests.support.runtime.domain import DOMAIN, DomainOptions, go_live, open_domain
from tests.support.runtime.parties import SCHEMA, SILENT, Party, keep_events, neighbour, parties

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


def history(tracer, machine, key):
    """The states of one thing at the node, in order."""
    return [fact.new for fact in tracer.facts if (fact.machine, fact.key) == (machine, key)]


async def test_any_hyperty_finds_the_record_of_an_object(autojump_clock):
    """REG-10, SYN-03: with the data of its reporter."""
    async with parties() as (alice, bob):
        answer = await create(alice, name="room", resources=["chat"])
        url = answer.body["resource"]
        code, found = await record(bob, url)
    assert (code, found) == (
        200,
        {
            "url": url,
            "runtime": alice.member.runtime.url,
            "reporter": alice.url,
            "name": "room",
            "schema": SCHEMA,
            "status": "live",
            "expires": REGISTRATION_EXPIRES,
            "dataSchemes": ["comm"],
            "resources": ["chat"],
        },
    )


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


async def test_the_objects_of_links_are_registered_nowhere(autojump_clock):
    """SC-16: who is not invited to them does not find them."""
    async with open_domain("alice", "bob") as domain:
        await go_live(domain)
        written = {fact.key for fact in domain["alice"].facts(Op.WRITE, Kind.OBJ)}
        facts = domain.node_tracer.facts
    registered = {fact.key for fact in facts if fact.machine == "registration"}
    assert written
    assert {domain["alice"].address, domain["bob"].address} == registered


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


# ---- kept alive


async def test_the_record_of_an_object_is_kept_alive(autojump_clock):
    """REG-10, REG-08."""
    async with parties() as (alice, bob):
        url = await alice.create()
        await trio.sleep(3.5 * REGISTRATION_EXPIRES)
        code, found = await record(bob, url)
    assert (code, found["status"]) == (200, "live")


async def test_a_node_that_comes_back_without_memory_is_notified_of_objects_again(autojump_clock):
    """REG-10, STB-09."""
    async with open_place() as place:
        alice, bob = (Party(member) for member in place.members)
        keep_events(bob.member.hyperty)
        url = await alice.create()
        await place.restart_node(1)
        await trio.sleep(10)
        assert history(place.tracer, "registration", url) == ["live"]
        assert (await record(bob, url, domain_registry("a.ex")))[0] == 200
        assert (await bob.observe(url)).code == 200


# ---- the end


async def end_by_delete(party, url):
    await party.ask(MessageType.DELETE, resource=url)


async def end_by_undeploy(party, url):
    await party.member.runtime.undeploy(party.url)


@pytest.mark.parametrize("end", [end_by_delete, end_by_undeploy])
async def test_a_deleted_object_is_unregistered_and_then_its_address_released(autojump_clock, end):
    """REG-10, SYN-22."""
    async with parties() as (alice, bob):
        carol = await neighbour(alice, "carol")
        url = await carol.create()
        await bob.observe(url)
        await end(carol, url)
        facts = alice.domain.node_tracer.facts
        seen = [fact.new for fact in facts if fact.key == url and fact.k is Kind.STATE]
        code, found = await record(bob, url)
    assert seen == ["allocated", "live", "disconnected", "released"]
    assert (code, [each["status"] for each in found]) == (408, ["disconnected"])


async def test_a_runtime_that_leaves_unregisters_its_objects(autojump_clock):
    """REG-10, REG-09."""
    async with open_domain("bob", options=SILENT) as domain:
        async with domain.visitor("carol") as visitor:
            url = await Party(visitor, domain).create()
        facts = domain.node_tracer.facts
    steps = [fact for fact in facts if fact.k is Kind.STATE and fact.key == url]
    assert [(fact.new, fact.why) for fact in steps if fact.machine == "registration"] == [
        ("live", "create"),
        ("disconnected", "unregister"),
    ]


async def test_a_reporter_that_leaves_while_its_object_is_registered_leaves_nothing(
    autojump_clock,
):
    """REG-10, SYN-22."""
    async with parties() as (alice, _):
        carol = await neighbour(alice, "carol")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(create, carol)
            await until_registering(alice)
            await alice.member.runtime.undeploy(carol.url)
            nursery.cancel_scope.cancel()
        await trio.sleep(20)
        (url,) = {fact.key for fact in alice.member.facts(Op.WRITE, Kind.OBJ)}
        tracer = alice.domain.node_tracer
        assert history(tracer, "registration", url)[-1:] in ([], ["disconnected"])
        assert history(tracer, "address", url)[-1] == "released"


async def until_registering(party):
    """Wait for the moment at which an object is there and its record under way."""
    with trio.fail_after(60):
        while not party.member.facts(Op.WRITE, Kind.OBJ):
            await trio.lowlevel.checkpoint()
