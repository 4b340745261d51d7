"""Upstream's stubs with a session handshake, at a node that lets them in (C-65, M-14..M-16)."""

import pytest
import trio
import trio.testing

from specs.limits.protocol import HANDSHAKE_TIMEOUT
from tests.support.node.legacy_peer import (
    OLD,
    OLD_INSIDE,
    plain_peer,
    session_outsider,
    session_peer,
)
from tests.support.node.node_peer import ALLOCATION, DR, MN, RA, open_world
from transports.errors import CloseReason, LinkBrokenError


def old_world(**config):
    return open_world(allow_legacy=True, **config)


async def returned(world, peer):
    """Lose the link of a peer, and come back over another without a word."""
    await peer.link.aclose()
    await trio.testing.wait_all_tasks_blocked()
    again = await session_outsider(world, peer.runtime)
    again.token = peer.token
    return again


@pytest.mark.parametrize("id_", [1, "1"])
async def test_an_open_is_answered_with_a_token(id_, autojump_clock):
    async with old_world() as world:
        old = await session_outsider(world)

        answer = await old.ask(id=id_, type="open", from_=OLD, to="mn:/session")

        token = answer["body"].pop("runtimeToken")
        assert len(token) == 64
        assert answer == {
            "id": id_, "type": "response", "from": "mn:/session", "to": OLD, "body": {"code": 200},
        }  # fmt: skip
        assert await world.states() == {OLD_INSIDE: "open"}


async def test_opening_again_on_the_same_link_gives_the_same_token(autojump_clock):
    async with old_world() as world:
        old = await session_peer(world)

        assert (await old.session("open"))["body"] == {"code": 200, "runtimeToken": old.token}
        assert len(world.steps("session")) == 1


async def test_a_legacy_connection_without_a_session_is_closed_unserved(autojump_clock):
    async with old_world() as world:
        old = await session_outsider(world)

        answer = await old.ask(id=1, type="create", from_=f"{OLD}/ua", to=ALLOCATION, body={})

        assert answer["body"]["code"] == 401
        with trio.fail_after(HANDSHAKE_TIMEOUT + 1), pytest.raises(LinkBrokenError):
            await old.hear()


async def test_both_kinds_of_runtime_talk_to_each_other(autojump_clock):
    async with old_world() as world:
        old, new = await session_peer(world), await world.peer(RA)
        ho, (hn,) = await old.allocate(), await new.allocate()

        await old.say(id=9, type="create", from_=ho, to=hn, body={"value": "hi"})
        request = await new.hear()
        await new.raw(b'{"id":9,"type":"response","from":"%s","to":"%s","body":{"code":200}}'
                      % (hn.encode(), ho.encode()))  # fmt: skip

        assert (request.id, request.body) == (9, {"value": "hi"})
        assert (await old.hear())["body"] == {"code": 200}


async def test_session_control_and_messages_may_spell_ids_differently(autojump_clock):
    async with old_world() as world:
        old = await session_peer(world)

        await old.allocate(id="5")

        assert (await old.session("open"))["id"] == 2
        assert (await old.ask(id="6", type="create", from_=OLD, to=ALLOCATION))["id"] == "6"


async def test_the_right_token_reopens_the_session_and_brings_what_waited(autojump_clock):
    async with old_world() as world:
        old, new = await session_peer(world), await world.peer(RA)
        back = await returned(world, old)
        await new.post("create", f"{RA}/ua", f"{OLD_INSIDE}/ua", value=1)
        await new.silence()

        answer = await back.session("re-open", old.session_url)

        assert answer["to"] == old.session_url
        assert answer["body"]["code"] == 200
        assert (await back.hear())["body"] == {"value": 1}
        assert await world.states() == {RA: "open", OLD_INSIDE: "open"}


@pytest.mark.parametrize("tail", ["", "/", "/0", "/" + "0" * 64, "/a/b"])
async def test_a_wrong_token_reopens_nothing(tail, autojump_clock):
    async with old_world() as world:
        old = await session_peer(world)
        thief = await session_outsider(world)

        answer = await thief.session("re-open", OLD + tail)

        assert answer["body"]["code"] == 401
        assert answer["body"]["desc"]
        assert answer["to"] == (OLD + tail).rstrip("/")
        assert await old.allocate()


async def test_a_session_that_is_over_is_not_reopened(autojump_clock):
    async with old_world() as world:
        old = await session_outsider(world)

        assert (await old.session("re-open", f"{OLD}/00"))["body"]["code"] == 410


async def test_an_open_without_the_token_takes_no_foreign_session(autojump_clock):
    async with old_world() as world:
        old = await session_peer(world)
        await world.peer(RA)
        for runtime in (OLD, RA):
            thief = await session_outsider(world, runtime)
            assert (await thief.session("open"))["body"]["code"] == 409
        plain = await plain_peer(world)

        assert (await plain.hear())["body"]["code"] == 409
        assert await old.allocate()


async def test_a_detached_session_goes_to_either_of_upstreams_forms(autojump_clock):
    """Where nobody logs in, the name is the only proof in both; what waits is not lost."""
    async with old_world() as world:
        new, plain = await world.peer(RA), await plain_peer(world)
        address = await plain.allocate()
        for come in (session_peer, plain_peer, session_peer):
            await plain.link.aclose()
            await trio.testing.wait_all_tasks_blocked()
            await new.post("create", f"{RA}/ua", address, value=1)
            plain = await come(world)
            assert (await plain.hear())["body"] == {"value": 1}
        assert await world.states() == {RA: "open", OLD_INSIDE: "open"}


async def test_a_token_is_void_once_the_session_went_to_the_plain_form(autojump_clock):
    async with old_world() as world:
        old = await session_peer(world)
        await returned(world, old)
        plain = await plain_peer(world)
        assert await plain.allocate()
        back = await session_outsider(world)

        assert (await back.session("re-open", old.session_url))["body"]["code"] == 401
        assert (await back.session("open"))["body"]["code"] == 409


@pytest.mark.parametrize(
    "asked",
    [
        {"id": 1, "type": "dance", "from_": OLD},
        {"id": 1, "type": None, "from_": OLD},
        {"id": 1, "type": "open", "from_": "hyperty://a.ex/old"},
        {"id": 1, "type": "open", "from_": "runtime://a.ex"},
    ],
)
async def test_an_invalid_message_is_refused_with_400(asked, autojump_clock):
    async with old_world() as world:
        old = await session_outsider(world)

        answer = await old.ask(to="mn:/session", **asked)

        assert (answer["from"], answer["body"]["code"]) == ("mn:/session", 400)
        assert await world.states() == {}


@pytest.mark.parametrize(
    "frame",
    [
        b"{",
        b'{"to":"mn:/session"}',
        b'{"id":1,"type":"open","to":"mn:/session"}',
        b'{"id":1,"type":"open","from":"undefined","to":"mn:/session"}',
        b'{"id":"x","type":"open","from":"runtime://a.ex/old","to":"mn:/session"}',
    ],
)
async def test_an_unanswerable_message_affects_no_other_message(frame, autojump_clock):
    async with old_world() as world:
        old = await session_outsider(world)

        await old.raw(frame)

        assert (await old.open()).token


async def test_a_close_is_not_answered_and_releases_everything(autojump_clock):
    async with old_world() as world:
        old = await session_peer(world)
        await old.allocate()

        await old.say(id=2, type="close", from_=old.session_url, to="mn:/session")

        with pytest.raises(LinkBrokenError) as left:
            await old.hear()
        assert left.value.close_reason is CloseReason.DONE
        assert await world.states() == {}
        assert [new for *_, new in world.steps("address")] == ["allocated", "released"]


async def test_the_token_of_a_legacy_session_is_sent_to_no_other_peer(autojump_clock):
    async with old_world() as world:
        old, new = await session_peer(world), await world.peer(RA)
        await old.say(
            id=1, type="create", from_=old.session_url, to=f"{RA}/ua",
            body={"via": old.session_url, "source": old.session_url, "value": 1},
        )  # fmt: skip

        heard = await new.hear()

        hidden = f"{OLD_INSIDE}/protostub/session"
        assert heard.from_ == heard.body["source"] == hidden
        assert heard.via == (hidden,)
        assert not any(old.token in str(fact) for fact in world.tracer.facts)


@pytest.mark.parametrize("body", [b'{"code":99}', b'{"code":', b"7"])
async def test_what_replaces_a_malformed_answer_does_not_show_the_token(body, autojump_clock):
    """SEC-01: a message that the node makes in place of one that names its sender."""
    async with old_world() as world:
        old, new = await session_peer(world), await world.peer(RA)
        hidden = f"{OLD_INSIDE}/protostub/session"
        await new.post("read", f"{RA}/ua", hidden)
        asked = await old.hear()

        head = b'{"id":%d,"type":"response","from":"%s","to":"%s","body":%s'
        ends = old.session_url.encode(), asked["from"].encode()
        await old.link.send(head % (asked["id"], *ends, body) + b"}")

        answer = await new.hear()
        assert (answer.code, answer.from_) == (502, hidden)
        assert not any(old.token in str(fact) for fact in world.tracer.facts)


async def test_messages_to_its_session_address_reach_a_legacy_session(autojump_clock):
    async with old_world() as world:
        old, new = await session_peer(world), await world.peer(RA)
        await old.say(id=1, type="create", from_=old.session_url, to=f"{RA}/ua", body={})
        heard = await new.hear()

        await new.raw(b'{"id":1,"type":"response","from":"%s","to":"%s","body":{"code":200}}'
                      % (heard.to.encode(), heard.from_.encode()))  # fmt: skip

        assert await old.hear() == {
            "id": 1, "type": "response", "from": "runtime://a.ex/ra/ua",
            "to": old.session_url, "body": {"code": 200},
        }  # fmt: skip


async def test_our_form_of_session_control_closes_it_too(autojump_clock):
    async with old_world() as world:
        old = await session_peer(world)

        await old.say(id=1, type="execute", from_=OLD, to=f"{MN}/session", body={"method": "close"})

        with pytest.raises(LinkBrokenError):
            await old.hear()


async def test_registrations_of_a_legacy_session_outlive_it(autojump_clock):
    """MN-07, I-A7: as upstream's registry, which hears of no session."""
    async with old_world() as world:
        old, ra = await session_peer(world), await world.peer(RA)
        url = await old.allocate()
        record = {
            "url": url, "runtime": OLD, "status": "live", "expires": 1200, "resources": ["chat"],
            "dataSchemes": [], "descriptor": "hyperty-catalogue://a.ex/.well-known/hyperty/Chat",
        }  # fmt: skip
        registered = await old.ask(
            id=9, type="create", from_=f"{OLD}/registry", to=DR, body={"value": record}
        )
        assert registered["body"]["code"] == 200
        await old.say(id=10, type="close", from_=old.session_url, to="mn:/session")
        with pytest.raises(LinkBrokenError):
            await old.read_on()

        answer = await ra.ask("read", f"{RA}/registry", DR, resource=url)
        assert (answer.code, answer.body["value"]["status"]) == (200, "live")
    assert world.steps("registration") == [(url, "[*]", "lasting")]
