"""A request that is given up: the handler of its receiver is cancelled, wherever it is."""

import math
from contextlib import AsyncExitStack

import attrs
import pytest
import trio

import actors
from actors.hyperties import Caller
from actors.kit.counters import Tally
from actors.testing.chaos.toxics import Latency
from fsm.effects import intent_of
from specs.limits.bus import CONCURRENT
from specs.limits.protocol import BODY_BYTES, REPLY_TIMEOUT
from specs.message import GIVEN_UP, Message, MessageType, key_given_up
from specs.reply_code import DropReason
from specs.trace import Kind, Op
from tests.actors.runtime.hyperty.patient import Patient, Stubborn
from tests.support.runtime.domain import DomainOptions, go_live, open_domain

WAYS = {
    "within a runtime": ("ra", ()),
    "by a node": ("rb", ()),
    "by a link": ("rb", (actors.Kind.TCP,)),
}


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


async def until(holds):
    with trio.fail_after(60):
        while not holds():  # noqa: ASYNC110 - as a program would
            await trio.sleep(0.01)  # real time: a process may be asked


async def pair(domain, way, made=Patient):
    """A caller, and a worker that it can reach; a link between them is live."""
    receiver, kinds = way
    worker = made()
    caller = await domain["ra"].deploy(Caller)
    url = (await domain[receiver].deploy(lambda: worker, "worker")).url
    assert (await caller.request(url, 0)).code == 200
    if kinds:
        await until_live(domain)
    worker.ends.clear()
    return caller, worker, url


async def until_live(domain):
    with trio.fail_after(60):
        while [link.status for link in await domain["ra"].links()] != ["live"]:  # noqa: ASYNC110
            await trio.sleep(0.1)


async def give_up_after(seconds, request, *args, **options):
    with trio.move_on_after(seconds) as scope:
        await request(*args, **options)
    assert scope.cancelled_caught


async def test_a_cancelled_requester_cancels_the_handler(
    way, protofly_domain, protofly_trace, autojump_clock
):
    """MSG-19."""
    async with protofly_domain("ra", "rb", kinds=way[1]) as domain:
        caller, worker, url = await pair(domain, way)
        begun = trio.current_time()
        for request in (caller.request, caller.insist):
            await give_up_after(1, request, url, 300)
            await until(lambda: worker.ends)
            assert worker.ends == ["cancelled"]
            worker.ends.clear()
        await give_up_after(1, caller.request, url, 300, answer_within=500)
        await until(lambda: worker.ends)
        await give_up_after(1, caller.request_each, [url], 300)
        await until(lambda: len(worker.ends) == 2)
        assert worker.ends == ["cancelled"] * 2
        assert trio.current_time() - begun < 10
        # The cancelled attempt is not repeated, and the next request is served as ever.
        await trio.sleep(3 * REPLY_TIMEOUT)
        assert worker.begun == 5
        assert (await caller.request(url, 0)).value == "done"
    protofly_trace.assert_conformant()


async def test_a_handler_ends_when_the_time_of_its_request_is_over(
    way, protofly_domain, protofly_trace, autojump_clock
):
    async with protofly_domain("ra", "rb", kinds=way[1]) as domain:
        caller, worker, url = await pair(domain, way)
        assert (await caller.request(url, 300)).code == 408
        await until(lambda: worker.ends)
        assert (await caller.request(url, 300, answer_within=2)).code == 408
        await until(lambda: len(worker.ends) == 2)
        assert worker.ends == ["cancelled"] * 2
    protofly_trace.assert_conformant()


async def test_a_request_in_chunks_is_given_up(
    way, protofly_domain, protofly_trace, autojump_clock
):
    class Reader(Patient):
        async def on_request(self, message):
            return await self.work(300 if message.value else 0)

    async with protofly_domain("ra", "rb", kinds=way[1]) as domain:
        caller, worker, url = await pair(domain, way, Reader)
        await give_up_after(5, caller.request, url, ["x" * 1000] * (BODY_BYTES // 900))
        await until(lambda: worker.ends)
        assert worker.ends == ["cancelled"]
    protofly_trace.assert_conformant()


@pytest.mark.parametrize(("made", "verb"), [(Patient, "execute"), (Stubborn, "create")])
async def test_a_shielded_handler_goes_on(
    made, verb, way, protofly_domain, protofly_trace, autojump_clock
):
    async with protofly_domain("ra", "rb", kinds=way[1]) as domain:
        caller, worker, url = await pair(domain, way, made)
        await give_up_after(1, caller.request, url, 20, verb)
        assert (await caller.request(url, 20, verb)).code == 408
        assert (await caller.request(url, 20, verb, answer_within=5)).code == 408
        await trio.sleep(30)
        assert worker.ends == ["done"] * 3
    protofly_trace.assert_conformant()


async def test_a_request_that_waits_for_others_never_begins(
    protofly_domain, protofly_trace, autojump_clock
):
    async with protofly_domain("ra", "rb") as domain:
        caller, worker, url = await pair(domain, WAYS["by a node"])
        async with trio.open_nursery() as nursery:
            for _ in range(CONCURRENT // 2):
                nursery.start_soon(caller.request, url, 5)
            await until(lambda: worker.begun == 1 + CONCURRENT // 2)
            await give_up_after(1, caller.request, url, 7)
        await trio.sleep(20)
        assert worker.begun == 1 + CONCURRENT // 2
        assert worker.ends == ["done"] * (CONCURRENT // 2)
    protofly_trace.assert_conformant()


@pytest.mark.parametrize("work", [0.1, 0.3, 0.5, 0.7, 0.9])
async def test_an_answer_may_cross_the_message_that_gives_it_up(
    work, protofly_domain, protofly_chaos, protofly_trace, autojump_clock
):
    async with protofly_domain("ra", "rb") as domain:
        caller, worker, url = await pair(domain, WAYS["by a node"])
        with protofly_chaos.toxic(Latency(0.2), ("ra", "a.example")):
            await give_up_after(0.5, caller.request, url, work)
            await trio.sleep(5)
        assert worker.ends == ["cancelled" if work > 0.6 else "done"]
        assert (await caller.request(url, 0)).code == 200
    protofly_trace.assert_conformant()


async def test_requesters_and_receivers_in_processes(protofly_trace):
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(actors.open_node("a.example"))
        tracer = stack.enter_context(protofly_trace.process("ra"))
        ra = await stack.enter_async_context(
            actors.open_runtime("a.example", "ra", node=node.url, trace=tracer)
        )
        caller = await ra.deploy(Caller)
        apart, here = Patient(), await ra.deploy_apart(Patient)
        url = (await ra.deploy(lambda: apart, "here")).url
        # The receiver is in a process.
        await give_up_after(0.2, caller.request, here.url, 300)
        await give_up_after(0.2, caller.request, here.url, 0.5, "execute")
        with trio.fail_after(20):
            while len(ends := (await caller.request(here.url, None, "read")).value) < 2:  # noqa: ASYNC110
                await trio.sleep(0.05)  # real time: a process is asked
        assert ends == ["cancelled", "done"]
        # The requester is.
        order = {"to": url, "seconds": 300, "wait": 0.2}
        assert (await caller.request(here.url, order, "update")).code == 200
        await until(lambda: apart.ends)
        # At once: the message that gives up follows the request in the pipe.
        assert (await caller.request(here.url, {**order, "wait": 0}, "update")).code == 200
        assert (await caller.request(here.url, order, "update")).code == 200
        await until(lambda: len(apart.ends) > 1)
        assert set(apart.ends) == {"cancelled"}
    protofly_trace.assert_conformant(untraced=["a.example"])


# ---- who may give up a request


def giving_up(member, to, request, *, from_=None):
    """A message that gives up a request, as a hyperty would send it."""
    number = member.hyperty._participant.ids.next(member.address)
    body = {GIVEN_UP: request}
    return Message(number, MessageType.CREATE, from_ or member.address, f"{to}/events", body)


async def post(member, message):
    await member.hyperty._participant.port.post(message)


def send_unchecked(member, message):
    """Send a message as a runtime would that obeys nothing."""
    member.runtime.bus.outbound.send(message, intent_of(message), trio.current_time())


@pytest.mark.parametrize("kinds", [(), DomainOptions().kinds])
async def test_nobody_gives_up_requests_of_others(kinds, autojump_clock):
    names, options = ("alice", "bob", "mallory"), DomainOptions(kinds=kinds)
    async with open_domain(*names, options=options) as domain:
        alice, bob, mallory = (domain[name] for name in names)
        if kinds:
            await go_live(domain, "alice", "bob")
            await go_live(domain, "mallory", "bob")
        worker = Patient()
        url = await bob.runtime.deploy("worker", lambda: worker)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(alice.hyperty.request, url, 10)
            await until(lambda: worker.begun)
            number = max(fact.id for fact in alice.facts(Op.SUBMIT) if fact.to == url)
            # With its own address, and with that of the requester.
            forged = giving_up(mallory, url, number, from_=alice.address)
            await post(mallory, forged)
            assert mallory.runtime.counters.drops == {DropReason.UNKNOWN_SOURCE: 1}
            send_unchecked(mallory, forged)
            send_unchecked(mallory, giving_up(mallory, url, number))
            await trio.sleep(5)
            came = [fact.from_ for fact in bob.facts(Op.DELIVER) if fact.to == f"{url}/events"]
            assert set(came) == {mallory.address}
            assert worker.ends == []
        assert worker.ends == ["done"]
        for member in (alice, bob):
            assert member.runtime.counters.tallies[Tally.GIVEN_UP].total() == 0


async def test_a_request_is_counted_and_traced_at_both_ends(autojump_clock):
    async with open_domain("alice", "bob", options=DomainOptions(kinds=())) as domain:
        alice, bob = domain["alice"], domain["bob"]
        url = await bob.runtime.deploy("worker", Patient)
        await give_up_after(1, alice.hyperty.request, url, 300)
        await trio.sleep(1)
        for member in (alice, bob):
            assert member.runtime.counters.tallies[Tally.GIVEN_UP].total() == 1
            steps = [step.cause for step in member.facts(Op.STEP, Kind.STATE)]
            assert steps.count("given-up") == 1
            assert member.runtime.bus.answers.deadline() == math.inf


async def test_what_was_not_sent_is_not_given_up(autojump_clock):
    async with open_domain("alice", "bob", options=DomainOptions(kinds=())) as domain:
        alice, bob = domain["alice"], domain["bob"]
        with trio.CancelScope() as scope:
            scope.cancel()
            await alice.hyperty.request(bob.address, 1)
        # Nor is what is answered.
        await alice.ask(bob, 1)
        number = max(fact.id for fact in alice.facts(Op.SUBMIT) if fact.to == bob.address)
        await post(alice, giving_up(alice, bob.address, number))
        await trio.sleep(1)
        assert not [fact for fact in alice.facts(Op.XMIT) if fact.to == f"{bob.address}/events"]


async def test_a_request_that_comes_after_the_message_that_gives_it_up(autojump_clock):
    """Both may travel by different paths."""
    async with open_domain("alice", "bob", options=DomainOptions(kinds=())) as domain:
        alice, bob = domain["alice"], domain["bob"]
        worker = Patient()
        url = await bob.runtime.deploy("worker", lambda: worker)
        number = alice.hyperty._participant.ids.next(alice.address)
        body = {GIVEN_UP: number + 1}
        early = Message(number, MessageType.CREATE, alice.address, f"{url}/events", body)
        bob.runtime.bus.deliver(early, url, trio.current_time())
        assert (await alice.hyperty.request(url, 1)).code == 408
        assert (await alice.hyperty.request(url, 1)).code == 200
        assert worker.begun == 1
        # A shielded handler runs, whichever of the two comes first.
        number = alice.hyperty._participant.ids.next(alice.address)
        early = Message(number, MessageType.CREATE, alice.address, f"{url}/events", body)
        early = attrs.evolve(early, body={GIVEN_UP: number + 1})
        bob.runtime.bus.deliver(early, url, trio.current_time())
        assert (await alice.hyperty.request(url, 1, "execute")).code == 200


@pytest.mark.parametrize("number", [None, True, "5", 5.0, [5], {"id": 5}])
async def test_malformed_messages_are_events_of_the_application(number):
    body = {GIVEN_UP: number}
    event = Message(1, MessageType.CREATE, "hyperty://a.ex/1", "hyperty://a.ex/2/events", body)
    assert key_given_up(event) is None


@pytest.mark.parametrize(
    ("type_", "to"),
    [("create", "hyperty://a.ex/2"), ("update", "hyperty://a.ex/2/events"), ("create", "x://a/b")],
)
def test_other_messages_give_up_nothing(type_, to):
    event = Message(1, MessageType(type_), "hyperty://a.ex/1", to, {GIVEN_UP: 5})
    assert key_given_up(event) is None
