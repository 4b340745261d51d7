"""What a runtime is made of, seen from outside: its tables, its sandboxes, its coming and going."""

from collections import Counter

import pytest
import trio
from typing_extensions import override

from actors.kit.errors import NameTakenError
from actors.kit.supervision.supervisor import Intensity
from actors.runtime.app import open_runtime
from actors.runtime.bus.messages import Origin
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.host import HypertyHost
from actors.runtime.hyperty.hyperty import Hyperty, Lifecycle
from actors.runtime.policy import Policy
from actors.runtime.registry.allocation import AllocationError
from actors.runtime.registry.registrations import RegistrationError
from actors.runtime.stubs.sandbox import Component
from specs.addresses.address import address_allocation, domain_registry
from specs.message import MessageType
from specs.reply_code import Code
from specs.trace import Kind, Op
from tests.support.runtime.domain import DOMAIN, DomainOptions, Echo, open_domain
from tests.support.runtime.runtime_parts import Refusing
from tests.support.trace.memory import MemoryTracer

REGISTRY = domain_registry(DOMAIN)
ALLOCATION = address_allocation(DOMAIN)


def rows(member, table="listeners", op=Op.ADD):
    return [
        fact
        for fact in member.tracer.facts
        if fact.k is Kind.TABLE and fact.table == table and fact.op is op
    ]


async def record(asker, url):
    answer = await asker.hyperty.ask(REGISTRY, MessageType.READ, {"resource": url})
    return answer.code, answer.body.get("value")


# ---- tables

READABLE = ("discovery", "idm", "subscriptions", "graph-connector")


async def test_routers_write_no_listeners(autojump_clock):
    """BUS-18: the registry, the agent and the managers do, and the loader in a sandbox."""
    async with open_domain("ra", "rb") as domain:
        one = domain["ra"]
        await one.ask(domain["rb"], 1)
        async with one.hyperty.report("comm", {"a": 1}):
            pass
        parts = ("ua", "registry", "address-allocation", "sm", "pep", "identity-gui", *READABLE)
        allowed = {f"{one.runtime.url}/{part}" for part in parts} | {"loader"}
        assert {fact.writer for fact in rows(one)} <= allowed


async def test_the_registry_listens_and_alone_writes_its_tables(autojump_clock):
    """REG-01."""
    async with open_domain("ra", "rb") as domain:
        one = domain["ra"]
        await one.ask(domain["rb"], 1)
        await one.wait_for("live", domain["rb"])
        assert f"{one.runtime.url}/registry" in {fact.key for fact in rows(one)}
        for table in ("stubs", "p2p"):
            assert {fact.writer for fact in rows(one, table)} == {"registry"}


async def test_messages_to_one_domain_share_one_stub(autojump_clock):
    """REG-02, RES-13: whoever comes second joins the first."""
    async with open_domain("ra", "rb", options=DomainOptions(kinds=())) as domain:
        one, other = domain["ra"], domain["rb"]
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(one.ask, other, number)
        assert len((await one.runtime.registry.view()).node_stubs) == 1
        assert len(rows(one, "stubs")) == 1


async def test_a_runtime_has_one_handler(autojump_clock):
    """REG-03: however many links it serves."""
    async with open_domain("ra", "rb", "rc") as domain:
        for name in ("rb", "rc"):
            await domain[name].ask(domain["ra"], 1)
            await domain[name].wait_for("live", domain["ra"])
        keys = {fact.key.removesuffix("/status") for fact in rows(domain["ra"])}
        handlers = {key for key in keys if "/p2phandler/" in key and "/conn/" not in key}
        assert handlers == {domain["ra"].runtime.handler}


async def test_the_status_of_a_hyperty_and_of_each_stub_is_listened_to(autojump_clock):
    """REG-06, REG-11: by the registry, from before the stub says its first word."""
    async with open_domain("ra", "rb") as domain:
        one = domain["ra"]
        await one.ask(domain["rb"], 1)
        await one.wait_for("live", domain["rb"])
        heard = {fact.key for fact in rows(one) if fact.val == "registry"}
        (stub,) = (await one.runtime.registry.view()).node_stubs
        (link,) = await one.runtime.links()
        urls = one.address, stub, link.stub
        assert {f"{url}/status" for url in urls} <= heard


# ---- records


async def test_a_runtime_that_leaves_unregisters_all_it_has(autojump_clock):
    """REG-09: it says so itself; its node would find out later."""
    async with open_domain("ra") as domain:
        async with domain.visitor("rb") as other:
            urls = [other.address, await other.runtime.deploy("second", Echo)]
        found = [await record(domain["ra"], url) for url in urls]
        gone = [fact.key for fact in rows(other, op=Op.DEL)]
    said = [fact for fact in other.facts(Op.SUBMIT) if (fact.to, fact.type) == (REGISTRY, "update")]
    assert len(said) >= len(urls)
    assert [code for code, _ in found] == [Code.TIMEOUT] * 2
    assert [value[0]["status"] for _, value in found] == ["disconnected"] * 2
    assert set(urls) <= set(gone)


# ---- local or not


@pytest.mark.parametrize("tail", ["2", "/nobody", "2/nobody"])
async def test_an_address_that_only_begins_like_this_runtime_is_foreign(tail, autojump_clock):
    """ADR-08, REG-14: below R is here; what begins with the same letters is asked for outside."""
    async with open_domain("ra", options=DomainOptions(kinds=())) as domain:
        one = domain["ra"]
        before = len(rows(one, "stubs"))
        other = f"{one.runtime.url}{tail}"
        answer = await one.hyperty.request(other)
        crossed = [fact for fact in one.facts(Op.XMIT) if fact.to == other]
    assert before == 1
    assert (answer.code, bool(crossed)) == (Code.NOT_FOUND, tail.startswith("2"))


# ---- sandboxes


class NoGossip(Policy):
    @override
    def refusal(self, message, by):
        return None if message.from_ != message.to else "no talking to oneself"


async def test_a_message_of_a_hyperty_to_itself_is_seen_by_policy(autojump_clock):
    """BUS-05, I-B11: what leaves a MiniBUS always goes by the Message BUS."""
    async with open_domain("ra", options=DomainOptions(policies={"ra": NoGossip()})) as domain:
        one = domain["ra"]
        assert (await one.ask(one, 1)).code == Code.FORBIDDEN
        assert one.hyperty.heard == []


class Crashing(Hyperty):
    @override
    async def on_request(self, message):
        self.spawn(self.fall)
        await trio.sleep_forever()

    async def fall(self):
        raise ZeroDivisionError


async def test_a_sandbox_that_ends_in_crashes_stops_no_other_sandbox(autojump_clock):
    """BUS-15: the bus and the other sandboxes go on; who asks it is answered."""
    async with open_domain("ra") as domain:
        one = domain["ra"]
        crashing = await one.runtime.deploy("crashing", Crashing)
        codes = [(await one.hyperty.request(crashing)).code for _ in range(10)]
        await trio.sleep(1)
        codes.append((await one.hyperty.request(crashing)).code)
        assert (await one.ask(one, 1)).code == Code.OK
    assert set(codes) <= {Code.UNAVAILABLE, Code.NOT_FOUND}
    assert codes[-1] == Code.NOT_FOUND


async def test_each_sandbox_has_one_mini_bus(autojump_clock):
    """BUS-15, BUS-17: what comes for a component is found by its route, else by `*`."""
    async with open_domain("ra") as domain:
        one = domain["ra"]
        second = await one.runtime.deploy("second", Echo)
        caught = [fact.val for fact in rows(one) if fact.key == "*"]
        buses = [fact.val for fact in rows(one) if fact.key in {one.address, second}]
    assert sorted(buses) == sorted(f"minibus:{url}" for url in (one.address, second))
    assert (caught.count(one.address), caught.count(second)) == (1, 1)


async def test_a_stub_hears_all_of_its_sandbox_and_is_heard_of_by_its_address(autojump_clock):
    """STB-02: `*` at its MiniBUS, its own address at the Message BUS."""
    async with open_domain("ra", "rb", options=DomainOptions(kinds=())) as domain:
        one = domain["ra"]
        await one.ask(domain["rb"], 1)
        (stub,) = (await one.runtime.registry.view()).node_stubs
        places = [
            (actor, fact.key)
            for actor, fact in one.tracer.records
            if fact.table == "listeners" and fact.val in {stub, f"minibus:{stub}"}
        ]
    assert sorted(places) == sorted([("bus", stub), (f"minibus:{stub}", "*")])


async def test_two_components_cannot_have_one_address(autojump_clock):
    """BUS-16: the first goes on; to close what is not there is fine."""
    async with open_domain("ra") as domain:
        one = domain["ra"]
        sandboxes = one.runtime.sandboxes
        second = Component(
            one.address,
            Origin.LOCAL,
            lambda _: HypertyHost(Echo, one.hyperty._participant, Lifecycle().record_error),
            Intensity(),
        )
        with pytest.raises(NameTakenError):
            await sandboxes.open(second)
        assert (await one.ask(one, 1)).code == Code.OK
        for _ in range(2):
            await sandboxes.close(f"{one.runtime.url}/nobody")


# ---- coming


async def test_a_runtime_comes_part_by_part_and_its_handler_last(autojump_clock):
    """RT-01: agent, registry, allocation and sync manager listen before the handler is there."""
    async with open_domain("ra") as domain:
        one = domain["ra"]
        keys = [fact.key.removeprefix(one.runtime.url) for fact in rows(one)]
    first = ["/ua", "/registry", "/address-allocation", "/sm"]
    assert [key for key in keys if key in first] == first
    assert keys.index("/p2phandler/1") > keys.index("/sm")


async def test_a_runtime_that_is_started_again_has_its_address_and_is_reached(autojump_clock):
    """RT-02: nobody else has to learn a new one."""
    async with open_domain("ra") as domain:
        config = RuntimeConfig(domain=DOMAIN, name="rb", node=domain.node.url)
        urls = []
        for _ in range(2):
            async with open_runtime(config, domain.network, MemoryTracer()) as runtime:
                url = await runtime.deploy("echo", Echo)
                assert (await domain["ra"].hyperty.request(url)).code == Code.OK
                urls.append(runtime.url)
    assert urls[0] == urls[1] == f"hyperty-runtime://{DOMAIN}/rb"


# ---- a deployment that fails


class BadStart(Hyperty):
    @override
    async def started(self):
        raise ZeroDivisionError


def left(member):
    """The addresses that anybody listens to still."""
    added, gone = (Counter(fact.key for fact in rows(member, op=op)) for op in (Op.ADD, Op.DEL))
    return set(added - gone)


@pytest.mark.parametrize(
    ("to", "make", "error"),
    [
        (ALLOCATION, Echo, AllocationError),
        ("", BadStart, ZeroDivisionError),
        (REGISTRY, Echo, RegistrationError),
    ],
    ids=["address", "start", "registration"],
)
async def test_a_deployment_that_fails_is_undone_as_far_as_it_came(to, make, error, autojump_clock):
    """HYP-01: listeners, sandbox and address are given back; what was there is untouched."""
    policy = Refusing()
    async with open_domain("ra", "rb", options=DomainOptions(policies={"ra": policy})) as domain:
        one = domain["ra"]
        before, policy.to = left(one), to
        with pytest.raises(error):
            await one.runtime.deploy("failing", make)
        policy.to = ""
        await trio.sleep(1)
        assert left(one) == before
        assert addresses(domain) == 2
        assert (await domain["rb"].ask(one, 1)).code == Code.OK


def addresses(domain):
    """How many addresses the node has given that were not released."""
    reported = [fact for fact in domain.node_tracer.facts if fact.machine == "address"]
    last = {fact.key: fact.new for fact in reported if fact.key.startswith("hyperty:")}
    return len([new for new in last.values() if new != "released"])


async def test_the_record_of_a_hyperty_says_where_it_is_and_how_to_link_to_it(autojump_clock):
    """REG-07."""
    async with open_domain("ra") as domain:
        one = domain["ra"]
        code, value = await record(one, one.address)
    assert (code, value["runtime"], value["status"]) == (200, one.runtime.url, "live")
    assert value["p2pHandler"] == one.runtime.handler
    assert "p2pRequester" in value


async def test_the_record_of_a_runtime_without_links_names_no_stub_for_them(autojump_clock):
    """REG-07, P2P-01."""
    async with open_domain("ra", options=DomainOptions(kinds=())) as domain:
        _, value = await record(domain["ra"], domain["ra"].address)
    assert not {"p2pHandler", "p2pRequester"} & set(value)
