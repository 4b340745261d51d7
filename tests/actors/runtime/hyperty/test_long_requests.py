"""Requests whose handlers take longer than a request waits, or that wait for less."""

import pytest
import trio

import actors
from actors.hyperties import Caller
from fsm.judge.trace_line import Verdict
from specs.limits.protocol import REPLY_TIMEOUT
from tests.actors.runtime.hyperty import patient
from tests.support.runtime.domain import DomainOptions, go_live, judged, open_domain


class Worker(actors.Hyperty):
    """Works as long as it is told, and notes how its work ends."""

    def __init__(self):
        self.ends = []

    async def on_request(self, message):
        try:
            await trio.sleep(message.value)
        except trio.Cancelled:
            self.ends.append("cancelled")
            raise
        self.ends.append("done")
        return "done"


class Patient(Worker):
    answer_within = 100


async def deploy(member, made):
    worker = made()
    url = await member.runtime.deploy("worker", lambda: worker)
    return worker, url


@pytest.mark.parametrize(
    ("made", "work", "within", "code", "took", "end"),
    [
        (Worker, REPLY_TIMEOUT + 5, None, 408, REPLY_TIMEOUT, ["cancelled"]),
        (Worker, 300, 600, 200, 300, ["done"]),
        (Worker, 300, 40.5, 408, 40.5, ["cancelled"]),
        (Worker, 300, 3, 408, 3, ["cancelled"]),
        (Worker, 2, 3, 200, 2, ["done"]),
        (Patient, 90, None, 200, 90, ["done"]),
        (Patient, 110, None, 408, 100, ["cancelled"]),
        (Patient, 110, 200, 200, 110, ["done"]),
    ],
)
async def test_an_answer_comes_in_the_time_that_requester_or_hyperty_name(
    made, work, within, code, took, end, autojump_clock
):
    for kinds in ((), DomainOptions().kinds):
        async with open_domain("alice", "bob", options=DomainOptions(kinds=kinds)) as domain:
            alice, bob = domain["alice"], domain["bob"]
            if kinds:
                await go_live(domain, "alice", "bob")
            worker, url = await deploy(bob, made)
            begun = trio.current_time()
            answer = await alice.hyperty.request(url, work, answer_within=within)
            assert answer.code == code
            assert trio.current_time() - begun == pytest.approx(took, abs=0.5)
            await trio.sleep(1)
            assert worker.ends == end
            # The next request is served as ever.
            assert (await alice.hyperty.request(url, 0)).code == 200
        assert judged(alice).verdict is judged(bob).verdict is Verdict.CONFORMANT


@pytest.mark.parametrize("wrong", [0, -1, 601, float("nan"), "5", True])
async def test_a_time_that_no_request_may_have_is_refused(wrong, autojump_clock):
    with pytest.raises((TypeError, ValueError), match="answer_within"):
        type("Slow", (actors.Hyperty,), {"answer_within": wrong})
    async with open_domain("alice", "bob") as domain:
        with pytest.raises((TypeError, ValueError), match="answer_within"):
            await domain["alice"].ask(domain["bob"], answer_within=wrong)


async def test_a_wish_of_a_stranger_is_bounded_or_ignored(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"], domain["bob"]
        worker, url = await deploy(bob, Worker)
        for wish, code in ((10**9, 408), ("600", 408), (True, 408), (-5, 408)):
            begun = trio.current_time()
            body = {"value": 10_000, "answerWithin": wish}
            assert (await alice.hyperty.ask(url, "create", body)).code == code
            most = 600 if wish == 10**9 else REPLY_TIMEOUT
            assert trio.current_time() - begun == pytest.approx(most, abs=0.5)
        await trio.sleep(1)
        assert worker.ends == ["cancelled"] * 4


class Lasting(patient.Patient):
    answer_within = 100


async def test_a_runtime_gives_its_hyperties_a_time_unless_their_class_or_request_names_one():
    async with actors.open_node("a.ex") as node:
        config = actors.RuntimeConfig(domain="a.ex", name="ra", node=node.url, answer_within=0.2)
        async with actors.open_runtime(config) as runtime:
            caller = await runtime.deploy(Caller)
            for url, within, code in (
                ((await runtime.deploy(patient.Patient)).url, None, 408),
                ((await runtime.deploy_apart(patient.Patient)).url, None, 408),
                ((await runtime.deploy(Lasting)).url, None, 200),
                ((await runtime.deploy(patient.Patient)).url, 30, 200),
            ):
                answer = await caller.request(url, 0.5, answer_within=within)
                assert answer.code == code
    for wrong in (0, 601, -1, "5"):
        with pytest.raises((TypeError, ValueError), match="answer_within"):
            actors.RuntimeConfig(domain="a.ex", name="ra", answer_within=wrong)
