"""What P2P stubs answer to whoever writes to them, alone with a bus (STB-06, M-05..12)."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import attrs
import pytest
import trio

from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Delivery
from actors.kit.supervision.supervisor import ChildSpec, open_supervisor
from actors.runtime.link_guard import LinkGuard, Scope
from actors.runtime.p2p.link import P2PLink
from actors.runtime.p2p.stub import P2PHandler, P2PRequester, link_stub
from actors.runtime.stubs.stub import StubConfig, StubContext
from actors.runtime.stubs.wire import StubOptionError
from fsm.p2p.link_end import Opening, negotiation_of
from specs.bodies.object import Candidate, ConnectionData
from specs.limits.p2p import HANDLED_OF_DOMAIN
from specs.message import Message, MessageType
from specs.reply_code import Code
from specs.trace import Op
from tests.support.runtime.p2p_bus import KeepingPort
from tests.support.trace.memory import MemoryTracer
from transports.bodies import write_body
from transports.errors import LinkClosedError
from transports.link import Kind
from transports.memory import MemoryNetwork

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
PQ, PH = f"{RA}/p2prequester/1", f"{RB}/p2phandler/1"
PEER = LinkGuard()
C1, C2 = "connection://a.ex/c1", "connection://b.ex/c2"
EXECUTE, CREATE, UPDATE = MessageType.EXECUTE, MessageType.CREATE, MessageType.UPDATE


def context(url, config):
    return StubContext(
        url,
        KeepingPort(url),
        config,
        MemoryNetwork(),
        MemoryTracer(),
        IdSource(),
        bytes,
        Counters(),
    )


class Stub:
    """A stub that runs, its port, and the words to it."""

    def __init__(self, ref, reported):
        self.ref = ref
        self.context = reported
        self.port = reported.bus
        self.ids = IdSource(100)

    async def tell(self, type_, from_, to, **body):
        """Deliver a message, wait until it is worked off, return what was posted for it."""
        before = len(self.port.posted)
        message = Message(self.ids.next(from_), type_, from_, to, body)
        await self.ref.tell(Delivery(message, to))
        await trio.testing.wait_all_tasks_blocked()
        return self.port.posted[before:]

    async def answer(self, code, **body):
        """Answer the last request that was posted."""
        request = next(m for m in reversed(self.port.posted) if m.is_request)
        answer = Message(
            request.id, MessageType.RESPONSE, request.to, request.from_, {"code": code, **body}
        )
        before = len(self.port.posted)
        await self.ref.tell(Delivery(answer, answer.to))
        await trio.testing.wait_all_tasks_blocked()
        return self.port.posted[before:]


@asynccontextmanager
async def running(activate, reported):
    async with open_supervisor("test") as supervisor:
        ref = await supervisor.start_child(ChildSpec(reported.url, lambda: activate(reported)))
        await trio.testing.wait_all_tasks_blocked()
        yield Stub(ref, reported)


def requester_context():
    config = StubConfig(RA, "a.ex", remote_runtime=RB, p2p_handler=PH, kinds=(Kind.TCP,))
    return context(PQ, config)


def requester():
    return running(P2PRequester, requester_context())


def handler():
    return running(P2PHandler, context(PH, StubConfig(RB, "b.ex", kinds=(Kind.TCP,))))


def data(status="", *candidates):
    """What C2 holds, signed by its runtime for the offer in C1."""
    listed = tuple(Candidate(**one) for one in candidates)
    bond = Scope(signer=RB, reader=RA, object=C2, answers=C1, negotiation=negotiation_of(status))
    held = ConnectionData(PH, status, None, listed)
    return write_body(attrs.evolve(held, security=PEER.sign(held, bond)))


def value(version, held):
    return {"reporter": PH, "runtime": RB, "url": C2, "version": version, "data": held}


async def invite_requester(stub):
    """Bring a requester so far that it observes C2."""
    await stub.answer(200, resource=C1)
    await stub.tell(CREATE, f"{C2}/subscription", PQ, source=PH, schema="s", value={})


def codes(messages):
    return [message.code for message in messages if message.is_response]


async def test_a_requester_takes_no_answer_object_from_outsiders(autojump_clock):
    async with requester() as stub:
        await stub.answer(200, resource=C1)
        posted = await stub.tell(
            CREATE, f"{C2}/subscription", PQ, source=f"{RA}/p2phandler/9", schema="s", value={}
        )
        assert codes(posted) == [403]


async def test_a_malformed_change_is_let_be_and_a_malformed_object_ends_the_set_up(autojump_clock):
    async with requester() as stub:
        await invite_requester(stub)
        await stub.answer(200, value=value(1, data()))
        assert await stub.tell(UPDATE, C2, f"{C2}/changes", version="x") == []
        posted = await stub.tell(
            UPDATE, C2, f"{C2}/changes", version=2, attribute="candidates", value=[{"kind": 1}]
        )
        assert posted[0].body["value"] == "failed"


async def test_a_snapshot_that_is_none_ends_the_set_up(autojump_clock):
    async with requester() as stub:
        await invite_requester(stub)
        posted = await stub.answer(200, value="nothing")
        assert posted[0].body["value"] == "failed"


async def test_a_deleted_peer_object_ends_the_set_up(autojump_clock):
    async with requester() as stub:
        await invite_requester(stub)
        await stub.answer(200, value=value(1, data()))
        stranger = "connection://b.ex/other/subscription"
        assert await stub.tell(MessageType.DELETE, stranger, f"{C2}/changes") == []
        posted = await stub.tell(MessageType.DELETE, f"{C2}/subscription", f"{C2}/changes")
        assert posted[0].body["value"] == "failed"
        assert [m.type for m in posted[1:]] == [MessageType.DELETE]


async def test_a_set_up_that_has_ended_leaves_nothing_watched(autojump_clock):
    made = P2PRequester(requester_context())
    async with running(lambda _: made, made.context) as stub:
        await invite_requester(stub)
        await stub.answer(200, value=value(1, data()))
        assert [*made.watched] == [f"{C2}/changes"]
        await stub.tell(MessageType.DELETE, f"{C2}/subscription", f"{C2}/changes")
        assert made.watched == {}


async def test_a_request_by_a_full_link_is_refused():
    stub = P2PRequester(requester_context())
    link = P2PLink(("link", None), stub.context, PQ, None)
    while link.send(Message(1, CREATE, "hyperty://a.ex/1", "hyperty://b.ex/1")):
        pass
    stub.ends[PQ] = SimpleNamespace(link=link)
    await stub.handle(Delivery(Message(1, CREATE, "hyperty://a.ex/1", "hyperty://b.ex/1"), PQ))
    assert codes(stub.context.bus.posted) == [Code.UNAVAILABLE]


def test_a_profile_that_leaves_a_stub_no_transport_makes_none():
    make = link_stub("p2p-requester", {"kinds": ["webrtc"]})
    with pytest.raises(StubOptionError, match="uses none"):
        make(requester_context())


async def test_messages_that_crossed_the_stub_before_are_dropped(autojump_clock):
    async with requester() as stub:
        await stub.tell(CREATE, "hyperty://a.ex/1", "hyperty://b.ex/1", via=[PQ])
        assert stub.port.handed_back == []
        assert [f.reason for f in stub.context.tracer.facts if f.op is Op.DROP] == ["loop"]


# --- the handler --------------------------------------------------------------------------


def invitation(runtime=RA, source=PQ):
    return {"source": source, "schema": "s", "value": {"runtime": runtime, "reporter": source}}


async def test_a_handler_reports_its_registry_before_it_asks_it(autojump_clock):
    """P2P-09."""
    async with handler() as stub:
        posted = await stub.tell(CREATE, f"{C1}/subscription", PH, **invitation())
        assert [(m.type, m.to) for m in posted] == [
            (CREATE, f"{PH}/status"),
            (MessageType.READ, f"{RB}/registry"),
        ]
        assert posted[0].body["link"] == f"{PH}/conn/1"


@pytest.mark.parametrize("status", ["in-progress", "failed"])
async def test_a_handler_of_the_smaller_runtime_insists_on_its_own_request(status, autojump_clock):
    larger = "hyperty-runtime://c.ex/rc"
    async with handler() as stub:
        asked = invitation(larger, f"{larger}/p2prequester/1")
        await stub.tell(CREATE, f"{C1}/subscription", PH, **asked)
        posted = await stub.answer(200, value={"role": "requester", "status": status})
        if status == "failed":
            assert codes(posted) == [200]
            return
        assert codes(posted) == [409]
        assert "simultaneous open" in posted[0].body["description"]


async def test_the_same_requester_again_gets_a_new_link_and_the_old_one_is_closed(autojump_clock):
    """P2P-19, I-P8."""
    async with handler() as stub:
        await stub.tell(CREATE, f"{C1}/subscription", PH, **invitation())
        posted = await stub.tell(CREATE, "connection://a.ex/c9/subscription", PH, **invitation())
        reported = [(m.body["value"], m.body["link"][-1]) for m in posted if m.is_event]
        assert reported == [("failed", "1"), ("created", "2")]
        assert codes(posted) == [409]
        steps = [(step.key[-1], step.new) for step in controllers(stub)]
        assert steps == [("1", "observing"), ("1", "closed"), ("2", "observing")]


def controllers(stub):
    """The steps of the controllers of a handler."""
    facts = stub.context.tracer.facts
    return [fact for fact in facts if fact.machine == "handler_controller"]


async def invited_by(stub, runtime):
    """Invite a handler in the name of a runtime; return how that is answered at once."""
    posted = await stub.tell(
        CREATE, f"{C1}/subscription", PH, **invitation(runtime, f"{runtime}/p2prequester/1")
    )
    return codes(posted)[-1:]


async def test_one_domain_does_not_take_all_links_there_are(autojump_clock):
    """T11."""
    async with handler() as stub:
        many = [f"hyperty-runtime://c.ex/r{number}" for number in range(HANDLED_OF_DOMAIN)]
        assert {tuple(await invited_by(stub, one)) for one in many} == {()}
        assert await invited_by(stub, "hyperty-runtime://c.ex/one-more") == [Code.UNAVAILABLE]
        assert await invited_by(stub, "hyperty-runtime://d.ex/other") == []


@pytest.mark.parametrize(
    ("type_", "body", "code"),
    [
        (EXECUTE, {"method": "dance"}, 400),
        (EXECUTE, {"method": "disconnect", "params": [RA]}, 200),
        (EXECUTE, {"method": "disconnect"}, 200),
        (MessageType.READ, {}, 404),
        (MessageType.SUBSCRIBE, {"resources": [f"{PH}/conn/9"]}, 404),
        (MessageType.SUBSCRIBE, {"resources": [f"{PH}/conn/1"]}, 200),
    ],
)
async def test_a_handler_answers_every_request(type_, body, code, autojump_clock):
    async with handler() as stub:
        await stub.tell(CREATE, f"{C1}/subscription", PH, **invitation())
        assert codes(await stub.tell(type_, f"{RB}/registry", PH, **body))[-1:] == [code]


def histories(stub):
    reported = {}
    for fact in stub.context.tracer.facts:
        if fact.op is Op.STEP:
            reported.setdefault(fact.machine, []).append(fact.new)
    return reported


async def test_a_handler_says_that_it_is_made(autojump_clock):
    """SC-04 steps 2 and 3."""
    async with handler() as stub:
        assert histories(stub) == {"stub_connection": ["created"]}
        (event,) = stub.port.posted
        assert (event.to, event.body) == (f"{PH}/status", {"value": "created"})


@asynccontextmanager
async def proven_link():
    """The stub of an end that takes a link of its own, which must be closed in the context."""
    stub = P2PRequester(requester_context())
    stub.me = SimpleNamespace(tell=unread)
    (end,) = stub.ends.values()
    async with stub.context.network.listen(Kind.TCP, "127.0.0.1:0") as listener:
        pipe = await stub.context.network.dial(Kind.TCP, listener.address)
        yield stub, end, end.report_link(("link", pipe), Opening.DIALLED, 1)
        with pytest.raises(LinkClosedError):
            await pipe.send(b"{}")


async def unread(_message):
    await trio.lowlevel.checkpoint()


async def test_a_link_with_unread_messages_of_a_closed_stub_is_closed():
    async with proven_link() as (stub, _, report):
        await report
        await stub.stop()


async def test_a_link_that_opens_after_its_end_has_gone_is_closed():
    async with proven_link() as (_, end, report):
        end.core.disconnect("it has gone")
        await report
