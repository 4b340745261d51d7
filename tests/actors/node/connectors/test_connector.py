"""A connector answers always, in time, once; and asks a back end for nobody who is gone."""

from contextlib import asynccontextmanager

import pytest
import trio.testing

from actors.kit.back_ends.requests import BackEndError
from actors.kit.http_client import HttpError
from actors.node.connectors.back_ends import BackEnds
from actors.node.connectors.global_registry import GlobalRecords
from actors.node.connectors.service import Replied, with_value
from fsm.registry.relay import RelayLimits
from specs.addresses.address import GLOBAL_REGISTRY
from tests.support.node.node_peer import RA, RB, open_world

GUID = "user-guid://g"


class Puppet(GlobalRecords):
    """A back end that does what the test says, per GUID; and remembers what became of each."""

    def __init__(self):
        self.held_up = {}
        self.outcomes = {}
        self.started = []
        self.ended = []
        self.most = 0

    async def read(self, guid):
        self.started.append(guid)
        self.most = max(self.most, len(self.started) - len(self.ended))
        try:
            if guid in self.held_up:
                await self.held_up[guid].wait()
        finally:
            self.ended.append(guid)
        outcome = self.outcomes.get(guid, with_value(200, f"of {guid}"))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def publish(self, guid, token):
        return Replied(200)

    async def aclose(self):
        pass

    def hold(self, *names):
        for name in names:
            self.held_up[name] = trio.Event()


@asynccontextmanager
async def open_puppet(limits=None):
    puppet = Puppet()
    limits = limits or RelayLimits(parallel=2, waiting=2, patience=10.0)
    back_ends = BackEnds(global_registry=lambda: puppet, limits=limits)
    async with open_world(back_ends=back_ends) as world:
        yield world, puppet


async def ask(peer, guid=GUID):
    return await peer.ask("read", f"{peer.runtime}/graph-connector", GLOBAL_REGISTRY, resource=guid)


async def post(peer, guid=GUID):
    to, resource = GLOBAL_REGISTRY, guid
    await peer.post("read", f"{peer.runtime}/graph-connector", to, resource=resource)


def guids(*numbers):
    return [f"{GUID}{number}" for number in numbers]


def relayed(world):
    facts = [fact for fact in world.tracer.facts if fact.op == "relay"]
    return [(fact.direction, fact.mid, fact.ref, fact.code) for fact in facts]


async def test_answers_come_from_the_listening_address_and_are_relayed_one_to_one(autojump_clock):
    async with open_puppet() as (world, puppet):
        puppet.outcomes[GUID] = Replied(408, {"description": "away", "value": [1]})
        ra = await world.peer(RA)
        answer = await ask(ra)
        assert answer.body == {"code": 408, "description": "away", "value": [1]}
        assert (answer.from_, answer.to) == (GLOBAL_REGISTRY, f"{RA}/graph-connector")
        (out, in_) = relayed(world)
        assert out[0::2] == ("out", None)
        assert (in_[0], in_[2], in_[3]) == ("in", out[1], 408)


async def test_no_more_is_asked_at_once_and_the_rest_waits_in_order(autojump_clock):
    async with open_puppet() as (world, puppet):
        ra = await world.peer(RA)
        puppet.hold(*guids(1, 2))
        for guid in guids(1, 2, 3, 4):
            await post(ra, guid)
        await trio.sleep(1)
        assert sorted(puppet.started) == guids(1, 2)
        puppet.held_up[guids(2)[0]].set()
        await trio.sleep(1)
        assert puppet.started[2:] == guids(3, 4)
        assert puppet.most == 2


async def test_requests_above_the_limit_get_503_at_once(autojump_clock):
    async with open_puppet() as (world, puppet):
        ra = await world.peer(RA)
        puppet.hold(*guids(1, 2))
        for guid in guids(1, 2, 3, 4):
            await post(ra, guid)
        assert (await ask(ra, guids(5)[0])).code == 503
        assert sorted(puppet.started) == guids(1, 2)


async def test_a_too_slow_request_gets_504_and_is_stopped(autojump_clock):
    async with open_puppet() as (world, puppet):
        ra = await world.peer(RA)
        puppet.hold(GUID)
        start = trio.current_time()
        assert (await ask(ra)).code == 504
        assert trio.current_time() - start == pytest.approx(10.0, abs=0.1)
        await trio.testing.wait_all_tasks_blocked()
        assert puppet.ended == [GUID]


@pytest.mark.parametrize("broken", [HttpError("x", "reset"), BackEndError("garbage")])
async def test_a_broken_back_end_gets_502_and_is_asked_again_next_time(autojump_clock, broken):
    async with open_puppet() as (world, puppet):
        ra = await world.peer(RA)
        puppet.outcomes[GUID] = broken
        answer = await ask(ra)
        assert (answer.code, answer.body["description"]) == (502, broken.reason)
        del puppet.outcomes[GUID]
        assert (await ask(ra)).code == 200


async def test_requests_of_a_session_that_ends_are_given_up_and_others_go_on(autojump_clock):
    async with open_puppet() as (world, puppet):
        ra, rb = await world.peer(RA), await world.peer(RB)
        puppet.hold(*guids(1, 2))
        await post(ra, guids(1)[0])
        await post(ra, guids(2)[0])
        await post(rb, guids(3)[0])
        await trio.sleep(0.1)
        await ra.control("close")
        assert (await rb.hear()).body["value"] == f"of {GUID}3"
        assert sorted(puppet.ended) == guids(1, 2, 3)
        assert world.node.counters.drops["session-gone"] == 2


async def test_one_users_requests_keep_their_order_and_others_do_not_wait(autojump_clock):
    async with open_puppet() as (world, puppet):
        ra = await world.peer(RA)
        puppet.hold(GUID)
        await post(ra)
        await post(ra)
        assert (await ask(ra, guids(1)[0])).code == 200
        assert sorted(puppet.started) == [GUID, *guids(1)]


async def test_a_stopping_node_answers_every_request(autojump_clock):
    async with open_puppet() as (world, puppet):
        ra = await world.peer(RA)
        puppet.hold(GUID)
        await post(ra)
        await trio.sleep(0.1)
    assert puppet.ended == [GUID]


async def test_without_a_connector_requests_are_answered_404(autojump_clock):
    async with open_world() as world:
        ra = await world.peer(RA)
        assert (await ask(ra)).code == 404
        answer = await ra.ask("create", f"{RA}/ua", "domain://qos.a.ex", value={})
        assert answer.code == 404


@pytest.mark.parametrize(
    ("type_", "body"),
    [
        ("read", {}),
        ("read", {"resource": "nonsense"}),
        ("read", {"resource": "user://idp.ex/bob"}),
        ("delete", {"resource": GUID}),
        ("create", {"resource": GUID}),
        ("create", {"resource": GUID, "value": "eyJ.jwt"}),
        ("create", {"resource": GUID, "value": "a.b.c"}),
        ("create", {"resource": GUID, "value": "bnVsbA.e30.x"}),
        ("create", {"resource": GUID, "value": "e30.e30.x y"}),
    ],
)
async def test_invalid_requests_are_refused_before_the_back_end_is_asked(
    autojump_clock, type_, body
):
    async with open_puppet() as (world, _):
        ra = await world.peer(RA)
        answer = await ra.ask(type_, f"{RA}/graph-connector", GLOBAL_REGISTRY, **body)
        assert answer.code == 400
        assert relayed(world) == []
