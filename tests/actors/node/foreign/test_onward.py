"""Who observes an object of another domain sets the path at the own node (C-49, SYN-09)."""

from contextlib import asynccontextmanager

import trio

from specs.limits.protocol import REPLY_TIMEOUT
from specs.message import Message, MessageType
from tests.actors.node.foreign.faulty_sandboxes import no_sandbox
from tests.support.node.node_peer import Peer
from tests.support.runtime.abroad import DomainOptions, open_two
from transports.codec import encode
from transports.link import Kind
from transports.memory import deliver_once

MN_A = "domain://msg-node.a.ex"
MN_A_SM = f"{MN_A}/sm"


async def come(world, side, name):
    link = await world.network.dial(Kind.WEBSOCKET, side.node.url)
    runtime = f"hyperty-runtime://{side.node.domain}/{name}"
    return await Peer(link, runtime, side.node.domain).open()


async def set_path(observer, resource, kind="subscribe"):
    own, manager = f"{observer.runtime}/sm", f"{observer.node}/sm"
    return await observer.ask(kind, own, manager, resources=[resource], source=observer.runtime)


async def paths_of_a_at_b(world):
    views = await world.b.node.sessions()
    return next(view.paths for view in views if view.runtime == MN_A)


@asynccontextmanager
async def observed(options=None):
    """Two domains, a reporter with an object in b.ex, and two who would observe it from a.ex."""
    async with open_two(options) as world:
        reporter = await come(world, world.b, "reporter")
        (url,) = await reporter.allocate("comm")
        answer = await set_path(reporter, f"{url}/subscription")
        assert answer.code == 200
        observers = [await come(world, world.a, name) for name in ("one", "two")]
        yield world, url, reporter, observers
        for one in (reporter, *observers):
            await one.link.aclose()


async def follow(observer, reporter, url):
    assert (await set_path(observer, f"{url}/changes")).code == 200
    await observer.post("subscribe", f"{observer.runtime}/sm", f"{url}/subscription")
    asked = await reporter.hear()
    answer = {"code": 200, "value": {}}
    await reporter.link.send(answer_line(asked, answer))
    assert (await observer.hear()).code == 200


def answer_line(asked, body):
    return encode(Message(asked.id, MessageType.RESPONSE, asked.to, asked.from_, body))


async def change(reporter, url, version):
    await reporter.post("update", url, f"{url}/changes", version=version)


async def test_a_path_is_set_once_at_the_other_node_and_heard_by_all_here(autojump_clock):
    async with observed() as (world, url, reporter, observers):
        for observer in observers:
            await follow(observer, reporter, url)
        await change(reporter, url, 2)
        heard = [await one.hear() for one in observers]
        assert [(one.to, one.body["version"]) for one in heard] == [(f"{url}/changes", 2)] * 2
        assert await paths_of_a_at_b(world) == (f"{url}/changes",)
        asked = world.b.ops(op="rcv", type="subscribe", from_=f"{MN_A}/sm")
        assert len(asked) == 1


async def test_the_path_there_goes_with_the_last_one_here(autojump_clock):
    async with observed() as (world, url, reporter, observers):
        for observer in observers:
            await follow(observer, reporter, url)
        await set_path(observers[0], f"{url}/changes", "unsubscribe")
        await trio.sleep(1)
        assert await paths_of_a_at_b(world) == (f"{url}/changes",)
        await observers[1].control("close")
        await trio.sleep(1)
        assert await paths_of_a_at_b(world) == ()


async def test_an_observer_without_consent_receives_nothing_of_its_neighbours_object(
    autojump_clock,
):
    async with observed() as (_, url, reporter, observers):
        await follow(observers[0], reporter, url)
        assert (await set_path(observers[1], f"{url}/changes")).code == 200
        await change(reporter, url, 2)
        assert (await observers[0].hear()).body["version"] == 2
        assert await observers[1].silence()


async def test_a_path_that_the_other_node_refuses_is_refused_here(autojump_clock):
    async with observed() as (_, url, __, observers):
        answer = await set_path(observers[0], f"{url}/secret/part")
        assert answer.code == 403


async def test_a_path_to_a_domain_that_cannot_be_reached_is_503(autojump_clock):
    async with observed(DomainOptions(spawn=no_sandbox)) as (world, url, _, observers):
        assert (await set_path(observers[0], f"{url}/changes")).code == 503
        views = {view.runtime: view.paths for view in await world.a.node.sessions()}
        assert views[observers[0].runtime] == ()


async def test_paths_survive_a_crash_of_the_sandbox(autojump_clock):
    async with observed() as (world, url, reporter, observers):
        await follow(observers[0], reporter, url)
        await world.a.sandboxes.kill()
        await trio.sleep(1)
        await change(reporter, url, 3)
        assert (await observers[0].hear()).body["version"] == 3


async def test_a_node_that_does_not_answer_is_given_up_and_takes_no_place_of_others(
    autojump_clock,
):
    """T18: another domain's silence must not end what is asked of all the others."""
    async with observed() as (world, url, _, observers):
        assert (await world.a.ask(world.b)).code == 200
        wire = world.network.open_wires(Kind.WEBSOCKET)[-1]
        wire.acceptor.pattern = lambda _number, _frame: ()
        body = {"resources": [f"{url}/changes"], "source": observers[0].runtime}
        asked = await observers[0].post("subscribe", f"{observers[0].runtime}/sm", MN_A_SM, **body)
        await trio.sleep(REPLY_TIMEOUT + 1)
        wire.acceptor.pattern = deliver_once
        await set_path(observers[1], f"{url}/changes")
        answer = await observers[0].hear()
        assert (answer.id, answer.code) == (asked.id, 504)


async def test_two_simultaneous_requesters_of_a_refused_path_are_both_refused(autojump_clock):
    async with observed() as (_, url, __, observers):
        codes = []

        async def ask(observer):
            codes.append((await set_path(observer, f"{url}/secret/part")).code)

        async with trio.open_nursery() as nursery:
            for one in observers:
                nursery.start_soon(ask, one)
        assert codes == [403, 403]
