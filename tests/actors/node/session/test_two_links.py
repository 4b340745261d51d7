"""Two links of one runtime: the newest has the session, whatever happens when (MN-04, MN-06, I-M2).

Upstream's plain node lets the late close of the older link deafen the newer one (page 11, 5a).
"""

from contextlib import suppress
from itertools import combinations, permutations, product

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.support.node.legacy_peer import (
    OLD,
    OLD_INSIDE,
    plain_peer,
    session_outsider,
    session_peer,
)
from tests.support.node.node_peer import MN, RA, Peer, open_world
from tests.support.pairs import covering
from transports.errors import LinkError

STEPS = ("older speaks", "older leaves", "newer comes", "newer speaks", "neighbour speaks")
ORDERS = [
    order for order in permutations(STEPS) if order.index(STEPS[2]) < order.index(STEPS[3])
]  # fmt: skip
KINDS = {"plain": plain_peer, "session": session_peer, "ours": None}
PAUSES = {"in turn": wait_all_tasks_blocked, "at once": trio.lowlevel.checkpoint}
CASES = list(product(ORDERS, KINDS, PAUSES))


def facts(case):
    """Which step comes before which, for which kind of runtime, with or without pauses."""
    order, kind, pause = case
    befores = [order.index(one) < order.index(other) for one, other in combinations(STEPS, 2)]
    return [*befores, kind, pause]


SAMPLE = frozenset(covering(CASES, facts, together=3))


def shown_as(case):
    """Any three facts meet in a case of the sample; all cases are for long runs."""
    order, kind, pause = case
    name = f"{', '.join(order)}-{kind}-{pause}"
    return pytest.param(*case, id=name, marks=[] if case in SAMPLE else [pytest.mark.soak])


class Newcomer:
    """The second link of a runtime, however its kind comes for the session."""

    def __init__(self, world, older):
        self.world, self.older, self.link = world, older, None

    async def come(self):
        world, older = self.world, self.older
        if isinstance(older, Peer):
            peer = await world.outsider(older.runtime)
            message = {"method": "re-open", "params": {"runtimeURL": RA, "token": older.token}}
            await peer.post("execute", peer.stub, f"{MN}/session", **message)
        elif older.token:
            peer = await session_outsider(world)
            await peer.say(id=1, type="re-open", from_=older.session_url, to="mn:/session")
        else:
            peer = await plain_peer(world)
        self.link = peer.link

    async def heard(self):
        return await everything(self.link)


async def everything(link):
    """Return all that comes over a link, and whether it still stands."""
    frames = []
    with trio.move_on_after(1):
        try:
            while True:
                frames.append(await link.receive())
        except LinkError:
            return b"\n".join(frames), False
    return b"\n".join(frames), True


def asking(runtime, id_):
    text = '{"id":%d,"type":"read","from":"%s/ua","to":"%s/none","body":{}}'
    return (text % (id_, runtime, MN)).encode()


async def play(world, order, older, pause):
    """Do the five steps in one order, with or without letting the node keep up."""
    runtime = RA if isinstance(older, Peer) else OLD
    inside = RA if isinstance(older, Peer) else OLD_INSIDE
    neighbour, newer = await world.peer("hyperty-runtime://a.ex/rn"), Newcomer(world, older)
    for step in order:
        match step:
            case "older speaks":
                with suppress(LinkError):
                    await older.link.send(asking(runtime, 101))
            case "older leaves":
                await older.link.aclose()
            case "newer comes":
                await newer.come()
            case "newer speaks":
                await newer.link.send(asking(runtime, 102))
            case "neighbour speaks":
                await neighbour.post("create", f"{neighbour.runtime}/ua", f"{inside}/ua", value=103)
        await pause()
    return newer


async def runtime_of(world, kind):
    return await (KINDS[kind](world) if KINDS[kind] else world.peer(RA))


@pytest.mark.parametrize(("order", "kind", "pause"), [shown_as(case) for case in CASES])
async def test_the_newest_has_the_session_and_is_not_deafened(order, kind, pause, autojump_clock):
    async with open_world(allow_legacy=True) as world:
        older = await runtime_of(world, kind)
        newer = await play(world, order, older, PAUSES[pause])
        heard, stands = await newer.heard()

        assert stands
        assert b'"id":102' in heard
        assert heard.count(b'"value":103') <= 1
        assert set((await world.states()).values()) == {"open"}
        if pause == "in turn":
            came = order.index("newer comes")
            assert came > order.index("older speaks") or b'"id":101' not in heard
            assert came > order.index("neighbour speaks") or b'"value":103' in heard


@pytest.mark.parametrize("kind", KINDS)
async def test_the_older_is_notified_that_it_is_over_and_no_longer_heard(kind, autojump_clock):
    async with open_world(allow_legacy=True) as world:
        older = await runtime_of(world, kind)
        newer = Newcomer(world, older)
        await newer.come()
        await newer.heard()

        assert await everything(older.link) == (b"", False)
        with suppress(LinkError):
            await older.link.send(asking(RA if kind == "ours" else OLD, 7))
        heard, stands = await newer.heard()
        assert (b'"id":7' in heard, stands) == (False, True)
