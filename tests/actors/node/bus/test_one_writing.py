"""A message for many is written once, and once more for each way to spell it (SYN-16, N3, S12)."""

from collections import Counter

import orjson
import pytest

from tests.support.node.legacy_peer import plain_peer, session_peer
from tests.support.node.node_peer import RA, SM, open_world
from transports import codec

OBSERVERS = 1000
OLD_OBSERVERS = 12
MARK = "one update for everybody"


@pytest.fixture
def written(monkeypatch):
    """Count how often the marked update is written, by the shape of what is written."""
    count = Counter()

    class Pen:
        JSONDecodeError = orjson.JSONDecodeError
        loads = staticmethod(orjson.loads)

        @staticmethod
        def dumps(raw):
            line = orjson.dumps(raw)
            if MARK.encode() in line:
                count[line] += 1
            return line

    monkeypatch.setattr(codec, "orjson", Pen)
    return count


async def reported(world):
    """Let a reporter come; return it, its object and where its changes go."""
    reporter = await world.peer(RA)
    (obj,) = await reporter.allocate("comm")
    return reporter, obj, f"{obj}/changes"


async def observing(world, number, path):
    peer = await world.peer(f"hyperty-runtime://a.ex/o{number}")
    answer = await peer.ask("subscribe", f"{peer.runtime}/sm", SM, resources=[path])
    assert answer.code == 200
    return peer


async def publish(reporter, obj, path):
    """Send an update as raw JSON, so that the peer of this test writes nothing itself."""
    change = {"version": 2, "attribute": "title", "value": MARK}
    update = {"id": 77, "type": "update", "from": obj, "to": path, "body": change}
    await reporter.raw(orjson.dumps(update))


@pytest.mark.timeout(240)
async def test_an_update_to_a_thousand_observers_is_written_once(written, autojump_clock):
    async with open_world() as world:
        reporter, obj, path = await reported(world)
        peers = [await observing(world, number, path) for number in range(OBSERVERS)]

        await publish(reporter, obj, path)
        heard = [await peer.hear() for peer in peers]

    assert {update.body["value"] for update in heard} == {MARK}
    assert list(written.values()) == [1]


async def old_observer(world, number, path, make):
    """Let one of upstream's stubs observe: ids as text, some in capitals."""
    old = await make(world, f"runtime://a.ex/old{number}")
    kind = "SUBSCRIBE" if number % 2 else "subscribe"
    asker = f"{old.runtime}/sm"
    answer = await old.ask(id="5", type=kind, from_=asker, to=SM, body={"resources": [path]})
    assert answer["body"]["code"] == 200
    return old


@pytest.mark.parametrize("make", [plain_peer, session_peer], ids=["plain", "session"])
async def test_a_message_is_encoded_once_more_for_each_wire_form(make, written, autojump_clock):
    async with open_world(allow_legacy=True) as world:
        reporter, obj, path = await reported(world)
        ours = [await observing(world, number, path) for number in range(3)]
        olds = [await old_observer(world, n, path, make) for n in range(OLD_OBSERVERS)]

        await publish(reporter, obj, path)
        assert {(await peer.hear()).id for peer in ours} == {77}
        heard = [await old.hear() for old in olds]

    assert {notices["id"] for notices in heard} == {"77"}
    assert {notices["type"] for notices in heard} == {"update", "UPDATE"}
    assert list(written.values()) == [1, 1, 1]
