"""Upstream's suite `connect`, and beyond: how a stub comes, gets no message, and leaves."""

import json

import pytest
import trio

from tests.support.node.node_process import DOMAIN
from tests.support.wire.wire_forms import WIRE_FORMS, needs
from tests.support.wire.wire_peer import PATIENCE
from tests.support.wire.wire_socket import Left, Refused, open_wire
from tests.support.wire.wire_speakers import FORMS


async def test_a_new_connection_is_sent_nothing_unrequested(join):
    """CON-05: there is no welcome message."""
    peer = await join()

    assert await peer.rest() == []


async def test_a_session_is_open_for_messages_at_once(join):
    """MN-04, M-14."""
    peer = await join()

    assert len(await peer.allocate()) == 1


async def test_an_open_is_answered_with_a_token(join):
    """MN-04, M-14; the plain form's answer is that it may stay."""
    peer = await join.outsider()

    opened = await peer.open()

    if peer.form == "plain":
        assert opened is None
    else:
        assert opened["type"] == "response"
        assert opened["body"]["code"] == 200
        assert len(peer.token) >= 32


async def test_an_answer_has_the_ends_swapped_and_the_id_as_it_came(join):
    """CON-05, MN-25."""
    peer = await join()
    id_ = peer.shown_id(4711)
    to = f"{peer.node}/address-allocation"

    await peer.say_as(
        id_, "create", peer.part("ua"), to, {"scheme": "comm", "value": {"number": 1}}
    )
    answer = await peer.hear()

    assert set(answer) == {"id", "type", "from", "to", "body"}
    assert (answer["id"], answer["type"]) == (id_, "response")
    assert (answer["from"], answer["to"]) == (to, peer.part("ua"))


@pytest.mark.parametrize("id_", [12, "12"])
@pytest.mark.parametrize("type_", ["create", "CREATE"])
@pytest.mark.parametrize("scheme", ["runtime", "hyperty-runtime"])
@needs("an answer to close")
async def test_our_own_form_answers_in_normal_form_to_any_spelling(join, id_, type_, scheme):
    """CON-05: dialects are echoed to upstream's stubs only."""
    peer = await join()
    from_ = f"{scheme}://{DOMAIN}/{peer.name}/ua"
    body = {"scheme": "comm", "value": {"number": 1}}

    await peer.say_as(id_, type_, from_, f"{peer.node}/address-allocation", body)
    answer = await peer.hear()

    assert (answer["id"], answer["type"], answer["to"]) == (12, "response", peer.part("ua"))


@pytest.mark.parametrize("id_", [12, "12"])
@pytest.mark.parametrize("type_", ["create", "CREATE"])
@pytest.mark.parametrize("scheme", ["runtime", "hyperty-runtime"])
@pytest.mark.parametrize("legacy", ["plain", "session"])
async def test_upstreams_stubs_are_answered_as_they_spell(guests, legacy, id_, type_, scheme):
    """CON-05, MN-17."""
    peer = await guests(legacy)
    from_ = f"{scheme}://{DOMAIN}/{peer.name}/ua"
    body = {"scheme": "comm", "value": {"number": 1}}

    await peer.say_as(id_, type_, from_, f"{peer.node}/address-allocation", body)
    answer = await peer.hear()

    assert answer["id"] == id_
    assert answer["type"] == ("RESPONSE" if type_.isupper() else "response")
    assert answer["to"] == from_


@pytest.mark.parametrize("frame", [b"{", b"hello", b"[]", b"{}", b'"x"', b"7", b"null"])
async def test_an_unreadable_message_affects_no_other_message(join, frame):
    """CON-05, MN-25: counted, and the link is kept."""
    peer = await join()

    await peer.raw(frame)

    assert await peer.allocate()


@pytest.mark.parametrize(
    "wrong",
    [{"type": "dance"}, {"type": 7}, {"id": 0, "type": "create"}, {"body": "text"}, {"body": None}],
)
async def test_a_malformed_request_with_a_sender_gets_400(join, wrong):
    """MN-03, MN-25, CON-05."""
    peer = await join()
    message = {
        "id": peer.shown_id(9), "type": "create", "from": peer.part("ua"),
        "to": f"{peer.node}/sm", "body": {},
    } | wrong  # fmt: skip

    await peer.raw(json.dumps(message).encode())

    if wrong.get("id") == 0:
        assert await peer.rest() == []
    else:
        assert (await peer.hear())["body"]["code"] == 400
    assert await peer.allocate()


@pytest.mark.parametrize(
    "value", [rb'"\ud83d"', b"NaN", b"1e400", b"{"], ids=["half", "NaN", "1e400", "cut"]
)
async def test_a_request_that_is_no_json_gets_400_at_once_if_its_head_can_be_read(join, value):
    """MN-03, MN-25, CON-05."""
    peer = await join()
    head = {
        "id": peer.shown_id(9), "type": "create", "from": peer.part("ua"),
        "to": f"{peer.node}/sm",
    }  # fmt: skip

    await peer.raw(json.dumps(head).encode()[:-1] + b',"body":{"value":' + value + b"}}")

    answer = await peer.hear()
    assert (answer["id"], answer["to"]) == (peer.shown_id(9), peer.part("ua"))
    assert answer["body"]["code"] == 400
    assert await peer.allocate()


@needs("frames of WebSocket")
async def test_a_binary_frame_is_read_like_text_or_counted_and_other_links_are_unaffected(join):
    """CON-05."""
    peer = await join()
    other = await join()

    await peer.wire.send_bytes(b"\x82\x82\x00\x00\x00\x00{}")

    assert await other.allocate()
    with trio.move_on_after(1):
        await peer.allocate()
    assert await other.allocate()


@needs("a link that a large frame ends")
async def test_a_frame_over_the_limit_is_refused_and_the_link_closed(join):
    """CON-05: 413, then close 1009."""
    peer = await join()
    await peer.raw(b'{"x":"' + b"y" * 300_000 + b'"}')

    with pytest.raises(Left) as left:
        await peer.farewell()

    assert left.value.code == 1009
    codes = [message["body"].get("code") for message in peer.heard]
    assert codes == [413]


async def test_a_message_over_the_limit_is_refused_and_the_link_kept(join):
    """CON-05: 413, link kept."""
    peer = await join()
    text = "y" * 17_000

    assert await peer.code("create", peer.part("ua"), f"{peer.node}/sm", x=text) == 413
    assert await peer.allocate()


async def test_leaving_closes_the_link_and_the_session(join):
    """MN-07, M-16."""
    peer, other = await join(), await join()
    (mine,) = await peer.allocate()

    await peer.close()
    with pytest.raises(Left) as left:
        await peer.farewell()

    assert left.value.code == 1000
    assert await other.code("read", other.part("ua"), mine) == 404


@needs("an answer to close")
async def test_a_close_is_answered_before_the_link_goes(join):
    """MN-07, M-16: 200, then closed."""
    peer = await join()

    answer = await peer.control("close")

    assert answer["body"]["code"] == 200


async def test_an_empty_domain_of_an_outsider_is_not_served(node):
    """POL-18: paths that are none of ours are refused at the handshake."""
    base = node.urls["url"].removesuffix("/link")
    for path in ("/", "/nothing", "/link/deeper", "/ws/7", "/stub"):
        with pytest.raises(Refused):
            await open_wire(base + path, "protofly.v1")


@pytest.mark.parametrize("query", ["", "?runtimeURL=", "?x=1", "?runtimeURL=nonsense"])
async def test_a_plain_stub_that_names_no_runtime_is_shown_out(node, query):
    """MN-04, POL-18."""
    wire = await open_wire(node.urls["legacy_url"] + query)
    with pytest.raises(Left), trio.fail_after(PATIENCE):
        await wire.to_its_end()
    await wire.abandon()


async def test_our_form_needs_its_subprotocol(node):
    """CON-05."""
    with pytest.raises(Refused):
        await open_wire(node.urls["url"])


@needs("several messages a frame")
async def test_a_frame_of_our_form_holds_many_messages(join):
    """CON-05: a bad line harms no other."""
    peer = await join()
    good = {
        "type": "unsubscribe", "from": peer.part("sm"), "to": f"{peer.node}/sm",
        "body": {"resources": [peer.runtime]},
    }  # fmt: skip
    lines = [json.dumps(good | {"id": number}) for number in (101, 102, 103)]

    await peer.raw("\n".join([lines[0], "{nonsense", lines[1], "", lines[2]]).encode())

    assert [(await peer.hear())["id"] for _ in lines] == [101, 102, 103]


@pytest.mark.parametrize("legacy", ["plain", "session"])
async def test_upstreams_forms_hold_one_message_a_frame(guests, legacy):
    """CON-05: two in a frame are none, and the first is answered so."""
    peer = await guests(legacy)
    one = {
        "id": 5, "type": "unsubscribe", "from": peer.part("sm"), "to": f"{peer.node}/sm",
        "body": {"resources": [peer.runtime]},
    }  # fmt: skip
    await peer.raw(f"{json.dumps(one)}\n{json.dumps(one | {'id': 6})}".encode())

    (answer,) = await peer.rest()
    assert (int(answer["id"]), answer["body"]["code"]) == (5, 400)


async def test_the_command_of_another_runtime_disconnects_no_session(guests):
    """MN-07, MN-21: the plain form's command is about its own session only."""
    peer = await guests("plain")

    for named in ("runtime://a.ex/other", "nonsense", 7):
        await peer.raw(json.dumps({"cmd": "disconnect", "body": {"runtimeURL": named}}).encode())

    assert await peer.allocate()


async def test_every_form_is_announced(node):
    """MN-26: what the node serves is what its ready line says."""
    assert all(node.urls[name] for name in ("url", "legacy_url", "session_url", "rest_url"))
    assert set(FORMS) == set(WIRE_FORMS)
