"""Sessions as runtimes see them (M-14..M-17, MN-04..MN-08, I-M1..I-M4)."""

import pytest
import trio
import trio.testing

from specs.limits.protocol import (
    HANDSHAKE_TIMEOUT,
    PING_PERIOD,
    PONG_TIMEOUT,
    SESSION_IDLE,
    SESSION_QUEUE,
)
from tests.support.node.node_peer import ALLOCATION, MN, RA, RB, SESSION, SM, open_world
from transports.errors import LinkBrokenError

GUESS = "0" * 64


async def lose(world, peer):
    """Lose the link of a peer without a goodbye the node would take for a close."""
    await peer.link.aclose()
    await trio.testing.wait_all_tasks_blocked()


async def reopened(world, peer):
    again = await world.outsider(peer.runtime)
    answer = await again.control("re-open", runtimeURL=peer.runtime, token=peer.token)
    assert answer.code == 200
    return again


async def test_a_session_is_opened_with_a_token_of_its_own(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)

        assert ra.token
        assert ra.token != rb.token
        assert await world.states() == {RA: "open", RB: "open"}


async def test_leaving_closes_every_session(autojump_clock):
    async with open_world() as world:
        await world.peer(RA)

    assert world.steps("session") == [
        (f"{MN}|{RA}", "[*]", "open"),
        (f"{MN}|{RA}", "open", "closed"),
    ]


async def test_nothing_is_done_for_a_link_without_a_session(autojump_clock):
    async with open_world() as world:
        outsider = await world.outsider()

        answer = await outsider.ask("create", f"{RA}/ua", ALLOCATION, scheme="hyperty")

        assert answer.code == 401
        assert await world.states() == {}


async def test_a_connection_without_a_timely_session_is_closed(autojump_clock):
    async with open_world() as world:
        outsider = await world.outsider()

        with trio.fail_after(HANDSHAKE_TIMEOUT + 1), pytest.raises(LinkBrokenError):
            await outsider.hear()


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("open", {}, 400),
        ("open", {"runtimeURL": "nonsense"}, 400),
        ("open", {"runtimeURL": f"{RA}/ua"}, 400),
        ("open", {"runtimeURL": "hyperty://a.ex/ra"}, 400),
        ("open", {"runtimeURL": RB}, 401),
        ("re-open", {"runtimeURL": RA, "token": "00"}, 410),
        ("close", {}, 401),
        ("ping", {}, 401),
        ("dance", {}, 400),
    ],
)
async def test_session_control_that_makes_no_sense_is_refused(method, params, code, autojump_clock):
    """MSG-15: an unknown method is 400."""
    async with open_world() as world:
        outsider = await world.outsider(RA)

        assert (await outsider.control(method, **params)).code == code


async def test_session_control_is_by_execute_only(autojump_clock):
    async with open_world() as world:
        peer = await world.peer()

        assert (await peer.ask("create", peer.stub, SESSION, value=1)).code == 400


async def test_a_link_has_one_session_only(autojump_clock):
    async with open_world() as world:
        peer = await world.peer(RA)
        peer.stub = f"{RB}/protostub/1"

        assert (await peer.control("open", runtimeURL=RB)).code == 409


async def test_a_second_open_without_the_token_gets_409(autojump_clock):
    """SEC-02."""
    async with open_world() as world:
        first = await world.peer(RA)
        thief = await world.outsider(RA)

        assert (await thief.control("open", runtimeURL=RA)).code == 409
        assert (await thief.control("open", runtimeURL=RA, token=GUESS)).code == 409
        assert (await first.control("ping")).code == 200


async def test_a_reopen_with_a_wrong_token_gets_401(autojump_clock):
    """SEC-02."""
    async with open_world() as world:
        await world.peer(RA)
        thief = await world.outsider(RA)

        assert (await thief.control("re-open", runtimeURL=RA, token=GUESS)).code == 401


async def test_a_newer_link_with_the_token_fences_the_older(autojump_clock):
    async with open_world() as world:
        old = await world.peer(RA)
        new = await reopened(world, old)

        with pytest.raises(LinkBrokenError):
            await old.hear()
        assert (await new.control("ping")).code == 200
        assert await world.states() == {RA: "open"}


async def test_opening_again_on_the_same_link_changes_nothing(autojump_clock):
    async with open_world() as world:
        peer = await world.peer(RA)

        again = await peer.control("open", runtimeURL=RA, token=peer.token)

        assert again.code == 200
        assert len(world.steps("session")) == 1


async def test_a_lost_link_detaches_and_keeps_all_tables(autojump_clock):
    async with open_world() as world:
        peer = await world.peer(RA)
        address = (await peer.allocate())[0]
        await peer.ask("subscribe", f"{RA}/sm", SM, resources=[f"{address}/changes"])

        await lose(world, peer)

        (view,) = await world.node.sessions()
        assert (view.state, view.link) == ("detached", None)
        assert (view.addresses, view.paths) == ((address,), (f"{address}/changes",))


async def test_messages_from_the_absence_go_out_first_and_in_order(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        await lose(world, rb)
        sent = [await ra.post("create", f"{RA}/ua", f"{RB}/ua", value=n) for n in range(3)]

        back = await reopened(world, rb)

        assert [await back.hear() for _ in sent] == sent
        assert world.ops(to=f"{RB}/ua", id=sent[0].id) == ["rcv", "admit", "queue", "flush", "xmit"]


async def test_too_much_for_an_absent_runtime_is_refused_with_503(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        await lose(world, rb)
        for _ in range(SESSION_QUEUE):
            await ra.post("create", f"{RA}/ua", f"{RB}/ua", value="x")

        answer = await ra.ask("create", f"{RA}/ua", f"{RB}/ua", value="one too many")

        assert answer.code == 503


async def test_an_unclaimed_session_expires(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        await lose(world, rb)
        request = await ra.post("create", f"{RA}/ua", f"{RB}/ua", value=1)

        with trio.fail_after(SESSION_IDLE + 1):
            answer = await ra.hear()

        assert (answer.id, answer.code) == (request.id, 404)
        again = await world.outsider(RB)
        assert (await again.control("re-open", runtimeURL=RB, token=rb.token)).code == 410


async def test_a_silent_peer_that_answers_no_ping_is_detached(autojump_clock):
    async with open_world() as world:
        peer = await world.peer(RA)

        await trio.sleep(PING_PERIOD + PONG_TIMEOUT + 1)

        assert await world.states() == {RA: "detached"}
        assert b'"ping"' in await peer.link.receive()
        with pytest.raises(LinkBrokenError):
            await peer.link.receive()


async def test_a_silent_peer_that_answers_pings_stays(autojump_clock):
    async with open_world() as world:
        peer = await world.peer(RA)

        await peer.silence(5 * PING_PERIOD)

        assert await world.states() == {RA: "open"}


async def test_close_is_answered_and_releases_everything(autojump_clock):
    async with open_world() as world:
        ra, rb = await world.peer(RA), await world.peer(RB)
        (address,) = await rb.allocate()

        assert (await rb.control("close")).code == 200

        with pytest.raises(LinkBrokenError):
            await rb.hear()
        assert await world.states() == {RA: "open"}
        assert world.steps("address")[-1] == (address, "allocated", "released")
        assert (await ra.ask("create", f"{RA}/ua", address, value=1)).code == 404


async def test_an_open_after_a_close_makes_a_new_session(autojump_clock):
    async with open_world() as world:
        first = await world.peer(RA)
        await first.control("close")
        second = await world.peer(RA)

        assert second.token != first.token
        assert [key for key, *_ in world.steps("session")] == [
            f"{MN}|{RA}",
            f"{MN}|{RA}",
            f"{MN}|{RA}|2",
        ]


async def test_two_nodes_of_two_domains_do_not_know_each_other(autojump_clock):
    async with open_world() as one, open_world(one.network, listen="127.0.0.1:0") as other:
        await one.peer(RA)

        assert await other.states() == {}
        assert (await other.peer(RA)).token
