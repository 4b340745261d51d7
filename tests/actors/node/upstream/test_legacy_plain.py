"""Upstream's plain stubs at a node that lets them in (C-65, MSG-18, N3)."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.node.policy_hook import Policy
from actors.policy.engine import Decision, Ruling
from specs.limits.protocol import PING_PERIOD, PONG_TIMEOUT, SESSION_IDLE
from specs.reply_code import DropReason
from tests.support.node.legacy_peer import OLD, OLD_INSIDE, plain_peer
from tests.support.node.node_peer import ALLOCATION, MN, RA, SM, open_world
from transports.errors import CloseReason, DialError, LinkBrokenError
from transports.link import Kind


def old_world(**config):
    return open_world(allow_legacy=True, **config)


async def farewell(peer):
    """Return how the node leaves a peer that has heard everything else."""
    with pytest.raises(LinkBrokenError) as left, trio.fail_after(30):
        await peer.read_on()
    return left.value.close_reason


async def test_upstreams_paths_are_refused_unless_enabled(autojump_clock):
    async with open_world() as world:
        assert (world.node.legacy_url, world.node.session_url) == (None, None)
        base = world.node.url.removesuffix("/link")
        for path in ("/stub/connect?runtimeURL=runtime://a.ex/old", "/ws"):
            with pytest.raises(DialError):
                await world.network.dial(Kind.WEBSOCKET, base + path, None)


async def test_a_legacy_connection_has_a_session_and_is_sent_nothing(autojump_clock):
    async with old_world() as world:
        old = await plain_peer(world)

        assert await old.silence()
        assert await world.states() == {OLD_INSIDE: "open"}


async def test_addresses_are_allocated(autojump_clock):
    async with old_world() as world:
        old = await plain_peer(world)

        address = await old.allocate()

        (view,) = await world.node.sessions()
        assert view.addresses == (address,)


async def test_both_kinds_of_runtime_talk_to_each_other(autojump_clock):
    async with old_world() as world:
        old, new = await plain_peer(world), await world.peer(RA)
        ho, (hn,) = await old.allocate(), await new.allocate()

        await old.say(id="7", type="create", from_=ho, to=hn, body={"value": "hi"})
        request = await new.hear()
        await new.raw(b'{"id":7,"type":"response","from":"%s","to":"%s","body":{"code":200}}'
                      % (hn.encode(), ho.encode()))  # fmt: skip

        assert (request.id, request.from_, request.to) == (7, ho, hn)
        assert await old.hear() == {
            "id": "7", "type": "response", "from": hn, "to": ho, "body": {"code": 200},
        }  # fmt: skip


async def test_a_request_to_it_is_answered_by_it(autojump_clock):
    async with old_world() as world:
        old, new = await plain_peer(world), await world.peer(RA)
        sent = await new.post("create", f"{RA}/ua", f"{OLD_INSIDE}/ua", value=1)

        heard = await old.hear()
        await old.say(
            id=heard["id"], type="response", from_=heard["to"], to=heard["from"],
            body={"code": "2XX", "desc": "fine"},
        )  # fmt: skip

        assert (heard["from"], heard["to"]) == ("runtime://a.ex/ra/ua", f"{OLD}/ua")
        answer = await new.hear()
        assert (answer.id, answer.from_, answer.code) == (sent.id, f"{OLD_INSIDE}/ua", 200)
        assert answer.body["description"] == "fine"


async def test_events_of_its_subscriptions_reach_a_legacy_session(autojump_clock):
    async with old_world() as world:
        old, new = await plain_peer(world), await world.peer(RA)
        (hn,) = await new.allocate("comm")

        answer = await old.ask(
            id="2",
            type="subscribe",
            from_=f"{OLD}/sm",
            to=SM,
            body={"subscribe": [f"{hn}/changes"]},
        )
        await new.post("update", hn, f"{hn}/changes", value="x", attribute="a")
        update = await old.hear()

        assert answer == {
            "id": "2", "type": "response", "from": SM, "to": f"{OLD}/sm", "body": {"code": 200},
        }  # fmt: skip
        assert (update["type"], update["to"], update["body"]["value"]) == (
            "update", f"{hn}/changes", "x",
        )  # fmt: skip


@pytest.mark.parametrize("id_", [7, "7"])
@pytest.mark.parametrize("type_", ["create", "CREATE"])
@pytest.mark.parametrize("scheme", ["runtime", "hyperty-runtime"])
async def test_a_legacy_session_is_answered_in_its_spelling(id_, type_, scheme, autojump_clock):
    async with old_world() as world:
        old = await plain_peer(world)
        from_ = f"{scheme}://a.ex/old/ua"

        answer = await old.ask(
            id=id_, type=type_, from_=from_, to=f"{MN}/object-address-allocation",
            body={"scheme": "comm", "value": {"number": 1}},
        )  # fmt: skip

        assert answer.pop("body")["code"] == 200
        assert answer == {
            "id": id_,
            "type": "RESPONSE" if type_.isupper() else "response",
            "from": f"{MN}/object-address-allocation",
            "to": from_,
        }


@pytest.mark.parametrize("body", [{}, {"body": {}}, {"body": {"runtimeURL": OLD, "via": "x"}}])
async def test_the_command_to_disconnect_closes_its_session(body, autojump_clock):
    async with old_world() as world:
        old = await plain_peer(world)

        await old.say(cmd="disconnect", **body)

        assert await farewell(old) is CloseReason.DONE
        assert await world.states() == {}


@pytest.mark.parametrize("named", [f"{OLD}2", "nonsense", 7, RA])
async def test_a_runtime_cannot_disconnect_another_runtime(named, autojump_clock):
    async with old_world() as world:
        old = await plain_peer(world)

        await old.say(cmd="disconnect", body={"runtimeURL": named})

        assert await old.silence()
        assert await world.states() == {OLD_INSIDE: "open"}


@pytest.mark.parametrize(
    "frame", [b"", b"{", b"hello", b"[]", b"{}", b'{"cmd":"connect"}', b'{"id":1,"type":"read"}']
)
async def test_an_unanswerable_bad_message_is_counted_and_keeps_the_session(frame, autojump_clock):
    async with old_world() as world:
        old = await plain_peer(world)

        await old.raw(frame)

        assert await old.allocate()
        assert world.node.counters.drops[DropReason.MALFORMED] == 1


@pytest.mark.parametrize("id_", [3, "3"])
async def test_an_answerable_bad_message_gets_400_and_keeps_the_session(id_, autojump_clock):
    async with old_world() as world:
        old = await plain_peer(world)

        answer = await old.ask(id=id_, type="create", from_=f"{OLD}/ua", to=[ALLOCATION])

        assert (answer["id"], answer["to"], answer["body"]["code"]) == (id_, f"{OLD}/ua", 400)
        assert await old.allocate()


async def test_a_source_it_does_not_own_gets_401(autojump_clock):
    async with old_world() as world:
        old = await plain_peer(world)
        await world.peer(RA)

        answer = await old.ask(id=1, type="create", from_=f"{RA}/ua", to=ALLOCATION, body={})

        assert answer["body"]["code"] == 401


async def test_the_newest_of_several_connections_has_the_session(autojump_clock):
    async with old_world() as world:
        first = await plain_peer(world)
        address = await first.allocate()
        second = await plain_peer(world, OLD_INSIDE)

        assert await farewell(first) is CloseReason.REFUSED
        answer = await second.ask(id=1, type="create", from_=address, to=ALLOCATION, body={})
        assert answer["body"]["code"] == 400
        assert await world.states() == {OLD_INSIDE: "open"}


async def test_a_session_of_ours_is_never_taken_over(autojump_clock):
    async with old_world() as world:
        ours = await world.peer(OLD_INSIDE)
        old = await plain_peer(world)

        refusal = await old.hear()

        assert (refusal["type"], refusal["to"], refusal["body"]["code"]) == ("response", OLD, 409)
        assert await farewell(old) is CloseReason.REFUSED
        assert (await ours.control("ping")).code == 200


async def test_a_detached_session_of_ours_is_not_taken_over_either(autojump_clock):
    async with old_world() as world:
        ours = await world.peer(OLD_INSIDE)
        await ours.link.aclose()
        old = await plain_peer(world)

        assert (await old.hear())["body"]["code"] == 409
        assert await world.states() == {OLD_INSIDE: "detached"}


@pytest.mark.parametrize("token", [None, "", "0" * 64])
@pytest.mark.parametrize("method", ["open", "re-open"])
async def test_no_token_takes_its_session_over(method, token, autojump_clock):
    async with old_world() as world:
        old = await plain_peer(world)
        ours = await world.outsider(OLD_INSIDE)

        answer = await ours.control(method, runtimeURL=OLD_INSIDE, token=token)

        assert answer.code in {401, 409}
        assert await old.allocate()


@pytest.mark.parametrize("runtime", ["", "nonsense", f"{OLD}/ua", "hyperty://a.ex/old"])
async def test_a_connection_without_a_runtime_is_closed(runtime, autojump_clock):
    async with old_world() as world:
        old = await plain_peer(world, runtime)

        assert (await old.hear())["body"]["code"] == 400
        assert await farewell(old) is CloseReason.REFUSED
        assert await world.states() == {}


async def test_policy_may_keep_it_out(autojump_clock):
    class Nobody(Policy):
        def judge(self, message, asker):
            return Ruling(Decision.DENY, "nobody", "nobody may come in")

    async with old_world(policy=Nobody()) as world:
        old = await plain_peer(world)

        assert (await old.hear())["body"]["code"] == 403
        assert await farewell(old) is CloseReason.REFUSED


async def test_messages_that_waited_for_a_legacy_session_use_its_spelling(autojump_clock):
    async with old_world() as world:
        old, new = await plain_peer(world), await world.peer(RA)
        await old.allocate(id="1", type="CREATE")
        await old.link.aclose()
        await wait_all_tasks_blocked()  # the node has seen it go
        for n in range(3):
            await new.post("create", f"{RA}/ua", f"{OLD_INSIDE}/ua", value=n)
        await new.silence()

        back = await plain_peer(world, OLD_INSIDE)

        heard = [await back.hear() for _ in range(3)]
        assert [one["body"]["value"] for one in heard] == [0, 1, 2]
        assert {(one["type"], type(one["id"]), one["to"]) for one in heard} == {
            ("CREATE", str, f"{OLD}/ua")
        }


async def test_a_silent_one_is_not_pinged_and_stays(autojump_clock):
    async with old_world() as world:
        old = await plain_peer(world)

        assert await old.silence(2 * (PING_PERIOD + PONG_TIMEOUT))
        assert await world.states() == {OLD_INSIDE: "open"}


async def test_one_that_does_not_come_back_is_forgotten(autojump_clock):
    async with old_world() as world:
        old = await plain_peer(world)
        await old.link.aclose()

        await trio.sleep(SESSION_IDLE + 1)

        assert await world.states() == {}
        assert (await world.peer(OLD_INSIDE)).token


async def test_the_steps_of_a_legacy_session_are_those_of_any_session(autojump_clock):
    async with old_world() as world:
        await plain_peer(world)
        second = await plain_peer(world)
        await second.say(cmd="disconnect")
        await farewell(second)

    assert [(old, new) for _, old, new in world.steps("session")] == [
        ("[*]", "open"),
        ("open", "detached"),
        ("detached", "open"),
        ("open", "closed"),
    ]
