"""Every rejected request is answered with a code from the closed list; nothing dies of it."""

import json

import pytest

from tests.support.node.node_process import DOMAIN
from tests.support.wire.wire_forms import OWN_FORMS, WIRE_FORMS

CODES = {100, 183, 200, 202, 400, 401, 403, 404, 408, 409, 410, 413, 500, 502, 503, 504}

KILLERS = [
    {"to": ["x"]},
    {"to": 7},
    {"to": None},
    {"to": ""},
    {"to": {}},
    {"from": ["x"]},
    {"from": 7},
    {"type": None},
    {"type": []},
    {"id": None},
    {"id": 1.5},
    {"id": -1},
    {"id": True},
    {"id": 2**64},
    {"id": "0x10"},
    {"id": "\u0661"},
    {"body": []},
    {"body": 7},
    {"body": {"source": 7}},
    {"body": {"via": 7}},
    {"body": {"via": [7]}},
    {"body": {"resources": {"a": 1}}},
    {"body": {"code": 200}},
]
"""What kills upstream's nodes, and its kin (facts of page 11, 5h)."""


@pytest.mark.parametrize("wrong", KILLERS, ids=json.dumps)
async def test_a_message_that_kills_upstreams_nodes_is_refused_and_the_session_kept(join, wrong):
    """MN-03, MN-25, CON-05: 400 where it says whom to tell; else counted."""
    peer = await join()
    message = {
        "id": peer.shown_id(77), "type": "create", "from": peer.part("ua"),
        "to": f"{peer.node}/address-allocation", "body": {"scheme": "comm", "value": {"number": 1}},
    } | wrong  # fmt: skip

    await peer.raw(json.dumps(message).encode())
    heard = await peer.rest()

    assert {one["body"]["code"] for one in heard} <= {400, 401, 404}
    assert len(heard) <= 1
    assert await peer.allocate()


async def test_the_first_malformed_message_of_a_link_is_logged_with_its_reason(join, node):
    """OBS-06: also that of a message which names nobody who could be answered."""
    peer = await join()
    message = {"id": peer.shown_id(77), "type": "read", "from": "no address", "to": peer.node}
    for _ in range(3):
        await peer.raw(json.dumps(message).encode())
    assert await peer.rest() == []
    lines = node.log.read_text().splitlines()
    logged = [line for line in lines if "malformed message" in line and peer.inside in line]
    assert len(logged) == 1
    assert "from" in logged[0]


@pytest.mark.parametrize("missing", ["id", "type", "from", "to", "body"])
@pytest.mark.parametrize("part", ["sm", "address-allocation", "session"])
async def test_a_missing_field_does_not_affect_other_messages(join, missing, part):
    """MN-03, MN-25."""
    peer = await join()
    message = {
        "id": peer.shown_id(5), "type": "create", "from": peer.part("ua"),
        "to": f"{peer.node}/{part}", "body": {},
    }  # fmt: skip
    del message[missing]

    await peer.raw(json.dumps(message).encode())

    assert {one["body"]["code"] for one in await peer.rest()} <= {400, 401}
    assert await peer.allocate()


@pytest.mark.parametrize("type_", ["create", "read", "update", "delete", "execute", "forward"])
@pytest.mark.parametrize("to", ["sm", "address-allocation", "session", "policy", "nothing"])
async def test_a_request_unknown_to_a_part_is_answered(join, type_, to):
    """MN-25, MN-09: a code, from who was asked; not found is only what is no part."""
    peer = await join()
    body = {"message": {"id": 1, "type": "read", "from": peer.part("a"), "to": peer.part("b")}}

    answer = await peer.ask(type_, peer.part("ua"), f"{peer.node}/{to}", **body)

    assert answer["body"]["code"] in CODES - {200, 202, 100, 183, 500}
    assert (answer["body"]["code"] == 404) == (to == "nothing")
    assert answer["body"].get("description") or answer["body"].get("desc")


async def test_every_refusal_says_why_in_words(join):
    """MN-25: `description`, in the peer's own word for it."""
    peer = await join()
    answer = await peer.ask("create", peer.part("ua"), f"{peer.node}/sm", desc="said so")

    assert answer["body"]["code"] == 400
    key = "description" if peer.form in OWN_FORMS else "desc"
    assert answer["body"][key]


@pytest.mark.parametrize(
    ("inflated", "code"),
    [
        ({"a": "x" * 16_385}, 413),
        ({str(number): 1 for number in range(257)}, 413),
        ({"a": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}, 413),
        ({"via": [f"hyperty-runtime://{DOMAIN}/r{n}/s" for n in range(257)]}, 413),
    ],
    ids=["text", "keys", "depth", "via"],
)
async def test_a_too_large_field_is_refused(join, inflated, code):
    """MN-25, CON-05, L4: 413, link kept."""
    peer = await join()
    assert await peer.code("create", peer.part("ua"), f"{peer.node}/sm", **inflated) == code
    assert await peer.allocate()


@pytest.mark.parametrize(
    "text",
    [
        b'{"id":1e400,"type":"read","from":"a","to":"b"}',
        b'{"id":-0,"type":"read","from":"a","to":"b"}',
        b'{"id":NaN}',
        b'{"id":1,"id":2,"type":"read","type":"dance"}',
        b"[" * 100_000,
        b'{"a":' * 10_000,
        b'"\xff\xfe"',
        b"\xed\xa0\x80",
        b"\x00" * 100,
        b'{"id":1,"type":"read","from":"\\ud800","to":"\\ud800"}',
        b"\n" * 1000,
        b"",
    ],
    ids=range(12),
)
async def test_no_text_harms_the_node_or_other_sessions(join, text):
    """CON-05, MN-25."""
    peer, other = await join(), await join()

    await peer.raw(text)

    assert await other.allocate()


async def test_one_sessions_nonsense_is_not_another_sessions_loss(guests):
    """MN-25, MN-01."""
    talkers = [await guests(form) for form in WIRE_FORMS]
    bad = await guests("link")
    for talker in talkers:
        (address,) = await talker.allocate()
        for number in range(20):
            await bad.raw(b'{"id":%d,"type":"read"' % number)
            await bad.say("read", address, f"{talker.inside}/x")
        assert await talker.rest() == []


MALFORMED_ANSWERS = [
    *(b'{"code":%b}' % code for code in (b"0", b"99", b"600", b'"x"', b"null", b"true", b"[200]")),
    b'{"code":200,"value":"\\ud83d"}', b'{"code":200,"value":NaN}', b'{"code":200', b"[]",
    b'{"code":200,"source":"no address"}',
]  # fmt: skip


@pytest.mark.parametrize("body", MALFORMED_ANSWERS, ids=bytes.decode)
async def test_who_has_asked_hears_at_once_that_the_answer_is_malformed(join, body):
    """MN-03, MN-25: a stranger's malformed answer to the same request is none."""
    alice, bob, mallory = [await join() for _ in range(3)]
    sent = await alice.say("read", alice.part("ua"), alice.spelt(f"{bob.inside}/ua"))
    request = await bob.hear()
    ends = {"type": "response", "from": request["to"], "to": request["from"]}

    for peer, number in ((mallory, mallory.shown_id(int(sent))), (bob, request["id"])):
        head = json.dumps({"id": number, **ends}).encode()
        await peer.raw(head[:-1] + b',"body":' + body + b"}")
        assert await peer.rest() == []

    refusal = (await alice.answer_to(sent))["body"]
    assert (refusal["code"], "malformed" in refusal["description"]) == (502, True)
    assert await alice.rest() == []


async def test_a_malformed_provisional_answer_ends_no_request(join):
    """MN-03, MN-25."""
    alice, bob = await join(), await join()
    sent = await alice.say("read", alice.part("ua"), alice.spelt(f"{bob.inside}/ua"))
    request = await bob.hear()
    ends = {"type": "response", "from": request["to"], "to": request["from"]}
    head = json.dumps({"id": request["id"], **ends}).encode()

    await bob.raw(head[:-1] + b',"body":{"code":183,"value":"\\ud83d"}}')
    await bob.answer(request, 200)

    assert (await alice.answer_to(sent))["body"]["code"] == 200


@pytest.mark.parametrize(
    ("written", "code"), [("2XX", 200), ("1XX", 100), ("error", 500), ("404", 404), (200, 200)]
)
async def test_upstreams_spellings_of_codes_are_understood(join, written, code):
    """MN-25, C-04."""
    alice, bob = await join(), await join()
    sent = await alice.say("read", alice.part("ua"), alice.spelt(f"{bob.inside}/ua"))
    request = await bob.hear()

    await bob.say_as(request["id"], "response", request["to"], request["from"], {"code": written})

    assert (await alice.answer_to(sent))["body"]["code"] == code
