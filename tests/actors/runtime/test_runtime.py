"""A runtime as its owner sees it, with a real node in memory (SC-01..05, 09, 11, 13)."""

import math
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from typing_extensions import override

from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Hyperty, Refused
from actors.runtime.registry.allocation import AllocationError
from actors.runtime.runtime import Runtime
from fsm.judge.trace_line import Verdict, read_record
from fsm.judge.verdict import judge
from specs.limits.bus import CONCURRENT
from specs.limits.protocol import DRAIN_TIMEOUT, REGISTRATION_EXPIRES, REPLY_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import Code
from specs.trace import Kind as About
from tests.support.trace.memory import MemoryTracer
from tests.support.trace.trace_files import records, whole
from transports.link import Kind
from transports.memory import MemoryNetwork


class Server(Hyperty):
    """Does what the value of a request says."""

    lives = 0

    def __init__(self) -> None:
        type(self).lives += 1
        self.began: list[int] = []
        self.events: list[Message] = []
        self.gate = trio.Event()

    @override
    async def on_request(self, message: Message) -> object:
        self.began.append(message.id)
        match message.body.get("value"):
            case "refuse":
                raise Refused(Code.FORBIDDEN, "not today")
            case "fail":
                raise ZeroDivisionError
            case "crash":
                self.spawn(self.fall)
                await trio.sleep(math.inf)
            case "wait":
                await self.gate.wait()
            case "sleep":
                await trio.sleep(math.inf)
        return message.body.get("value")

    async def fall(self) -> None:
        raise ZeroDivisionError

    @override
    async def on_event(self, message: Message) -> None:
        self.events.append(message)


class Caller(Hyperty):
    """Asks in its own name."""


class Place:
    """A node, and runtimes that come and go."""

    def __init__(self, network: MemoryNetwork, url: str) -> None:
        self.network = network
        self.url = url
        self.tracers: dict[str, MemoryTracer] = {}

    @asynccontextmanager
    async def runtime(self, name: str, url: str | None = None):
        tracer = self.tracers[name] = MemoryTracer()
        config = RuntimeConfig(domain="a.ex", name=name, node=url or self.url)
        async with open_runtime(config, self.network, tracer) as runtime:
            yield runtime

    def verdict(self, name: str) -> Verdict:
        lines = records(whole(self.tracers[name].facts))
        return judge(read_record(line) for line in lines).verdict

    def cut(self) -> None:
        for wire in self.network.open_wires(Kind.WEBSOCKET):
            wire.cut()


@asynccontextmanager
async def open_place():
    network, tracer = MemoryNetwork(), MemoryTracer()
    async with open_node(NodeConfig(domain="a.ex"), network, tracer) as node:
        place = Place(network, node.url)
        place.tracers["node"] = tracer
        yield place


@asynccontextmanager
async def open_pair():
    """A place, a caller in one runtime, a server in another."""
    async with open_place() as place, place.runtime("ra") as ra, place.runtime("rb") as rb:
        server, caller = Server(), Caller()
        there = await rb.deploy("server", lambda: server)
        await ra.deploy("caller", lambda: caller)
        yield place, caller, server, there


async def test_a_request_crosses_the_node_and_comes_back(autojump_clock):
    async with open_pair() as (place, caller, _, there):
        answer = await caller.request(there, {"n": 1})
        assert (answer.code, answer.body["value"]) == (200, {"n": 1})
        assert len(answer.via) == 2
    assert {place.verdict(name) for name in ("ra", "rb")} == {Verdict.CONFORMANT}


async def test_two_hyperties_of_one_runtime_need_no_route_out(autojump_clock):
    async with open_place() as place, place.runtime("ra") as ra:
        caller = Caller()
        await ra.deploy("caller", lambda: caller)
        there = await ra.deploy("server", Server)
        answer = await caller.request(there, 1)
        assert (answer.code, answer.via) == (200, ())
        assert not [f for f in place.tracers["ra"].facts if f.k is About.RESOLVE and f.to == there]


async def test_an_unknown_address_is_404_in_every_topology(autojump_clock):
    async with open_pair() as (_, caller, _, _):
        abroad = await caller.request("hyperty://a.ex/nobody", 1)
        at_home = await caller.request("hyperty-runtime://a.ex/ra/nobody", 1)
        assert (abroad.code, at_home.code) == (404, 404)


async def test_a_domain_that_does_not_exist_is_404_and_not_to_be_asked_again(autojump_clock):
    """RES-14: at first, and during the pause after that."""
    async with open_pair() as (_, caller, _, _):
        for to in ("domain://b.ex", "hyperty://b.ex/x"):
            answer = await caller.request(to, 1)
            assert (answer.code, "retryAfter" in answer.body) == (Code.NOT_FOUND, False)
            assert "no stub is described" in answer.body["description"]


async def test_a_hyperty_that_never_answers_is_408(autojump_clock):
    async with open_pair() as (_, caller, _, there):
        start = trio.current_time()
        assert (await caller.request(there, "sleep")).code == Code.TIMEOUT
        assert trio.current_time() - start == REPLY_TIMEOUT


async def test_a_refusal_carries_its_words(autojump_clock):
    async with open_pair() as (_, caller, _, there):
        answer = await caller.request(there, "refuse")
        assert (answer.code, answer.body["description"]) == (403, "not today")


async def test_an_exception_of_a_handler_is_answered_500_and_the_hyperty_continues(autojump_clock):
    async with open_pair() as (_, caller, server, there):
        lives = Server.lives
        codes = [(await caller.request(there, "fail")).code for _ in range(50)]
        assert codes == [Code.INTERNAL] * 50
        assert (await caller.request(there, 1)).code == Code.OK
        assert (len(server.began), Server.lives) == (51, lives)


async def test_a_crash_answers_503_and_the_hyperty_is_made_anew(autojump_clock):
    async with open_place() as place, place.runtime("ra") as ra, place.runtime("rb") as rb:
        caller = Caller()
        there = await rb.deploy("server", Server)
        await ra.deploy("caller", lambda: caller)
        lives = Server.lives
        assert (await caller.request(there, "crash")).code == Code.UNAVAILABLE
        assert (await caller.request(there, 1)).code == Code.OK
        assert Server.lives == lives + 1


async def test_a_hyperty_that_always_crashes_ends_alone(autojump_clock):
    async with open_place() as place, place.runtime("ra") as ra:
        caller = Caller()
        await ra.deploy("caller", lambda: caller)
        bad = await ra.deploy("bad", Server)
        good = await ra.deploy("good", Server)
        codes = [(await caller.request(bad, "crash")).code for _ in range(4)]
        assert codes == [Code.UNAVAILABLE] * 4
        await trio.testing.wait_all_tasks_blocked()
        assert (await caller.request(bad, 1)).code == Code.NOT_FOUND
        assert (await caller.request(good, 1)).code == Code.OK
        reported = [f for f in place.tracers["node"].facts if f.key == bad]
        assert {f.machine: f.new for f in reported if f.k is About.STATE} == {
            "registration": "disconnected",
            "address": "released",
        }


async def test_a_slow_request_does_not_hold_up_others_and_all_begin_in_order(autojump_clock):
    async with open_pair() as (_, caller, server, there), trio.open_nursery() as nursery:
        nursery.start_soon(caller.request, there, "wait")
        await trio.testing.wait_all_tasks_blocked()
        assert (await caller.request(there, 1)).code == Code.OK
        server.gate.set()


async def test_requests_of_one_sender_begin_in_order(autojump_clock):
    async with open_pair() as (_, caller, server, there):
        port, ids = caller._participant.port, caller._participant.ids
        for _ in range(CONCURRENT * 2):
            number = ids.next(caller.url)
            await port.post(Message(number, MessageType.CREATE, caller.url, there, {"value": 1}))
        await trio.sleep(1)
        assert len(server.began) == CONCURRENT * 2
        assert server.began == sorted(server.began)


async def test_hyperties_take_events(autojump_clock):
    async with open_place() as place, place.runtime("ra") as ra:
        server, caller = Server(), Caller()
        there = await ra.deploy("server", lambda: server)
        await ra.deploy("caller", lambda: caller)
        ra.agent.follow(f"{caller.url}/changes", there)
        event = Message(99, MessageType.UPDATE, caller.url, f"{caller.url}/changes")
        await caller._participant.port.post(event)
        await trio.testing.wait_all_tasks_blocked()
        assert server.events == [event]


# ---- the way to the node


async def test_an_unreachable_node_refuses_the_deployment_in_time(autojump_clock):
    async with open_place() as place, place.runtime("ra", "ws://127.0.0.1:1/link") as ra:
        with trio.fail_after(5), pytest.raises(AllocationError) as caught:
            await ra.deploy("server", Server)
        assert caught.value.code == Code.UNAVAILABLE


async def test_a_lost_link_comes_back_and_traffic_with_it(autojump_clock):
    async with open_pair() as (place, caller, _, there):
        await caller.request(there, 1)
        place.cut()
        await trio.testing.wait_all_tasks_blocked()
        assert (await caller.request(there, 2)).code == Code.OK
    assert {place.verdict(name) for name in ("ra", "rb")} == {Verdict.CONFORMANT}


async def test_when_the_node_is_gone_all_requests_are_answered_and_the_runtime_leaves_in_time(
    autojump_clock,
):
    network = MemoryNetwork()
    caller = Caller()
    async with trio.open_nursery() as nursery:
        gone = trio.CancelScope()
        url = await nursery.start(_node_until, network, gone)
        place = Place(network, url)
        async with place.runtime("ra") as ra:
            await ra.deploy("caller", lambda: caller)
            gone.cancel()
            await trio.testing.wait_all_tasks_blocked()
            codes: list[int] = []
            async with trio.open_nursery() as asking:
                for _ in range(20):
                    asking.start_soon(_ask, caller, codes)
            assert set(codes) <= {Code.UNAVAILABLE, Code.TIMEOUT}
            assert len(codes) == 20
            leaving = trio.current_time()
        assert trio.current_time() - leaving <= DRAIN_TIMEOUT
    assert place.verdict("ra") is Verdict.CONFORMANT


async def _ask(caller: Caller, codes: list[int]) -> None:
    codes.append((await caller.request("hyperty://a.ex/somebody", 1)).code)


async def _node_until(network, gone, task_status):
    with gone:
        async with open_node(NodeConfig(domain="a.ex"), network, MemoryTracer()) as node:
            task_status.started(node.url)
            await trio.sleep_forever()


# ---- coming and going


async def test_leaving_unregisters_frees_and_closes(autojump_clock):
    async with open_pair() as (place, caller, _, there):
        await caller.request(there, 1)
    reported = [f for f in place.tracers["node"].facts if f.k is About.STATE]
    last = {(f.machine, f.key): f.new for f in reported}
    assert {new for (machine, _), new in last.items() if machine == "registration"} == {
        "disconnected"
    }
    assert {new for (machine, _), new in last.items() if machine == "address"} == {"released"}
    assert {new for (machine, _), new in last.items() if machine == "session"} == {"closed"}


async def test_an_undeployed_hyperty_is_answered_404(autojump_clock):
    async with open_place() as place, place.runtime("ra") as ra, place.runtime("rb") as rb:
        caller = Caller()
        await ra.deploy("caller", lambda: caller)
        there = await rb.deploy("server", Server)
        await rb.undeploy(there)
        await rb.undeploy(there)
        assert (await caller.request(there, 1)).code == Code.NOT_FOUND


async def test_a_deployment_that_fails_leaves_nothing(autojump_clock):
    class Broken(Hyperty):
        @override
        async def started(self) -> None:
            raise ZeroDivisionError

    async with open_place() as place, place.runtime("ra") as ra:
        with pytest.raises(ZeroDivisionError):
            await ra.deploy("broken", Broken)
        assert isinstance(ra, Runtime)
    assert place.verdict("ra") is Verdict.CONFORMANT


async def test_registrations_are_kept_alive(autojump_clock):
    async with open_pair() as (place, caller, _, there):
        await trio.sleep(REGISTRATION_EXPIRES * 3)
        states = [f.new for f in place.tracers["node"].facts if f.machine == "registration"]
        assert states == ["live", "live"]
        assert (await caller.request(there, 1)).code == Code.OK
