"""What only the form made of HTTP requests has (CON-06)."""

import json

import pytest
import trio

from tests.support.wire.wire_socket import Left
from tests.support.wire.wire_sync import values


@pytest.fixture
async def rest(guests):
    """Peers that speak over HTTP."""
    guests.form = "rest"
    return guests


async def reported(rest, peer, *values):
    """Have somebody tell a peer something; it has come to the node when this returns."""
    teller = await rest("link")
    for value in values:
        await teller.say("create", teller.part("ua"), peer.part("here"), value=value)
    await teller.rest()


async def test_an_answer_that_is_cut_is_there_to_be_asked_for_again(rest):
    """CON-06: nothing is lost, nothing doubled."""
    peer = await rest()
    await reported(rest, peer, 1)
    first = await peer.wire.ask("GET", "/messages?after=0")
    again = await peer.wire.ask("GET", "/messages?after=0")
    assert first.body == again.body

    peer.wire.read = 1
    await reported(rest, peer, 2)

    assert values([await peer.hear()]) == [2]


async def test_a_post_of_the_same_number_is_taken_once(rest):
    """CON-06."""
    peer, other = await rest(), await rest("link")
    message = {
        "id": 77, "type": "create", "from": peer.part("ua"), "to": other.part("here"),
        "body": {"value": 1},
    }  # fmt: skip
    line = json.dumps(message).encode()

    statuses = [
        (await peer.wire.ask("POST", f"/messages?number={number}", line)).status
        for number in (1, 1, 3, 2)
    ]

    assert statuses == [202, 202, 409, 202]
    assert [(await other.hear())["id"] for _ in range(2)] == [77, 77]
    assert await other.rest() == []


@pytest.mark.parametrize("after", ["99", "x", "-1", "", "9" * 40])
async def test_unsent_messages_cannot_be_acknowledged(rest, after):
    """CON-06: 400, and the session goes on."""
    peer = await rest()

    answer = await peer.wire.ask("GET", f"/messages?after={after}")

    assert (answer.status, answer.json["code"]) == (400, 400)
    assert await peer.allocate()


async def test_a_later_poll_is_answered_instead_of_an_earlier_one(rest):
    """CON-06: 409 at once."""
    peer = await rest()
    send, receive = trio.open_memory_channel(2)

    async def wait():
        await send.send((await peer.wire.ask("GET", "/messages?after=0")).status)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        nursery.start_soon(wait)
        assert await receive.receive() == 409
        await reported(rest, peer, 1)
        assert await receive.receive() == 200


async def test_messages_come_as_events_too(rest):
    """CON-06: numbered, and asked for again by the number of the last."""
    peer = await rest()
    await reported(rest, peer, 1, 2, 3)

    came = []
    while len(came) < 3:
        since = {"accept": "text/event-stream", "last-event-id": str(len(came))}
        streamed = await peer.wire.ask("GET", "/messages", **since)
        assert streamed.headers["content-type"] == "text/event-stream"
        came += [part for part in streamed.body.split(b"\n\n") if part.startswith(b"id")]

    assert [event.partition(b"\n")[0] for event in came] == [b"id: 1", b"id: 2", b"id: 3"]
    read = [json.loads(event.partition(b"data: ")[2]) for event in came]
    assert values(read) == [1, 2, 3]


async def test_without_a_token_there_are_no_messages(rest):
    """MN-05: 401, or 410 for a token of no session."""
    peer = await rest.outsider()
    assert (await peer.wire.ask("GET", "/messages?after=0")).status == 401
    assert (await peer.wire.ask("POST", "/messages", b"{}")).status == 401
    peer.wire.token = "0" * 64
    assert (await peer.wire.ask("GET", "/messages?after=0")).status == 410
    assert (await peer.wire.ask("POST", "/messages", b"{}")).status == 410


async def test_a_web_page_of_elsewhere_opens_no_session(rest):
    """S10: 403."""
    peer = await rest.outsider()
    answer = await peer.wire.ask("POST", "/session", b"{}", origin="http://evil.example")
    assert (answer.status, answer.json["code"]) == (403, 403)


async def test_a_web_page_of_the_nodes_own_address_opens_one(rest):
    """S10: what it asks is looked at, and is no request: 400."""
    peer = await rest.outsider()
    own = rest.node.ready["http_url"].rstrip("/")
    answer = await peer.wire.ask("POST", "/session", b"{}", origin=own)
    assert (answer.status, answer.json["code"]) == (400, 400)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"id":1}', b'{"id":1,"type":"read","from":"a","to":"b"}']
)
async def test_a_request_without_a_session_is_answered_so(rest, body):
    """MN-04: 400."""
    peer = await rest.outsider()
    answer = await peer.wire.ask("POST", "/session", body)
    assert (answer.status, answer.json["code"]) == (400, 400)
    assert answer.json["description"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "OPTIONS"])
async def test_other_methods_are_not_served(rest, method):
    """CON-06: 405."""
    peer = await rest()
    answer = await peer.wire.ask(method, "/messages")
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, POST"


async def test_a_large_body_is_refused(rest):
    """CON-05: 413, and the session goes on."""
    peer = await rest()
    answer = await peer.wire.ask("POST", "/messages", b"y" * 300_000)
    assert (answer.status, answer.json["code"]) == (413, 413)
    assert await peer.allocate()


async def test_too_many_messages_in_a_body_are_refused(rest):
    """CON-05: 400, none is taken."""
    peer = await rest()
    line = json.dumps(
        {"id": 1, "type": "create", "from": peer.part("a"), "to": peer.part("b"), "body": {}}
    ).encode()
    answer = await peer.wire.ask("POST", "/messages", b"\n".join([line] * 70))
    assert answer.status == 400
    assert await peer.rest() == []


async def test_each_open_is_a_link_of_its_own(rest):
    """MN-21: nobody can ask for two sessions over one link, as there is none before."""
    one, other = await rest(), await rest()
    assert one.token != other.token
    assert await one.allocate()
    assert await other.allocate()


async def test_an_invalid_http_request_is_refused(rest):
    """CON-06: 400, and the node goes on."""
    peer = await rest()
    host, _, port = peer.urls["http_url"].removeprefix("http://").rpartition(":")
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        await stream.send_all(b"\x82\x82\x00\x00\x00\x00{}\r\n\r\n")
        assert (await stream.receive_some(100)).startswith(b"HTTP/1.1 400")
    assert await peer.allocate()


async def test_a_resuming_client_acknowledges_what_it_has_read(rest):
    """MN-06: what was not read is given to the new link, what was is not."""
    peer = await rest()
    await reported(rest, peer, 1, 2, 3)
    assert (await peer.wire.ask("GET", "/messages?after=0")).body
    params = {"runtimeURL": peer.runtime, "token": peer.token}
    reopen = {
        "id": 9, "type": "execute", "from": peer.stub, "to": f"{peer.node}/session",
        "body": {"method": "re-open", "params": params},
    }  # fmt: skip

    reopened = await peer.wire.ask("POST", "/session?after=1", json.dumps(reopen).encode())

    assert reopened.json["body"]["code"] == 200
    peer.wire.token, peer.wire.read = reopened.json["body"]["value"]["sessionToken"], 0
    assert values([await peer.hear(), await peer.hear()]) == [2, 3]


async def test_a_session_may_go_on_over_another_form(rest):
    """MN-04: the link made of requests is gone then: 410."""
    peer = await rest()
    await reported(rest, peer, 1)
    newer = await rest.outsider("link", peer.name)
    await newer.reopen(peer.token)

    assert values([await newer.hear()]) == [1]
    with pytest.raises(Left):
        await peer.farewell()
