"""Sessions outlive links: tokens, coming back, taking over, what waits meanwhile, expiry."""

import json

import pytest

from tests.support.wire.wire_forms import needs
from tests.support.wire.wire_socket import Left
from tests.support.wire.wire_sync import an_object, change, observe, values


async def lost(peer, *, seen_by):
    """Lose a peer's link, and wait until the node knows it."""
    await peer.vanish()
    (address,) = await seen_by.allocate()
    await seen_by.say("create", address, peer.inside, value="are you there?")
    await seen_by.rest()


@pytest.mark.parametrize("method", ["create", "subscribe", "read", "update", "execute", "delete"])
@needs("a token")
async def test_nothing_is_done_before_a_session_is_open(join, method):
    """MN-03, I-M1, POL-18: 401."""
    outsider = await join.outsider()
    for to in (f"{outsider.node}/address-allocation", f"{outsider.node}/sm", outsider.part("x")):
        assert await outsider.code(method, outsider.part("ua"), to) == 401


@needs("a token")
async def test_events_before_a_session_are_not_delivered(join):
    """MN-03, MN-25, I-M1."""
    alice, bob = await join(), await join()
    thing = await an_object(alice)
    await observe(alice, thing, bob)
    outsider = await join.outsider()

    await outsider.say("update", thing, f"{thing}/changes", value="forged")
    assert await outsider.code("read", outsider.part("x"), alice.part("y")) == 401

    assert values(await bob.rest()) == []


@needs("a token")
async def test_an_open_without_the_token_takes_no_foreign_session(join):
    """MN-04, I-M2, C-84, U-39, S2: 409, and the session goes on."""
    peer = await join()
    thief = await join.outsider(name=peer.name)

    assert (await thief.open())["body"]["code"] == 409
    assert (await thief.open(token="0" * len(peer.token)))["body"]["code"] == 409

    assert await peer.allocate()
    assert await thief.code("read", peer.part("ua"), thief.part("x")) == 401


@needs("a token", "a link that its token leaves")
async def test_opening_with_the_token_replaces_the_link(join):
    """MN-04, MN-21, I-M2: the newest link owns the session, the older one is left."""
    peer = await join()
    (address,) = await peer.allocate()
    newer = await join.back(peer)

    assert (await newer.open(token=peer.token))["body"]["code"] == 200
    with pytest.raises(Left):
        await peer.farewell()

    assert await newer.code("read", address, newer.part("nobody")) == 404


async def test_a_new_plain_session_takes_the_old_one_over(guests):
    """MN-04, MN-06, MN-21: its URL is all it has; the newest link owns the session."""
    peer = await guests("plain")
    (address,) = await peer.allocate()

    newer = await guests("plain", peer.name)
    with pytest.raises(Left):
        await peer.farewell()

    assert await newer.code("read", address, newer.part("nobody")) == 404


async def test_the_plain_form_has_its_url_and_no_token(guests):
    """MN-04, C-84: who has a token is not claimed away by a URL."""
    for form in ("link", "session"):
        peer = await guests(form)
        thief = await guests.outsider("plain", peer.name)

        assert (await thief.hear())["body"]["code"] == 409
        with pytest.raises(Left):
            await thief.farewell()
        assert await peer.allocate()


@needs("re-open")
async def test_a_resumed_session_has_its_addresses(join):
    """MN-06, I-M3, M-15: addresses, paths, and what was sent meanwhile, in order."""
    alice, bob = await join(), await join()
    (hers,) = await alice.allocate()
    thing = await an_object(alice)
    await observe(alice, thing, bob)
    (his,) = await bob.allocate()
    await lost(bob, seen_by=alice)

    for number in range(5):
        await change(alice, thing, number)
    sent = await alice.say("create", hers, his, value="asked")
    await alice.rest()
    again = await join.back(bob)
    answer = await again.reopen(bob.token)

    assert answer["body"]["code"] == 200
    heard = [message for message in await again.rest() if message["from"] in {hers, thing}]
    assert values(heard) == [0, 1, 2, 3, 4, "asked"]
    await again.answer(heard[-1])
    assert (await alice.answer_to(sent))["body"]["code"] == 200
    await change(alice, thing, "live")
    assert values([await again.hear()]) == ["live"]


async def test_by_the_plain_form_too_nothing_is_lost_meanwhile(guests):
    """MN-06, MN-27: queued until it comes again."""
    alice, bob = await guests("link"), await guests("plain")
    (his,) = await bob.allocate()
    await lost(bob, seen_by=alice)
    await alice.say("create", alice.part("ua"), his, value="asked")
    await alice.rest()

    again = await guests("plain", bob.name)

    assert "asked" in values(await again.rest())


@needs("re-open")
async def test_a_wrong_token_reopens_nothing(join):
    """MN-06, I-M2, S2: 401."""
    peer = await join()
    thief = await join.outsider(name=peer.name)
    wrong = {"0" * len(peer.token), peer.token[:-1], peer.token + "0", peer.token.upper() + "x"}

    for token in sorted(wrong):
        assert (await thief.reopen(token))["body"]["code"] == 401

    assert await peer.allocate()


@needs("re-open")
async def test_the_token_of_one_runtime_is_none_of_another(join):
    """MN-06, I-M2, S2."""
    peer, other = await join(), await join()
    thief = await join.outsider(name=peer.name)

    assert (await thief.reopen(other.token))["body"]["code"] == 401


@needs("re-open")
async def test_an_unknown_session_is_gone(join):
    """MN-06, MN-08, M-15: 410, then an open begins anew."""
    outsider = await join.outsider()

    assert (await outsider.reopen("0" * 64))["body"]["code"] == 410
    assert (await outsider.open())["body"]["code"] == 200


@needs("re-open")
async def test_a_session_that_was_closed_is_not_reopened(join):
    """MN-07, M-16: 410, and nothing of it is left."""
    peer, other = await join(), await join()
    (address,) = await peer.allocate()
    await peer.close()
    with pytest.raises(Left):
        await peer.farewell()
    again = await join.back(peer)

    assert (await again.reopen(peer.token))["body"]["code"] == 410
    # A node that was started a moment ago does not know who comes back.
    assert await other.code("read", other.part("x"), address) in {404, 503}


async def test_a_close_releases_everything_and_harms_no_other(join):
    """MN-07, I-A7, I-M4."""
    peer, other = await join(), await join()
    (mine,), (hers,) = await peer.allocate(), await other.allocate()
    await peer.close()
    with pytest.raises(Left):
        await peer.farewell()

    again = await join(name=peer.name)

    assert await again.code("read", mine, again.part("x")) == 401
    assert await other.code("read", hers, other.part("nobody")) == 404


@needs("a token", "a link before its session")
async def test_a_link_has_one_session(join):
    """MN-21: 409 for a second runtime."""
    peer, name = await join(), join.named().name
    other = await join.outsider(name=name)
    other.wire, peer_wire = peer.wire, other.wire
    await peer_wire.abandon()

    assert (await other.open())["body"]["code"] == 409
    assert await peer.allocate()


async def test_a_runtime_is_not_another_whose_name_begins_alike(join):
    """MN-21, U-33."""
    peer = await join()
    longer = await join(name=f"{peer.name}0")

    assert await longer.code("read", peer.part("x"), longer.part("y")) == 401
    assert await peer.allocate()
    assert await longer.allocate()


@pytest.mark.parametrize(
    "runtime",
    ["hyperty://a.ex/x", "hyperty-runtime://a.ex", "hyperty-runtime://a.ex/a/b", "text", 7, None],
)
async def test_only_a_runtime_has_a_session(guests, runtime):
    """MN-04, MN-21: 400."""
    outsider = await guests.outsider("link")
    answer = await outsider.ask(
        "execute", outsider.stub, f"{outsider.node}/session",
        method="open", params={"runtimeURL": runtime},
    )  # fmt: skip
    assert answer["body"]["code"] == 400


@pytest.mark.parametrize("type_", ["dance", "", None, 7, "read"])
async def test_upstreams_session_control_knows_three_words(guests, type_):
    """MN-04, CON-05: 400."""
    outsider = await guests.outsider("session")
    frame = {"id": 3, "type": type_, "from": outsider.runtime, "to": "mn:/session"}
    await outsider.raw(json.dumps(frame).encode())

    answer = await outsider.hear()

    assert (answer["id"], answer["from"], answer["body"]["code"]) == (3, "mn:/session", 400)


async def test_a_runtime_cannot_open_a_session_as_another_runtime(guests):
    """MN-04, I-B10: `from` must be of the runtime that is named."""
    outsider, other = await guests.outsider("link"), await guests("link")
    answer = await outsider.ask(
        "execute", other.stub, f"{outsider.node}/session",
        method="open", params={"runtimeURL": outsider.runtime},
    )  # fmt: skip
    assert answer["body"]["code"] == 401


@needs("ping by control")
async def test_a_ping_is_answered(join):
    """MN-08, M-17."""
    peer = await join()
    assert (await peer.control("ping"))["body"]["code"] == 200


@pytest.mark.parametrize("legacy", ["plain", "session"])
async def test_upstreams_forms_are_alive_as_long_as_their_link(guests, legacy):
    """MN-08, M-17: nothing but pings of WebSocket tell them apart from the dead."""
    peer = await guests(legacy)
    await peer.wire.send_bytes(b"\x89\x80\x00\x00\x00\x00")

    assert await peer.allocate()


async def test_the_token_is_sent_to_no_other_session(join):
    """MN-05, I-M2, S11: not in messages to others, not in the node's log."""
    alice, bob = await join(), await join()
    await alice.say(
        "create", alice.stub, bob.spelt(f"{bob.inside}/ua"), via=[alice.stub], source=alice.stub
    )

    heard = await bob.hear()

    if alice.token:
        assert alice.token not in json.dumps(heard)
        assert alice.token not in join.node.log.read_text()


async def test_a_resumed_session_is_answered_in_its_new_spelling(guests):
    """MN-06, N3: its first message may come before its session; found by the attack test."""
    peer = await guests("plain")
    await peer.say_as(7, "READ", peer.part("ua"), f"{peer.node}/nothing", {})
    assert (await peer.hear())["id"] == 7
    for _ in range(5):
        again = await guests.back(peer)
        await again.say_as("8", "read", again.part("ua"), f"{again.node}/nothing", {})

        answer = await again.hear()

        assert (answer["id"], answer["type"]) == ("8", "response")
