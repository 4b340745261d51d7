"""The host of a stub from a package: what it lets pass, and what ends the stub (T13)."""

import attrs
import pytest

from actors.kit.counters import Counters
from actors.kit.ids import IdSource
from actors.kit.supervision.actor import Delivery
from actors.kit.trace import NULL_TRACER
from actors.pipe.host import HandInResult
from actors.pipe.plan import PipeError
from actors.runtime.isolation import StubCode, sandboxed_stub
from actors.runtime.stubs.stub import StubConfig, StubContext
from fsm.engine import Entity
from fsm.machines.stub_connection import STUB_CONNECTION, Trigger
from specs.limits.foreign_code import HYPERTY_REQUESTS
from specs.limits.protocol import PEER_OFFENCES
from specs.message import reply_to
from specs.reply_code import DropReason
from tests.support.runtime.p2p_bus import KeepingPort
from tests.support.wire.wire import answer, ask, event
from transports.memory import MemoryNetwork

R = "hyperty-runtime://a.ex/ra"
S, STRANGER = f"{R}/protostub/2", "hyperty://c.ex/hc"


@pytest.fixture
def stub():
    config = StubConfig(R, "b.ex")
    context = StubContext(
        S, KeepingPort(S), config, MemoryNetwork(), NULL_TRACER, IdSource(), bytes, Counters()
    )
    made = sandboxed_stub(StubCode(b"", "stub:activate"), (), None)(context)
    made.hand = lambda *_: HandInResult.TAKEN
    made.port, made.counters = context.bus, context.counters
    return made


async def test_a_stub_ends_with_so_many_messages_of_another_domain(stub):
    for number in range(1, PEER_OFFENCES):
        await stub.on_post(event(number, from_=STRANGER))
    assert stub.counters.drops == {DropReason.UNKNOWN_SOURCE: PEER_OFFENCES - 1}
    with pytest.raises(PipeError, match="too many"):
        await stub.on_post(event(PEER_OFFENCES, from_=STRANGER))


async def test_only_the_receiver_of_a_request_answers_it(stub):
    asked = [ask(number, to="hyperty://b.ex/hb") for number in (1, 2)]
    for request in asked:
        await stub.handle(Delivery(request, S))
    await stub.on_post(attrs.evolve(answer(asked[0]), from_=STRANGER))
    await stub.on_post(answer(asked[1]))
    assert [one.id for one in stub.port.posted] == [2]
    assert stub.counters.drops == {DropReason.UNMATCHED: 1}


async def test_an_answered_request_of_a_stub_is_open_no_longer(stub):
    sent, work = [], []

    async def request(message, _progress):
        sent.append(message.id)
        return reply_to(message, 200)

    async def tell(_):
        pass

    stub.port.request, stub.tell, stub.spawn = request, tell, lambda *call: work.append(call)
    for number in range(HYPERTY_REQUESTS + 1):
        await stub.on_request(ask(number, from_=S, to="hyperty://a.ex/ha"))
        run, message = work.pop()
        await run(message)
    assert sent == [*range(HYPERTY_REQUESTS + 1)]


async def test_the_status_of_a_stub_names_its_session(stub):
    live = Entity(STUB_CONNECTION, S)
    live.step(Trigger.CONSTRUCTED)
    live.step(Trigger.CONNECT)
    step = live.step(Trigger.ESTABLISHED)
    for token in ("t1", "t1", "t2"):
        await stub.on_token(token, is_anew=True)
        await stub.on_step(step)
    names = [one.body["link"].rpartition("/")[2] for one in stub.port.posted]
    assert names == ["1", "1", "2"]
