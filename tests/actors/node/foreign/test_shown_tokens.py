"""What a node shows another domain's node that asks for a login: a fresh token at each open."""

from contextlib import asynccontextmanager

import attrs
import trio

from actors.node.login.provider import Admission
from fsm.registry.node_rights import Observation
from specs.limits.protocol import RECONNECT_BASE, SESSION_IDLE
from tests.actors.node.foreign.test_onward import MN_A, change, come, set_path
from tests.support.node.issuer import Issuer, login_by
from tests.support.runtime.abroad import PLACES, B, DomainOptions, open_two
from transports.link import Kind

LIFE = 100.0
REFUSED = ["created", "in-progress", "failed"]


class Purse:
    """Hands out tokens that are good for one open each, and counts them."""

    def __init__(self, **changed):
        self.issuer = Issuer(domain=B)
        self.shown = 0
        self._changed = {"runtime": MN_A, **changed}

    async def show(self):
        await trio.lowlevel.checkpoint()
        self.shown += 1
        return self.issuer.token(**self._changed)


@asynccontextmanager
async def open_guarded(purse, life=LIFE):
    """Open two domains; who comes to b.ex from a.ex logs in, with what the purse holds."""

    def guarded(config):
        config = attrs.evolve(config, observation=Observation.OPEN)
        if config.domain != B:
            return config
        login = login_by(purse.issuer, admission=Admission.ANYBODY, life=life, clock=lambda: 0.0)
        return attrs.evolve(config, login=login)

    async with open_two(DomainOptions(shows=purse.show, node=guarded, b_knows={})) as world:
        yield world


def sandboxes_of(side):
    return [new for _, _, new in side.steps("stub_deployment")]


async def test_a_token_that_is_bound_to_the_node_lets_its_stub_in(autojump_clock):
    purse = Purse()
    async with open_guarded(purse) as world:
        assert (await world.a.ask(world.b)).code == 200
        assert purse.shown == 1


async def test_a_token_of_another_node_is_503_for_the_requester(autojump_clock):
    purse = Purse(runtime=None)
    async with open_guarded(purse) as world:
        answer = await world.a.ask(world.b)
        assert answer.code == 503
        assert "bound" in answer.body["description"]
        assert [new for _, _, new in world.a.steps("stub_connection")] == REFUSED


async def test_a_link_that_broke_comes_back_without_a_login(autojump_clock):
    purse = Purse()
    async with open_guarded(purse) as world:
        await world.a.ask(world.b)
        world.network.open_wires(Kind.WEBSOCKET)[2].cut()
        await trio.sleep(1)
        assert (await world.a.ask(world.b)).code == 200
        assert purse.shown == 1


async def test_when_a_login_is_over_the_next_needs_no_other_sandbox(autojump_clock):
    purse = Purse()
    async with open_guarded(purse) as world:
        await world.a.ask(world.b)
        await trio.sleep(LIFE + 5)
        assert (await world.a.ask(world.b)).code == 200
        assert purse.shown == 2
        assert sandboxes_of(world.a) == ["deploying", "deployed"]


async def test_a_session_that_was_forgotten_is_opened_anew_and_its_paths_are_set_again(
    autojump_clock,
):
    purse = Purse()
    async with open_guarded(purse, life=1e9) as world:
        reporter = await come(world, world.b, "reporter")
        observer = await come(world, world.a, "one")
        (url,) = await reporter.allocate("comm")
        assert (await set_path(observer, f"{url}/changes")).code == 200
        world.network.refuse(PLACES[B])
        world.network.open_wires(Kind.WEBSOCKET)[4].cut()
        async with trio.open_nursery() as nursery:
            for one in (reporter, observer):
                nursery.start_soon(stay, one, SESSION_IDLE + 60)
        assert MN_A not in {view.runtime for view in await world.b.node.sessions()}
        world.network.allow(PLACES[B])
        # Right after an attempt that failed nobody is made to wait for the next.
        await trio.sleep(RECONNECT_BASE)
        assert (await world.a.ask(world.b)).code == 200
        await trio.sleep(1)
        await change(reporter, url, 3)
        with trio.fail_after(1):
            assert (await observer.hear()).body["version"] == 3
        assert purse.shown >= 2
        for one in (reporter, observer):
            await one.link.aclose()


async def stay(peer, seconds):
    """Answer pings for a while."""
    with trio.move_on_after(seconds):
        heard = await peer.hear()
        peer.heard.append(heard)
        raise AssertionError(heard)
