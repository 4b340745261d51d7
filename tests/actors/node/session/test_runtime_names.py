"""A name of a runtime belongs to the user who opened it first, also over a restart (S6, MN-21)."""

import gc
import itertools
import math
from contextlib import asynccontextmanager

import pytest
import trio

from actors.kit.trace import NULL_TRACER
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.node.limits import UNLIMITED
from actors.node.login.provider import Admission
from actors.node.session.exchange import Exchange, UserNames
from specs.identity import Identity
from specs.limits.node import NAME_LIFE, USER_NAMES
from specs.limits.protocol import SESSION_IDLE
from tests.support.node.issuer import ALICE, BOB, Issuer, login_by, opened
from tests.support.node.legacy_peer import plain_peer
from tests.support.node.node_peer import DOMAIN, RA, RB, Peer, open_world
from transports.link import Kind
from transports.memory import MemoryNetwork

OTHERS = "belongs to another user"


async def came(world, issuer, user=ALICE, runtime=RA, **more):
    """Connect, and log in; return the peer and the answer."""
    peer = await world.outsider(runtime)
    return peer, await opened(peer, issuer.token(sub=user, **more))


async def left(peer):
    assert (await peer.control("close")).code == 200


async def test_another_user_gets_409_whatever_has_become_of_the_session(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        alice, _ = await came(world, issuer)
        _, refused = await came(world, issuer, BOB)
        assert (refused.code, OTHERS in refused.body["description"]) == (409, True)
        await left(alice)
        assert (await came(world, issuer, BOB))[1].code == 409
        again, answer = await came(world, issuer)
        assert answer.code == 200
        await again.link.aclose()
        await trio.sleep(SESSION_IDLE + 1)
        assert await world.states() == {}
        issuer.now = SESSION_IDLE
        _, refused = await came(world, issuer, BOB)
        assert (refused.code, OTHERS in refused.body["description"]) == (409, True)


async def test_a_namesake_of_another_issuer_is_another_user(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        await left((await came(world, issuer))[0])
        _, refused = await came(world, issuer, ALICE, iss="https://other.ex")
        assert refused.code == 409


async def test_after_thirty_days_without_a_session_anybody_may_have_it():
    now = 0.0
    issuer = Issuer()
    async with open_world(login=login_by(issuer, clock=lambda: now)) as world:
        await left((await came(world, issuer))[0])
        now = issuer.now = NAME_LIFE - 1
        assert (await came(world, issuer, BOB))[1].code == 409
        now = issuer.now = NAME_LIFE + 1
        assert (await came(world, issuer, BOB))[1].code == 200
        assert (await came(world, issuer))[1].code == 409


@pytest.mark.parametrize("named", [{}, {"runtimeURL": RA}])
async def test_a_released_name_is_free_when_its_session_is_over(named, autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        alice, _ = await came(world, issuer)
        assert (await alice.control("release", **named)).code == 202
        assert (await came(world, issuer, BOB))[1].code == 409
        await left(alice)
        assert (await came(world, issuer, BOB))[1].code == 200


async def test_a_name_out_of_use_is_released_from_another_session_of_its_user(autojump_clock):
    issuer = Issuer()
    async with open_world(login=login_by(issuer)) as world:
        await left((await came(world, issuer))[0])
        alice, _ = await came(world, issuer, runtime=RB)
        bob, _ = await came(world, issuer, BOB, "hyperty-runtime://a.ex/rc")
        refused = await bob.control("release", runtimeURL=RA)
        assert (refused.code, refused.body["description"]) == (404, f"{RA} is no name of this user")
        assert (await alice.control("release", runtimeURL=RA)).code == 200
        assert (await alice.control("release", runtimeURL=RA)).code == 404
        assert (await came(world, issuer, BOB))[1].code == 200


async def test_without_a_login_there_is_nothing_to_release(autojump_clock):
    async with open_world() as world:
        peer = await world.peer()
        assert (await peer.control("release")).code == 403
        stranger = await world.outsider(RB)
        assert (await stranger.control("release", runtimeURL=RA)).code == 401


@pytest.mark.parametrize("is_legacy", [False, True], ids=["ours", "upstream"])
async def test_nobody_without_a_login_opens_the_name_of_a_user(is_legacy, autojump_clock):
    issuer = Issuer()
    login = login_by(issuer, admission=Admission.ANYBODY)
    async with open_world(login=login, allow_legacy=True) as world:
        await left((await came(world, issuer))[0])
        if is_legacy:
            await (await plain_peer(world, RA)).silence(0.1)
        else:
            refused = await (await world.outsider()).control("open", runtimeURL=RA)
            assert (refused.code, OTHERS in refused.body["description"]) == (409, True)
        assert await world.states() == {}
        assert (await came(world, issuer))[1].code == 200


async def test_the_name_of_a_session_without_a_login_is_free_after_it(autojump_clock):
    issuer = Issuer()
    login = login_by(issuer, admission=Admission.ANYBODY)
    async with open_world(login=login) as world:
        peer = await world.peer()
        await left(peer)
        assert (await came(world, issuer, BOB))[1].code == 200


async def test_the_node_of_another_domain_has_no_name_of_a_user(autojump_clock):
    """The identity provider says who speaks for it; the operator may change that."""
    issuer, node = Issuer(), "domain://msg-node.b.ex"
    async with open_world(login=login_by(issuer)) as world:
        for user in (ALICE, BOB):
            peer = await world.outsider(node)
            peer.stub = f"{node}/protostub/1"
            assert (await opened(peer, issuer.token(sub=user, runtime=node))).code == 200
            await left(peer)


def test_the_limit_of_names_is_none_of_the_nodes_of_other_domains():
    names = UserNames(lambda *_: None, lambda: 0.0)
    alice = Identity(user=ALICE, issuer="https://idp.ex", until=math.inf)
    for number in range(USER_NAMES):
        names.note_opened(f"hyperty-runtime://a.ex/r{number}", alice, None)
    names.note_opened("domain://msg-node.b.ex", alice, None)
    assert len(names) == USER_NAMES
    assert names.refusal(RA, alice).code == 409
    assert names.refusal("domain://msg-node.b.ex", alice) is None


# ---- restart


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.sqlite"


async def test_a_name_stays_its_users_over_a_restart(path):
    issuer = Issuer()
    async with open_world(state=path, login=login_by(issuer, clock=lambda: 0.0)) as world:
        await left((await came(world, issuer))[0])
        await came(world, issuer, runtime=RB)
    async with open_world(state=path, login=login_by(issuer, clock=lambda: 0.0)) as world:
        assert await world.states() == {RB: "detached"}
        for runtime in (RA, RB):
            _, refused = await came(world, issuer, BOB, runtime)
            assert (refused.code, OTHERS in refused.body["description"]) == (409, True)
            assert (await came(world, issuer, ALICE, runtime))[1].code == 200


async def test_a_release_stays_over_a_restart(path):
    issuer = Issuer()
    async with open_world(state=path, login=login_by(issuer, clock=lambda: 0.0)) as world:
        alice, _ = await came(world, issuer)
        assert (await alice.control("release")).code == 202
        bob, _ = await came(world, issuer, BOB, RB)
        assert (await bob.control("release")).code == 202
        await left(bob)
    async with open_world(state=path, login=login_by(issuer, clock=lambda: 0.0)) as world:
        assert (await came(world, issuer, BOB))[1].code == 409
        assert (await came(world, issuer, ALICE, RB))[1].code == 200
        again = await world.outsider()
        token = {"runtimeURL": RA, "token": alice.token}
        assert (await again.control("re-open", **token)).code == 200
        await left(again)
        assert (await came(world, issuer, BOB))[1].code == 200


async def test_thirty_days_begin_with_the_end_of_the_session_over_a_restart(path):
    issuer, now = Issuer(), 0.0
    async with open_world(state=path, login=login_by(issuer, clock=lambda: now)) as world:
        await left((await came(world, issuer))[0])
    now = issuer.now = NAME_LIFE / 2
    async with open_world(state=path, login=login_by(issuer, clock=lambda: now)) as world:
        assert (await came(world, issuer, BOB))[1].code == 409
        now = issuer.now = NAME_LIFE + 1
        assert (await came(world, issuer, BOB))[1].code == 200


# ---- memory


def sizes(exchange):
    """The length of every table of a node that may know the name of a runtime."""
    holders = (
        exchange,
        exchange.names._core,
        exchange.tables,
        exchange.tables.allocation,
        exchange.tables.subscriptions,
    )
    tables = {
        name: len(value)
        for holder in holders
        for name, value in vars(holder).items()
        if hasattr(value, "__len__")
    }
    return {**tables, "when": len(exchange.alarms._when), "due": len(exchange.alarms._heap)}


class Passing:
    """Runtimes that come and go, each with a name of its own."""

    def __init__(self, node, network, issuer):
        self.node, self.network, self.issuer = node, network, issuer
        self.numbers = itertools.count()

    async def pass_by(self, count):
        for number in itertools.islice(self.numbers, count):
            link = await self.network.dial(Kind.WEBSOCKET, self.node.url)
            peer = Peer(link, f"hyperty-runtime://{DOMAIN}/r{number}")
            user = f"user://idp.ex/u{number}"
            token = None if self.issuer is None else self.issuer.token(sub=user)
            assert (await opened(peer, token)).code == 200
            await peer.allocate()
            if self.issuer is not None:
                assert (await peer.control("release")).code == 202
            await left(peer)
            await link.aclose()
        await trio.testing.wait_all_tasks_blocked(0.01)


@asynccontextmanager
async def passing(has_login):
    issuer, network = Issuer() if has_login else None, MemoryNetwork()
    login = {} if issuer is None else {"login": login_by(issuer, clock=lambda: 0.0)}
    config = NodeConfig(domain=DOMAIN, limits=UNLIMITED, **login)
    async with open_node(config, network, NULL_TRACER) as node:
        yield Passing(node, network, issuer)


@pytest.mark.parametrize("count", [100, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize("has_login", [True, False], ids=["released", "no-login"])
async def test_runtimes_that_come_and_go_leave_no_row_in_any_table(
    has_login, count, autojump_clock
):
    async with passing(has_login) as runtimes:
        await runtimes.pass_by(5)
        counters = runtimes.node.counters
        exchange = next(
            one
            for one in gc.get_objects()
            if isinstance(one, Exchange) and one.trace.counters is counters
        )
        before = sizes(exchange)
        assert before["sessions"] == before["_names"] == before["_of"] == before["_idle"] == 0
        await runtimes.pass_by(count)
        assert sizes(exchange) == before
