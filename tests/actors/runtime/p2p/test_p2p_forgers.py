"""A peer with a proper link that speaks in the name of others (I-B10, I-D1, S1, S3, T18).

It goes through the whole set-up as any runtime does, and then writes to its end of the link
what its own bus would never let through.
"""

from contextlib import asynccontextmanager
from itertools import count

import attrs
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from actors.runtime.p2p import signalling
from actors.runtime.p2p.link import P2PLink
from fsm.judge.trace_line import read_record
from fsm.judge.verdict import judge_run
from specs.addresses.address import is_below, runtime_of
from specs.limits.p2p import FORGERIES
from specs.limits.protocol import ERROR_WINDOW
from specs.message import Message, MessageType
from specs.trace import Op
from tests.support.chance import examples
from tests.support.runtime.domain import (
    DOMAIN,
    Domain,
    DomainOptions,
    Echo,
    Member,
    go_live,
    in_memory,
    open_domain,
)
from tests.support.trace.trace_files import records, whole
from transports.link import Kind as Carrier
from transports.system import open_system_network

ENDS = ("requester", "handler")
WORLDS = {"memory": (in_memory, Carrier.TCP), "unix sockets": (open_system_network, Carrier.UNIX)}


@pytest.fixture(params=list(WORLDS))
def options(request):
    network, carrier = WORLDS[request.param]
    return DomainOptions(kinds=(carrier,), network=network)


@pytest.fixture
def clock(options, autojump_clock, hasty_clock):
    return autojump_clock if options.network is in_memory else hasty_clock


@pytest.fixture
def ends(monkeypatch):
    """Every end of a link that is in use, with the stub that holds it."""
    made: list[tuple[str, P2PLink]] = []

    def make(proven, context, stub, sender):
        link = P2PLink(proven, context, stub, sender)
        made.append((stub, link))
        return link

    monkeypatch.setattr(signalling, "P2PLink", make)
    return made


@attrs.define
class Attack:
    """Mallory has a link to bob, who observes an object of alice; there is none to alice.

    Attributes:
        end: Mallory's end of the link.
        link: The link, as bob calls it.
        url: The object.
        senders: In whose name mallory has sent what, by number.
    """

    domain: Domain
    end: P2PLink
    link: str
    url: str
    senders: dict[int, str] = attrs.field(factory=dict)
    numbers: count = attrs.field(factory=lambda: count(10**9))

    @property
    def alice(self) -> Member:
        return self.domain["alice"]

    @property
    def bob(self) -> Member:
        return self.domain["bob"]

    @property
    def mallory(self) -> Member:
        return self.domain["mallory"]

    def send(self, kind, from_, to, body=None, number=None):
        """Write a message to the link; return its number."""
        reported = next(self.numbers) if number is None else number
        self.senders[reported] = from_
        assert self.end.send(Message(reported, kind, from_, to, body or {}))
        return reported

    def ends_of(self, number):
        """What bob's bus has done with a message: `deny`, `admit`, `drop`."""
        said = (number, self.senders[number], self.link)
        facts = [one for one in self.bob.tracer.facts if (one.id, one.from_, one.by) == said]
        return [one.op for one in facts if one.op in {Op.DENY, Op.ADMIT}]

    async def is_refused(self, *numbers):
        """Wait until bob's bus has decided on these; whether it let none of them in."""

        async def is_so():
            return all(self.ends_of(number) for number in numbers)

        with trio.fail_after(120):
            await self.bob.tracer.until(is_so)
        return all(self.ends_of(number) == [Op.DENY] for number in numbers)

    def answers(self, number):
        """Which codes bob's bus has answered to the link."""
        facts = self.bob.facts(Op.SYNTH)
        return [one.code for one in facts if one.id == number]

    async def alice_is_reached(self):
        """Whether what bob asks alice is answered by her, and not by this link."""
        heard = len(self.alice.hyperty.heard)
        answer = await self.bob.ask(self.alice, "who is it?")
        return (answer.code, len(self.alice.hyperty.heard)) == (200, heard + 1) and not any(
            is_below(stub, self.mallory.runtime.url) for stub in answer.via
        )

    async def bound(self):
        """What bob's registry takes to live with mallory."""
        remote = self.mallory.runtime.url
        entries = [one for one in await self.bob.runtime.links() if one.remote == remote]
        return {url for one in entries for url in one.entities}

    def findings(self):
        """What the judge of claims on senders says of bob's run."""
        lines = [read_record(line) for line in records(whole(self.bob.tracer.facts))]
        about = {"I-B10", "I-D10"}
        return [one for one in judge_run(lines).findings if one.claim in about]


@asynccontextmanager
async def attack(options, ends, role):
    async with open_domain("alice", "bob", "mallory", options=options) as domain:
        pair = ("mallory", "bob") if role == "requester" else ("bob", "mallory")
        await go_live(domain, *pair)
        bob, mallory = domain["bob"], domain["mallory"]
        (entry,) = [one for one in await bob.runtime.links() if one.remote == mallory.runtime.url]
        mine = [end for stub, end in ends if is_below(stub, mallory.runtime.url)]
        alice = domain["alice"].hyperty
        async with alice.report("comm", {"n": 0}, observers=(bob.address,)) as obj:
            yield Attack(domain, mine[-1], entry.link, obj.url)


each_end = pytest.mark.parametrize("role", ENDS)


@each_end
async def test_one_message_in_the_name_of_another_takes_nothing_over(role, options, ends, clock):
    """I-B10, S1: neither its messages nor its name."""
    async with attack(options, ends, role) as it:
        number = it.send(MessageType.CREATE, it.alice.address, it.bob.address, {"value": "forged"})
        assert await it.is_refused(number)
        assert it.answers(number) == [401]
        assert "forged" not in it.bob.hyperty.heard
        assert await it.alice_is_reached()
        assert it.alice.address not in await it.bound()
        assert (await it.mallory.ask(it.bob, "still mine")).code == 200
        assert it.findings() == []


def names(it):
    """Whom mallory may try to be."""
    own, third = it.bob.runtime.url, it.alice.runtime.url
    return {
        "a hyperty of a third": it.alice.address,
        "part of it": f"{it.alice.address}/part",
        "an object of a third": it.url,
        "its subscription": f"{it.url}/subscription",
        "a third runtime": third,
        "its registry": f"{third}/registry",
        "its sync manager": f"{third}/sm",
        "the victim's hyperty": it.bob.address,
        "the victim's registry": f"{own}/registry",
        "the victim's sync manager": f"{own}/sm",
        "the link itself": it.link,
        "the victim's handler": f"{own}/p2phandler/1",
        "the node's paths": f"domain://msg-node.{DOMAIN}/sm",
        "the domain's registry": f"domain://registry.{DOMAIN}",
        "the global registry": "global://registry",
        "nobody": f"hyperty://{DOMAIN}/nobody",
        "somebody elsewhere": "hyperty://b.example/nobody",
        "a connection": f"connection://{DOMAIN}/1",
    }


@each_end
@pytest.mark.parametrize("kind", [MessageType.CREATE, MessageType.UPDATE, MessageType.RESPONSE])
async def test_a_forged_sender_over_a_link_is_refused(kind, role, options, ends, clock):
    """SEC-01, SEC-21, I-B10, S1: requests, events and answers, from every kind of address."""
    async with attack(options, ends, role) as it:
        for part in (list(names(it).values())[:9], list(names(it).values())[9:]):
            sent = []
            for from_ in part:
                to = f"{from_}/changes" if kind is MessageType.UPDATE else it.bob.address
                body = {"code": 200} if kind is MessageType.RESPONSE else {"value": "forged"}
                sent.append(it.send(kind, from_, to, body))
            assert await it.is_refused(*sent)
            if part[0] == it.alice.address:
                assert await it.mallory.status(it.bob) == "live"
        assert "forged" not in it.bob.hyperty.heard
        assert await it.alice_is_reached()
        assert it.findings() == []


@each_end
async def test_a_repeatedly_forging_peer_loses_its_link(role, options, ends, clock):
    """S1: and is reached by the node, as before."""
    async with attack(options, ends, role) as it:
        for _ in range(FORGERIES):
            it.send(MessageType.CREATE, it.alice.address, it.bob.address, {"value": "forged"})
        await it.bob.wait_for(None, it.mallory)
        await it.mallory.wait_for(None, it.bob)
        assert "forged" not in it.bob.hyperty.heard
        assert (await it.bob.ask(it.mallory, "by the node")).code == 200
        assert await it.alice_is_reached()


@each_end
async def test_a_forging_peer_is_linked_to_again_only_after_a_while(role, ends, autojump_clock):
    """S1: what it said of its addresses leads nowhere, and a new link has to wait, whoever asks."""
    async with attack(DomainOptions(kinds=(Carrier.TCP,)), ends, role) as it:
        await it.bob.ask(it.mallory, "by the link")
        assert it.mallory.address in await it.bound()
        for _ in range(FORGERIES):
            it.send(MessageType.CREATE, it.alice.address, it.bob.address, {"value": "forged"})
        await it.bob.wait_for(None, it.mallory)
        ended = trio.current_time()
        await it.mallory.wait_for(None, it.bob)
        while trio.current_time() < ended + ERROR_WINDOW - 3:
            assert (await it.bob.ask(it.mallory, "by the node")).code == 200
            # It dials, too: its invitations are refused.
            assert (await it.mallory.ask(it.bob, "by the node")).code == 200
            await trio.sleep(1)
            assert await it.bob.status(it.mallory) is None
            assert await it.bound() == set()
        await trio.sleep(4)
        await it.bob.ask(it.mallory, "by a new link")
        await it.bob.wait_for("live", it.mallory)


@each_end
async def test_a_forged_answer_ends_no_request(role, options, ends, clock):
    """I-T1, I-B10: also if its number is known."""
    async with attack(options, ends, role) as it:
        context = it.bob.hyperty._participant
        number = context.ids.next(it.bob.address) + 1
        gate = trio.Event()
        answers = []

        async def held_back(message):
            await gate.wait()
            return "alice herself"

        it.alice.hyperty.on_request = held_back

        async def ask():
            answers.append(await it.bob.ask(it.alice, "who is it?"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)

            async def is_asked():
                sent = [one for one in it.bob.facts(Op.SUBMIT) if one.to == it.alice.address]
                return any(one.id == number for one in sent)

            with trio.fail_after(60):
                await it.bob.tracer.until(is_asked)
            forged = {"code": 200, "value": "mallory"}
            it.send(MessageType.RESPONSE, it.alice.address, it.bob.address, forged, number)
            assert await it.is_refused(number)
            gate.set()
        assert [one.body.get("value") for one in answers] == ["alice herself"]


@each_end
async def test_changes_of_a_foreign_object_reach_no_copy(role, options, ends, clock):
    """I-D1."""
    async with attack(options, ends, role) as it, it.bob.hyperty.observe(it.url) as copy:
        change = {"version": 2, "attribute": "n", "value": 666}
        number = it.send(MessageType.UPDATE, it.url, f"{it.url}/changes", change)
        assert await it.is_refused(number)
        assert (copy.value, copy.version) == ({"n": 0}, 1)


@each_end
async def test_announced_foreign_addresses_are_not_bound(role, options, ends, clock):
    """T18, I-R8: by its own registry, whose word it may give."""
    async with attack(options, ends, role) as it:
        registry = f"{it.mallory.runtime.url}/registry"
        value = [it.alice.address, it.bob.address, it.url, it.alice.runtime.url]
        body = {"value": value, "operation": "add", "attributeType": "array"}
        it.send(MessageType.UPDATE, registry, f"{registry}/changes", body)
        number = it.send(MessageType.CREATE, it.alice.address, it.bob.address, {"value": "forged"})
        assert await it.is_refused(number)
        assert await it.alice_is_reached()
        assert await it.bound() & set(value) == set()


@each_end
async def test_no_link_to_a_third_is_set_up_or_ended_at_a_peers_word(role, options, ends, clock):
    """P2P-29, I-B10: what it says to stubs over its link is refused, in its own name, too."""
    async with attack(options, ends, role) as it:
        await it.alice.ask(it.bob, "first")
        await it.bob.wait_for("live", it.alice)
        mine, third = it.mallory.runtime.url, it.alice.runtime.url
        handler = f"{it.bob.runtime.url}/p2phandler/1"
        invitation = {"source": f"{third}/p2prequester/9", "value": {"runtime": third}}
        order = {"method": "disconnect", "params": [third]}
        sent = [
            it.send(MessageType.CREATE, f"{mine}/x/subscription", handler, invitation),
            it.send(MessageType.EXECUTE, f"{mine}/registry", handler, order),
            it.send(MessageType.EXECUTE, it.mallory.address, handler, order),
        ]

        def codes():
            said = [*it.bob.facts(Op.SUBMIT), *it.bob.facts(Op.SYNTH)]
            return {one.id: one.code for one in said if one.from_ == handler and one.id in sent}

        async def are_answered():
            return len(codes()) == len(sent)

        with trio.fail_after(60):
            await it.bob.tracer.until(are_answered)
        assert set(codes().values()) == {403}
        assert await it.bob.status(it.alice) == "live"


async def test_a_new_hyperty_of_the_peer_is_accepted_once_it_is_registered(options, ends, clock):
    """I-B10: the proof is read when it first speaks."""
    async with attack(options, ends, "requester") as it:
        second = await it.mallory.runtime.deploy("second", type(it.bob.hyperty))
        assert it.send(MessageType.CREATE, second, it.bob.address, {"value": "mine"})

        async def is_heard():
            return "mine" in it.bob.hyperty.heard

        with trio.fail_after(60):
            await it.bob.tracer.until(is_heard)


@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_only_senders_of_the_peer_are_accepted_in_any_spelling(data, monkeypatch):
    """I-B10, I-D1, S1: all types of messages, kinds of addresses, both ends."""
    role = data.draw(st.sampled_from(ENDS))
    kinds = st.sampled_from([one for one in MessageType if one is not MessageType.RESPONSE])
    draws = data.draw(st.lists(st.tuples(kinds, st.integers(0, 40), st.integers(0, 6)), max_size=9))
    made: list[tuple[str, P2PLink]] = []

    def make(proven, context, stub, sender):
        made.append((stub, link := P2PLink(proven, context, stub, sender)))
        return link

    monkeypatch.setattr(signalling, "P2PLink", make)

    async def main():
        async with attack(DomainOptions(), made, role) as it:
            mine = it.mallory.runtime.url
            own = [it.mallory.address, mine, f"{mine}/registry", f"{mine}/sm"]
            others = [*names(it).values()]
            sent = {}
            for kind, who, to in draws:
                from_ = [*others, *own][who % (len(others) + len(own))]
                targets = [
                    it.bob.address, it.url, f"{it.url}/changes", f"{from_}/changes",
                    f"{from_}/status", f"{it.bob.runtime.url}/registry", it.bob.runtime.url,
                ]  # fmt: skip
                sent[it.send(kind, from_, targets[to])] = from_
            await trio.sleep(20)
            for number, from_ in sent.items():
                is_theirs = from_ == it.mallory.address or runtime_of(from_) == mine
                assert is_theirs or Op.ADMIT not in it.ends_of(number)
            assert it.findings() == []
            assert await it.alice_is_reached()

    trio.run(main, clock=MockClock(autojump_threshold=0))


def children_of(url):
    return f"{url}/children/resources"


async def decided(it, *numbers):
    """Wait for what bob's runtime has answered to the link, or why it dropped it, by number."""
    found = {}

    async def is_so():
        for one in it.bob.tracer.facts:
            is_answer = one.op in {Op.SUBMIT, Op.SYNTH} and one.type == "response"
            if one.id in numbers and is_answer:
                found[one.id] = one.code
            elif one.id in numbers and one.op is Op.DROP:
                found.setdefault(one.id, str(one.reason))
        return len(found) == len(set(numbers))

    with trio.fail_after(60):
        await it.bob.tracer.until(is_so)
    return [found[number] for number in numbers]


async def shows(children, wanted):
    with trio.fail_after(60):
        await trio.lowlevel.checkpoint()
        while [child.value for child in children.values()] != wanted:
            assert await children.wait_for_change()


@asynccontextmanager
async def beside(it, thing):
    """Let one more hyperty in bob's runtime observe what he reports."""
    echo = Echo()
    await thing.allow(await it.bob.runtime.deploy("beside", lambda: echo))
    async with echo.observe(thing.url) as copy:
        yield copy


@each_end
async def test_no_child_of_a_foreign_object_is_shown_at_a_peers_word(role, options, ends, clock):
    """SEC-24, I-D10: neither as its object, nor as a creator, nor as itself."""
    async with attack(options, ends, role) as it, it.bob.hyperty.observe(it.url) as copy:
        mine = await copy.children.create("mine")
        to, me, her = children_of(it.url), it.mallory.address, it.alice.address
        report = {"resource": f"{her}#1", "value": "forged", "version": 10**8}
        other = {**report, "resource": mine.id}
        refused = [
            it.send(MessageType.UPDATE, it.url, to, report),
            it.send(MessageType.UPDATE, it.url, to, other),
            it.send(MessageType.DELETE, it.url, to, {"resource": mine.id, "version": 10**8}),
            it.send(MessageType.UPDATE, it.url, to, {"count": 0, "digest": "0" * 16}),
            it.send(MessageType.CREATE, her, to, {"resource": f"{her}#1", "value": "forged"}),
        ]
        assert await it.is_refused(*refused)
        named = {"resource": f"{me}#1", "value": "forged"}
        assert await decided(it, it.send(MessageType.CREATE, me, to, named)) == [503]
        await it.bob.ask(it.mallory, "are you done?")
        assert [child.value for child in copy.children.values()] == ["mine"]
        assert it.findings() == []


@each_end
async def test_a_peer_that_does_not_observe_writes_no_child(role, options, ends, clock):
    """SEC-24, I-D10, I-B10: nor one of an observer, in whomever's name."""
    async with (
        attack(options, ends, role) as it,
        it.bob.hyperty.report("comm", {}, observers=(it.alice.address,)) as thing,
        it.alice.hyperty.observe(thing.url) as copy,
        beside(it, thing) as near,
    ):
        hers = await copy.children.create("hers")
        to, me, her = children_of(thing.url), it.mallory.address, it.alice.address
        forged = {"resource": f"{me}#1", "value": "forged"}
        answered = [
            it.send(MessageType.CREATE, me, to, forged),
            it.send(MessageType.CREATE, me, to, {**forged, "resource": f"{her}#{10**9}"}),
            it.send(MessageType.UPDATE, me, to, {**forged, "resource": hers.id}),
            it.send(MessageType.DELETE, me, to, {"resource": hers.id}),
            it.send(MessageType.UPDATE, me, to, forged),
            it.send(MessageType.READ, me, to, {}),
            it.send(MessageType.CREATE, me, f"{thing.url}0/children/resources", forged),
        ]
        drop = "denied"
        assert await decided(it, *answered) == [403, 403, drop, drop, drop, 403, 503]
        impostor = [
            it.send(MessageType.DELETE, her, to, {"resource": hers.id}),
            it.send(MessageType.UPDATE, thing.url, to, {"resource": hers.id, "value": "forged"}),
        ]
        assert await it.is_refused(*impostor)
        await copy.children.create("more")
        for children in (thing.children, copy.children, near.children):
            await shows(children, ["hers", "more"])
        given = [one for one in it.bob.facts(Op.DELIVER) if one.id in answered]
        asked = {one.listener for one in given if one.type != MessageType.RESPONSE}
        assert asked == {"sync-manager"}
        assert it.findings() == []


@each_end
async def test_an_observing_peer_writes_its_own_children_only_and_once(role, options, ends, clock):
    """SEC-24, I-D10, I-P22: a replay is late, a number counts once, who is expelled is out."""
    async with attack(options, ends, role) as it:
        me, her = it.mallory.address, it.alice.address
        async with (
            it.bob.hyperty.report("comm", {}, observers=(her, me)) as thing,
            it.alice.hyperty.observe(thing.url) as copy,
            it.mallory.hyperty.observe(thing.url),
        ):
            hers = await copy.children.create("hers")
            to, body = children_of(thing.url), {"resource": f"{me}#5", "value": "first"}
            made = it.send(MessageType.CREATE, me, to, body)
            assert await decided(it, made) == [200]
            changed = it.send(MessageType.UPDATE, me, to, {**body, "value": "second"})
            for children in (thing.children, copy.children):
                await shows(children, ["hers", "second"])
            again = {**body, "resource": f"{me}#4"}
            assert await decided(
                it,
                it.send(MessageType.CREATE, me, to, again),
                it.send(MessageType.CREATE, me, to, {**body, "resource": hers.id}),
                it.send(MessageType.DELETE, me, to, {"resource": hers.id}),
                it.send(MessageType.CREATE, me, to, {**again, "value": "x" * 9000}),
            ) == [409, 403, "denied", 409]
            it.send(MessageType.CREATE, me, to, body, made)
            it.send(MessageType.UPDATE, me, to, {**body, "value": "replayed"}, changed)
            it.send(MessageType.DELETE, me, to, {"resource": body["resource"]}, made + 1)
            large = {"resource": f"{me}#6", "value": "x" * 9000}
            assert await decided(it, it.send(MessageType.CREATE, me, to, large)) == [413]
            await thing.expel(me)
            late = [
                it.send(MessageType.CREATE, me, to, {**body, "resource": f"{me}#7"}),
                it.send(MessageType.DELETE, me, to, {"resource": body["resource"]}),
            ]
            assert await decided(it, *late) == [403, "denied"]
            await copy.children.create("more")
            for children in (thing.children, copy.children):
                await shows(children, ["hers", "second", "more"])
            assert it.findings() == []
