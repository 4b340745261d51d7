"""A sync manager serves the components of its own runtime, and nobody else (SYN-01, M-32..M-52)."""

import pytest

import actors
from actors.runtime.config import RuntimeConfig
from actors.runtime.sync.schemas import scheme_for
from specs.errors import BadMessageError
from specs.message import MessageType
from tests.support.node.node_peer import RB, Peer
from tests.support.runtime.domain import Echo
from tests.support.runtime.parties import SCHEMA, neighbour, parties
from transports.link import Kind
from transports.memory import MemoryNetwork

HA, STUB = "hyperty://a.example/ha", "hyperty-runtime://a.example/ra/p2phandler/1"
NEW = {"reporter": HA, "data": {}}
ASKED = {
    "create": (MessageType.CREATE, {"schema": SCHEMA, "value": NEW}),
    "store": (MessageType.CREATE, {"schema": SCHEMA, "value": NEW, "store": True}),
    "resume": (MessageType.CREATE, {"resume": True, "store": True, "schema": SCHEMA}),
    "invite": (MessageType.CREATE, {"authorise": [HA], "schema": SCHEMA, "value": {}}),
    "allow": (MessageType.CREATE, {"observer": HA}),
    "delegate": (MessageType.CREATE, {"delegate": HA}),
    "take": (MessageType.CREATE, {"part": 1, "parts": 1, "number": 1}),
    "change": (MessageType.UPDATE, {"attribute": "t", "value": 1}),
    "delete": (MessageType.DELETE, {}),
    "observe": (MessageType.SUBSCRIBE, {}),
    "leave": (MessageType.UNSUBSCRIBE, {}),
    "expel": (MessageType.UNSUBSCRIBE, {"observer": HA}),
    "a schema": (MessageType.READ, {}),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=list(ASKED))
async def test_a_component_of_another_runtime_is_refused(asked, autojump_clock):
    async with parties() as (alice, bob):
        url = await alice.create(t=0)
        type_, body = asked
        answer = await bob.ask(type_, alice.manager, **{"resource": url, **body})
        assert answer.code == 403
        assert answer.body["description"].startswith("a sync manager serves the components")
        assert (await alice.change(url, "t", 1)).body["version"] == 2


async def test_a_neighbour_of_the_reporter_deletes_no_child(autojump_clock):
    async with parties() as (alice, _):
        url = await alice.create()
        child = f"{alice.url}#1"
        body = {"resource": child, "value": 1}
        assert (
            await alice.ask(MessageType.CREATE, f"{url}/children/resources", **body)
        ).code == 200
        beside = await neighbour(alice, "beside")
        for party, code in ((beside, 403), (alice, 200), (alice, 404)):
            answer = await party.ask(MessageType.DELETE, resource=url, child=child)
            assert answer.code == code


def test_only_a_part_of_a_runtime_describes_a_link():
    assert scheme_for("connection", STUB) == "connection"
    assert scheme_for("Communication", HA) == "comm"
    with pytest.raises(BadMessageError, match="connection"):
        scheme_for("connection", HA)


async def test_an_object_of_an_older_runtime_is_handed_to_nobody(autojump_clock):
    """SYN-26 left: also a hyperty that answers whatever it is asked takes none over."""
    network = MemoryNetwork()
    async with (
        actors.open_node("a.ex", network=network) as node,
        actors.open_runtime(
            RuntimeConfig(domain="a.ex", name="ra", node=node.url), network=network
        ) as here,
    ):
        heir = await here.deploy(Echo)
        peer = await Peer(await network.dial(Kind.WEBSOCKET, node.url), RB).open()
        [url] = await peer.allocate("comm")
        asked = {"id": 1, "type": "create", "from": f"{RB}/h", "to": f"{RB}/sm"}
        message = {**asked, "body": {"resource": url, "delegate": heir.url}}
        answer = await peer.ask("forward", url, heir.url, message=message)
        why = "objects are not handed over"
        assert (answer.code, answer.body["description"]) == (403, why)
