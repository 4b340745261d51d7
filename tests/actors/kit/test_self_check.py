"""A process that judges itself: what it reports, and that it needs no trace."""

import io

import pytest

from actors.hyperties import Caller, Echo
from actors.kit.counters import Counters
from actors.kit.log import Style, configure_log
from actors.kit.self_check import SelfCheck
from actors.kit.trace import NULL_TRACER, Hop
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.bus.open_requests import OpenRequests
from actors.runtime.config import RuntimeConfig
from fsm.bus.transactions import is_sampled
from specs.message import Message, MessageType, reply_to
from specs.reply_code import Code
from specs.trace import Fact, Kind, Op
from tests.support.log import unchanged_log
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork

HOME = "hyperty-runtime://a.ex/ra"
SAMPLED, OTHER = 17, 18


@pytest.fixture(autouse=True)
def log():
    stream = io.StringIO()
    with unchanged_log():
        configure_log(style=Style.TEXT, stream=stream)
        yield stream


def answer(number, code=Code.OK):
    request = Message(number, MessageType.READ, "hyperty://a.ex/1", "hyperty://a.ex/2")
    return reply_to(request, code)


def checked(tracer=NULL_TRACER):
    counters = Counters()
    return SelfCheck(tracer, "ra", HOME, counters), counters


def test_a_second_final_answer_is_logged_counted_and_noted(log):
    inner = MemoryTracer()
    check, counters = checked(inner)
    for _ in range(2):
        check.message("bus", Op.CALLBACK, answer(SAMPLED))

    assert counters.broken_claims == {"I-T2": 1}
    assert "claim broken" in log.getvalue()
    assert "no second final answer" in log.getvalue()
    (note,) = [fact for fact in inner.facts if fact.k is Kind.FAULT]
    assert (note.cause, note.why) == ("I-T2", "no second final answer")


def test_a_provisional_answer_after_the_final_one_is_found():
    check, counters = checked()
    check.message("bus", Op.CALLBACK, answer(SAMPLED))
    check.message("bus", Op.CALLBACK, answer(SAMPLED, Code.PROGRESS))

    assert counters.broken_claims == {"I-T4": 1}


def test_one_request_in_ten_is_judged():
    check, counters = checked()
    for _ in range(2):
        check.message("bus", Op.CALLBACK, answer(OTHER))

    assert counters.broken_claims == {}
    assert sum(map(is_sampled, range(1000))) == 100


def test_records_pass_the_self_check_unchanged():
    inner = MemoryTracer()
    check, _ = checked(inner)
    check.message("bus", Op.CALLBACK, answer(SAMPLED))
    check.hop(Hop("bus", (), {"decision": "permit"}), answer(SAMPLED))

    assert [fact.k for fact in inner.facts] == [Kind.MSG, Kind.AUTHZ]


async def asked(monitor, requests=20):
    """Counters of a runtime without a trace, after requests within it."""
    network = MemoryNetwork()
    async with open_node(NodeConfig(domain="a.ex"), network, NULL_TRACER) as node:
        config = RuntimeConfig(domain="a.ex", name="ra", node=node.url, monitor=monitor)
        async with open_runtime(config, network, NULL_TRACER) as runtime:
            caller = Caller()
            await runtime.deploy("caller", lambda: caller)
            echo = await runtime.deploy("echo", Echo)
            for _ in range(requests):
                await caller.request(echo)
            return dict(runtime.counters.broken_claims)


async def test_a_runtime_that_is_right_breaks_nothing(autojump_clock):
    assert await asked(monitor=True) == {}


@pytest.mark.parametrize(("monitor", "broken"), [(True, {"I-T2"}), (False, set())])
async def test_a_bus_that_answers_twice_is_found_without_a_trace(
    monitor, broken, monkeypatch, autojump_clock
):
    def give_twice(self, response, waiter):
        give(self, response, waiter)
        self._hops.say(Op.CALLBACK, response)

    give = OpenRequests.give_answer
    monkeypatch.setattr(OpenRequests, "give_answer", give_twice)

    assert set(await asked(monitor)) == broken


async def test_a_node_that_judges_itself_breaks_nothing(autojump_clock):
    network = MemoryNetwork()
    config = NodeConfig(domain="a.ex", monitor=True)
    async with open_node(config, network, NULL_TRACER) as node:
        runtime = RuntimeConfig(domain="a.ex", name="ra", node=node.url, monitor=True)
        async with open_runtime(runtime, network, NULL_TRACER) as running:
            await running.deploy("echo", Echo)
        assert node.counters.broken_claims == {}


async def test_an_event_that_comes_again_and_is_given_again_is_found():
    """Also without a trace, for every tenth event."""
    check, counters = checked()
    row = Fact(k=Kind.TABLE, op=Op.ADD, table="listeners", key="hyperty://a.ex/2/changes", val="HB")
    check.record("bus", row)
    for number in (SAMPLED, OTHER):
        event = Message(number, MessageType.UPDATE, "hyperty://a.ex/2", "hyperty://a.ex/2/changes")
        for _ in range(2):
            check.message("bus", Op.ADMIT, event, by="S")
            check.message("bus", Op.DELIVER, event, listener="HB")

    assert counters.broken_claims == {"I-T11": 1}
