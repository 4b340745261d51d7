"""Provisional answers are read as they come, wherever the receiver is: MSG-05, MSG-19."""

import pytest
import trio

import actors
from actors.hyperties import Caller
from actors.runtime.hyperty.open_request import PROGRESS_KEPT
from tests.actors.runtime.hyperty.patient import Stepwise
from tests.actors.runtime.hyperty.test_given_up import WAYS, pair, until

WORK = {"steps": 3, "pause": 0.5}
STEPS = [{"step": 0}, {"step": 1}, {"step": 2}]


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


async def workers(domain, way):
    caller, _, _ = await pair(domain, way)
    worker = Stepwise()
    return caller, worker, (await domain[way[0]].deploy(lambda: worker, "steps")).url


async def test_each_provisional_answer_is_read_when_it_comes(
    way, protofly_domain, protofly_trace, autojump_clock
):
    async with protofly_domain("ra", "rb", kinds=way[1]) as domain:
        caller, _, url = await workers(domain, way)
        begin, times = trio.current_time(), []
        async with caller.open_request(url, WORK) as request:
            values = []
            async for answer in request:
                values.append(answer.value)
                times.append(trio.current_time() - begin)
                assert answer.is_final is (len(values) == 4)
            assert (await request.answer()).ok
        assert values == [*STEPS, "done"]
        assert times == pytest.approx([0, 0.5, 1, 1.5], abs=0.2)
    protofly_trace.assert_conformant()


async def test_a_request_that_is_left_early_is_given_up(way, protofly_domain, autojump_clock):
    async with protofly_domain("ra", "rb", kinds=way[1]) as domain:
        caller, worker, url = await workers(domain, way)
        async with caller.open_request(url, {"steps": 3, "pause": 100}) as request:
            assert (await anext(request)).value == {"step": 0}
        await until(lambda: worker.ends)
        assert worker.ends == ["cancelled"]
        for read in (request.answer, request.__anext__):
            with pytest.raises(trio.ClosedResourceError, match="block was left"):
                await read()


async def test_two_readers_share_the_answers_of_a_request(protofly_domain, autojump_clock):
    async with protofly_domain("ra") as domain:
        caller = await domain["ra"].deploy(Caller)
        url = (await domain["ra"].deploy(Stepwise, "steps")).url
        final = []

        async def wait_for_answer():
            final.append((await request.answer()).value)

        with trio.fail_after(60):
            async with (
                caller.open_request(url, {"steps": 1, "pause": 5}) as request,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(wait_for_answer)
                values = [answer.value async for answer in request]
        assert (values[-1], final) == ("done", ["done"])


async def test_sandbox_processes_give_and_get_provisional_answers(protofly_domain):
    async with protofly_domain("ra") as domain:
        here = await domain["ra"].deploy(Stepwise, "here")
        apart = await domain["ra"].deploy_apart(Stepwise)
        work = {"steps": 3, "pause": 0.01}
        async with here.open_request(apart.url, work) as request:
            assert [answer.value async for answer in request] == [*STEPS, "done"]
        answer = await here.request(apart.url, {"to": here.url, "work": work}, "update")
        assert answer.value == [*STEPS, "done"]


async def test_of_unread_answers_the_newest_are_kept(protofly_domain, autojump_clock):
    async with protofly_domain("ra") as domain:
        caller = await domain["ra"].deploy(Caller)
        url = (await domain["ra"].deploy(Stepwise, "steps")).url
        steps = 3 * PROGRESS_KEPT
        async with caller.open_request(url, {"steps": steps, "pause": 0}) as request:
            await trio.sleep(5)
            values = [answer.value async for answer in request]
        kept = [{"step": step} for step in range(steps - PROGRESS_KEPT, steps)]
        assert values == [*kept, "done"]


async def test_a_refusal_is_the_only_answer_and_wrong_arguments_raise(
    protofly_domain, autojump_clock
):
    async with protofly_domain("ra") as domain:
        caller = await domain["ra"].deploy(Caller)
        async with caller.open_request(f"{caller.url}/absent", 1) as request:
            (refusal,) = [answer async for answer in request]
            assert refusal.code == 404
        for wrong, error in (
            ({"value": object()}, actors.NotJsonError),
            ({"type_": "dance"}, ValueError),
            ({"answer_within": -1}, ValueError),
            ({"path": 1}, TypeError),
        ):
            with pytest.raises(error):
                async with caller.open_request(caller.url, **wrong) as request:
                    await request.answer()


async def test_the_time_of_a_request_is_over_between_provisional_answers(
    protofly_domain, autojump_clock
):
    async with protofly_domain("ra") as domain:
        caller = await domain["ra"].deploy(Caller)
        url = (await domain["ra"].deploy(Stepwise, "steps")).url
        async with caller.open_request(url, {"steps": 9, "pause": 20}, answer_within=50) as request:
            answers = [(answer.code, answer.value) async for answer in request]
        assert answers == [*((183, {"step": step}) for step in range(3)), (408, None)]
