"""Runtimes that sleep are woken by Web Push (PFY-09)."""

import stat
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import attrs
import pytest
import trio

from actors.keys.key_file import KeyFileError
from actors.keys.push import PushKeys, open_push_key, public_point
from actors.keys.signing import make_key
from actors.node.connectors.back_ends import BackEnds
from actors.node.connectors.push import PushConfig
from fsm.registry.records import Device, DeviceTable
from specs.limits.node import PUSH_BYTES, PUSH_DEVICES, PUSH_EACH, PUSH_LIFE, PUSH_PATIENCE
from tests.actors.node.connectors.push_service import PushService
from tests.support.node.http_server import open_http_server
from tests.support.node.node_peer import MN, RA, RB, open_world

PUSH = f"{MN}/push"
CONTACT = "mailto:ops@a.ex"


@asynccontextmanager
async def open_push(file=None, key=None, *, permitted=True):
    """Run a push service, and a node that may use it."""
    service = PushService()
    async with open_http_server(service) as server:
        service.server = server
        services = frozenset({server.url} if permitted else ())
        config = PushConfig(
            key=key or make_key("ES256"), contact=CONTACT, file=file, services=services
        )
        offset = datetime.now(UTC).timestamp() - trio.current_time()
        async with open_world(back_ends=BackEnds(push=config), clock_offset=offset) as world:
            yield world, service


async def ask(peer, type_, **body):
    return await peer.ask(type_, f"{peer.runtime}/ua", PUSH, **body)


async def key_of(peer):
    return (await ask(peer, "read")).body["value"]["applicationServerKey"]


def written(subscription):
    keys = {"p256dh": subscription.keys.p256dh, "auth": subscription.keys.auth}
    return {"endpoint": subscription.endpoint, "keys": keys}


async def register(peer, service, keys, device="bob"):
    endpoint = service.endpoint(device, await key_of(peer))
    return await ask(peer, "create", value=written(keys.subscription(endpoint)))


@pytest.fixture
def keys(tmp_path):
    return PushKeys.load(tmp_path / "device.keys")


async def test_a_call_reaches_the_device_of_a_runtime_that_sleeps_and_nobody_can_read_it(keys):
    async with open_push() as (world, service):
        bob = await world.peer(RB)
        assert (await register(bob, service, keys)).code == 200
        await bob.control("close")
        alice = await world.peer(RA)
        answer = await ask(alice, "execute", resource=RB, value={"about": "lunch"})
        assert (answer.code, answer.body["value"]) == (200, {"devices": 1})
        content = await service.next("bob")
        call = keys.read(content)
        assert (call.to, call.from_, call.value) == (RB, f"{RA}/ua", {"about": "lunch"})
        assert (call.user, call.vouched_by) == (None, "none")
        assert b"lunch" not in content


async def test_a_device_that_is_taken_back_is_not_woken(keys):
    async with open_push() as (world, service):
        bob = await world.peer(RB)
        await register(bob, service, keys)
        assert (await ask(bob, "delete")).code == 200
        assert (await ask(bob, "delete")).code == 404
        answer = await ask(bob, "execute", resource=RB)
        assert (answer.code, service.waiting("bob")) == (404, 0)


async def test_devices_are_known_again_after_a_restart(keys, tmp_path):
    file, key = tmp_path / "devices", make_key("ES256")
    async with open_push(file, key) as (world, service):
        await register(await world.peer(RB), service, keys)
        kept = service
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    async with open_push(file, key) as (world, service):
        service.endpoint("bob", await key_of(await world.peer(RB)))
        alice = await world.peer(RA)
        # The former service has another port: it is not permitted any more.
        assert (await ask(alice, "execute", resource=RB)).code == 502
        assert kept.waiting("bob") == 0
        await register(await world.peer("hyperty-runtime://a.ex/rc"), service, keys)
        answer = await ask(alice, "execute", resource="hyperty-runtime://a.ex/rc")
        assert answer.body["value"] == {"devices": 1}


@pytest.mark.parametrize(
    ("status", "code", "is_retried"),
    [(404, 404, False), (410, 404, False), (429, 503, True), (503, 503, True), (400, 502, False)],
)
async def test_what_the_push_service_objects_is_told(keys, status, code, is_retried):
    async with open_push() as (world, service):
        bob = await world.peer(RB)
        await register(bob, service, keys)
        service.refusal = status
        answer = await ask(bob, "execute", resource=RB)
        assert (answer.code, "retryAfter" in answer.body) == (code, is_retried)
        assert answer.body["description"]
        service.refusal = None
        again = await ask(bob, "execute", resource=RB)
        assert again.code == (404 if code == 404 else 200)


async def test_slow_push_services_of_one_caller_delay_no_other(keys, hasty_clock):
    """SEC-43: whoever registers a device chooses how long its push service takes."""
    async with open_push() as (world, service):
        alice, bob = await world.peer(RA), await world.peer(RB)
        carol = await world.peer("hyperty-runtime://a.ex/rc")
        for peer, name in ((alice, "alice"), (carol, "carol"), (bob, "bob")):
            await register(peer, service, keys, name)
        service.stalling = {"alice", "carol"}
        for resource in (RA, carol.runtime) * 5:
            await alice.post("execute", f"{RA}/ua", PUSH, resource=resource)
        with trio.fail_after(PUSH_PATIENCE):
            assert (await ask(alice, "read")).code == 200
            assert (await ask(bob, "execute", resource=RB)).code == 200
        assert service.stalled <= PUSH_EACH


def device(runtime, user=None):
    return Device(runtime=runtime, user=user, endpoint="e", p256dh="p", auth="a", until=0.0)


def test_a_user_has_a_bounded_number_of_devices_and_the_oldest_give_way():
    table = DeviceTable()
    for number in range(PUSH_DEVICES):
        assert table.keep(device(f"r{number}", "u"), float(number)) == ()
    assert table.keep(device("r5", "u"), 50.0) == ()
    assert table.keep(device("other", "v"), 60.0) == ()
    assert table.keep(device("new", "u"), 70.0) == ("r0",)
    assert [one.runtime for one in table.reached_by("v", 70.0)] == ["other"]
    assert len(table.reached_by("u", 70.0)) == PUSH_DEVICES
    assert table.reached_by("r0", 70.0) == ()


def test_a_device_is_forgotten_when_it_is_not_registered_again():
    table = DeviceTable([attrs.evolve(device("r", "u"), until=100.0)])
    assert len(table.reached_by("u", 99.0)) == 1
    assert table.reached_by("u", 100.0) == ()
    table.keep(device("r", "u"), 100.0)
    assert len(table.reached_by("r", 100.0 + PUSH_LIFE - 1)) == 1


def test_all_callers_together_reach_a_device_a_bounded_number_of_times():
    table, called = DeviceTable(), device("r")
    reached = sum(table.may_reach(called, f"caller{number}", 0.0) for number in range(100))
    assert reached == 30
    assert table.may_reach(called, "later", 6.0)


def test_a_caller_that_is_refused_takes_no_call_from_others():
    table, called = DeviceTable(), device("r")
    assert sum(table.may_reach(called, "caller", 0.0) for _ in range(100)) == 5
    assert table.may_reach(called, "other", 0.0)


GOOD = {
    "endpoint": "https://push.example/1",
    "keys": {
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6"
        "SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    },
}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"endpoint": "http://push.example/1"}, 403),
        ({"endpoint": "file:///etc/passwd"}, 400),
        ({"endpoint": "https://user@push.example/1"}, 400),
        ({"endpoint": "https://push.example/1#x"}, 400),
        ({"endpoint": "https://push.example/" + "x" * 2048}, 400),
        ({"endpoint": ""}, 400),
        ({"keys": {"p256dh": "AAAA", "auth": GOOD["keys"]["auth"]}}, 400),
        ({"keys": {"p256dh": GOOD["keys"]["p256dh"], "auth": "AAAA"}}, 400),
        ({"keys": {"p256dh": "!", "auth": "!"}}, 400),
        ({"keys": None}, 400),
    ],
)
async def test_what_is_no_device_is_refused(change, code):
    async with open_push(permitted=False) as (world, _):
        bob = await world.peer(RB)
        assert (await ask(bob, "create", value=GOOD)).code == 200
        answer = await ask(bob, "create", value={**GOOD, **change})
        assert (answer.code, bool(answer.body["description"])) == (code, True)


async def test_a_device_in_a_private_network_is_not_called_unless_the_operator_says_so(keys):
    """SEC-43, S15: whoever registers a device chooses what the node asks."""
    async with open_push(permitted=False) as (world, service):
        bob = await world.peer(RB)
        endpoint = service.endpoint("bob", await key_of(bob)).replace("http:", "https:")
        assert (await ask(bob, "create", value=written(keys.subscription(endpoint)))).code == 200
        answer = await ask(bob, "execute", resource=RB)
        assert (answer.code, service.server.connections) == (503, 0)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"resource": RB, "value": "x" * PUSH_BYTES}, 413),
        ({"resource": "hyperty://a.ex/1"}, 400),
        ({"value": 1}, 400),
    ],
)
async def test_a_call_that_cannot_be_made_is_refused(body, code):
    async with open_push() as (world, _):
        alice = await world.peer(RA)
        assert (await ask(alice, "execute", **body)).code == code
        assert (await ask(alice, "update", **body)).code == 400


def test_the_key_of_a_node_stays_in_its_file(tmp_path):
    made = open_push_key(tmp_path / "push.key")
    assert public_point(open_push_key(tmp_path / "push.key")) == public_point(made)
    assert len(public_point(made)) == 87
    (tmp_path / "other").write_text("{}")
    for path in (tmp_path / "other", tmp_path / "none" / "push.key"):
        with pytest.raises(KeyFileError):
            open_push_key(path)
