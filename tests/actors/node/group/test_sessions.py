"""A session goes with its runtime from node to node of a domain."""

from contextlib import nullcontext

import pytest
import trio
import trio.testing

from actors.kit.counters import Tally
from actors.node.config import NodeConfig
from actors.node.login.key_provider import by_keys, terms_of
from actors.node.login.provider import Login
from fsm.group.kinds import PathRow, SessionRow
from fsm.group.row_form import read_row, write_row
from fsm.session.node_session_io import PeerForm
from specs.limits.group import GROUP_LEASE, GROUP_PATIENCE, GROUP_RENEWAL
from specs.reply_code import TAKEN_OVER
from tests.support.log import captured_log
from tests.support.node.group_world import open_group, resumed
from tests.support.node.issuer import ALICE, BOB, FakeKeySource, Issuer, login_by
from tests.support.node.issuer import opened as login_with
from tests.support.node.node_peer import RA, RB
from transports.engine.contract import Put
from transports.errors import LinkError


async def broken_link(peer) -> None:
    """Wait until a link is closed by its node."""
    with trio.fail_after(30), pytest.raises(LinkError):
        await peer.read_on()


async def test_a_session_is_resumed_at_another_node(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        peer = await one.peer(RA)
        again = await resumed(two, RA, peer.token)

        assert again.token != peer.token
        await broken_link(peer)
        await world.has(one, RA, None)
        assert await two.states() == {RA: "open"}


@pytest.mark.parametrize("is_dead", [False, True])
async def test_a_session_that_moves_says_whether_what_waited_follows(autojump_clock, is_dead):
    async with open_group() as world:
        one, two = world.nodes
        peer = await one.peer(RA)
        if is_dead:
            await world.kill(one)
            await trio.sleep(GROUP_LEASE + 1)
        again = await two.outsider(RA)
        answer = await again.control("re-open", runtimeURL=RA, token=peer.token)
        assert answer.body["value"]["recovered"] is not is_dead
        assert "missing" not in answer.body["value"]


async def test_a_session_goes_there_and_back(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        peer = await one.peer(RA)
        (address,) = await peer.allocate()
        for member in (two, one, two):
            peer = await resumed(member, RA, peer.token)
            assert (await peer.control("ping")).code == 200
        other = await one.peer(RB)
        await other.post("update", f"{RB}/sm", address, value=1)
        with trio.fail_after(10):
            assert (await peer.hear()).to == address


async def test_a_wrong_token_takes_no_session_away(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        peer = await one.peer(RA)
        thief = await two.outsider(RA)
        assert (await thief.control("re-open", runtimeURL=RA, token="x" * 64)).code == 401
        assert (await thief.control("open", runtimeURL=RA)).code == 409
        assert (await peer.control("ping")).code == 200
        assert await one.states() == {RA: "open"}
        assert await two.states() == {}


async def test_a_session_just_opened_is_nobodys_at_no_other_node(autojump_clock):
    """Its runtime has not said anything yet, but it is linked."""
    async with open_group() as world:
        one, two = world.nodes
        await one.peer(RA)
        thief = await two.outsider(RA)
        assert (await thief.control("open", runtimeURL=RA)).code == 409


async def test_what_waits_for_a_runtime_follows_it_in_order(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        peer, other = await one.peer(RA), await one.peer(RB)
        assert (await peer.control("ping")).code == 200
        await peer.link.aclose()
        await world.has(one, RA, "detached")
        sent = [(await other.post("update", f"{RB}/sm", f"{RA}/sm", n=n)).id for n in range(5)]
        await other.control("ping")
        again = await resumed(two, RA, peer.token)
        with trio.fail_after(10):
            assert [(await again.hear()).id for _ in sent] == sent


async def test_two_nodes_that_open_one_session_at_once_agree(autojump_clock):
    async with open_group() as world:
        peers = [await member.outsider(RA) for member in world.nodes]
        codes = []

        async def opened(peer) -> None:
            try:
                codes.append((await peer.control("open", runtimeURL=RA)).code)
            except LinkError:
                codes.append(None)

        async with trio.open_nursery() as nursery:
            for peer in peers:
                nursery.start_soon(opened, peer)
        assert 200 in codes
        assert codes.count(200) == 1
        states = [await member.states() for member in world.nodes]
        assert sorted(map(len, states)) == [0, 1]
        lost = [one.node.counters.tallies[Tally.ROWS_LOST][()] for one in world.nodes]
        assert sorted(lost) == [0, 1]


async def test_sessions_of_a_node_that_dies_are_resumed_elsewhere(autojump_clock):
    async with open_group(3) as world:
        one, two, three = world.nodes
        peer, other = await one.peer(RA), await three.peer(RB)
        (address,) = await peer.allocate()
        await world.kill(one)
        again = await resumed(two, RA, peer.token)
        await other.post("update", f"{RB}/sm", address, value=1)
        with trio.fail_after(10):
            assert (await again.hear()).to == address


async def test_a_session_nobody_resumes_ends_with_all_it_owned(autojump_clock):
    async with open_group(3) as world:
        one, two, three = world.nodes
        peer, other = await one.peer(RA), await three.peer(RB)
        (address,) = await peer.allocate()
        await world.kill(one)
        await trio.sleep(GROUP_LEASE + 1)
        assert (await other.ask("read", f"{RB}/sm", address)).code == 503
        assert await other.silence(GROUP_PATIENCE + 30)
        assert (await other.ask("read", f"{RB}/sm", address)).code == 404
        keys = [row.key for row in world.store.rows("session/")]
        assert keys == [f"session/{RB}"]
        assert not world.store.rows("owner/")
        assert (await (await two.outsider(RA)).control("open", runtimeURL=RA)).code == 200


async def test_a_node_that_is_cut_off_from_the_engine_leaves_its_links(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        peer = await one.peer(RA)
        assert (await peer.control("ping")).code == 200
        world.store.stop(one.engine)
        refused = await (await one.outsider(RB)).control("open", runtimeURL=RB)
        assert refused.code == 503
        await broken_link(peer)
        assert await one.states() == {}
        peer = await resumed(two, RA, peer.token)
        world.store.start(one.engine)
        await world.until(lambda: serves(one))
        peer = await resumed(one, RA, peer.token)
        assert (await peer.control("ping")).code == 200


async def serves(member) -> bool:
    """Whether a node gives out sessions."""
    try:
        peer = await member.outsider("hyperty-runtime://a.ex/probe")
        code = (await peer.control("open", runtimeURL=peer.runtime)).code
        await peer.control("close")
    except LinkError:
        return False
    return code == 200


async def test_an_engine_that_comes_back_empty_is_filled_again(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        peer = await one.peer(RA)
        secret = world.store.row("secret/mint").value
        world.store.restart_empty()
        await broken_link(peer)
        for member in (one, two):
            await world.until(lambda member=member: serves(member))
        again = await (await two.outsider(RA)).control("open", runtimeURL=RA)
        assert again.code == 200
        assert world.store.row("secret/mint").value == secret


async def test_a_runtime_that_is_away_keeps_what_it_owns_until_its_node_is_fenced(autojump_clock):
    """I-M3: an engine that has lost all rows is known by the row of the node."""
    async with open_group(0) as world:
        one, two = await world.node("one"), await world.node("two")
        peer = await one.peer(RA)
        (address,) = await peer.allocate()
        await peer.link.aclose()
        await world.has(one, RA, "detached")
        (mine,) = [row.key for row in world.store.rows("node/") if "one-" in row.key]
        world.store.slow(0.5, one.engine)
        await two.engine.delete(f"owner/{address}")
        await trio.sleep(0.7)  # the node has heard of it
        await two.engine.delete(mine)
        await world.has(one, RA, None)
        world.store.slow(0, one.engine)
        await world.until(lambda: serves(one))
        assert not world.store.rows("owner/")


async def test_an_address_that_is_released_by_another_node_is_released(autojump_clock):
    """Such as by a late write of the node that had the session before."""
    async with open_group() as world:
        one, two = world.nodes
        peer, other = await one.peer(RA), await one.peer(RB)
        (address,) = await peer.allocate()
        await two.engine.delete(f"owner/{address}")

        async def is_released() -> bool:
            rows = [row for row in one.tracer.lines if (row.table, row.key) == ("alloc", address)]
            return rows[-1].op == "del"

        await world.until(is_released, GROUP_RENEWAL, step=0.1)
        assert (await other.ask("read", f"{RB}/sm", address)).code == 404
        assert not world.store.rows("owner/")
        assert (await peer.control("ping")).code == 200


async def test_a_node_that_goes_down_leaves_its_sessions_to_others(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        peer = await one.peer(RA)
        (address,) = await peer.allocate()
        one.is_over.set()
        await broken_link(peer)
        peer = await resumed(two, RA, peer.token)
        other = await two.peer(RB)
        await other.post("update", f"{RB}/sm", address, value=1)
        with trio.fail_after(10):
            assert (await peer.hear()).to == address

        async def is_gone() -> bool:
            return len(world.store.rows("node/")) == 1

        await world.until(is_gone, 5)


async def test_a_session_that_says_goodbye_is_over_at_all_nodes(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        peer = await one.peer(RA)
        await peer.allocate()
        await peer.control("close")

        async def is_clean() -> bool:
            return not world.store.rows("session/") and not world.store.rows("owner/")

        await world.until(is_clean)
        stranger = await two.outsider(RA)
        assert (await stranger.control("re-open", runtimeURL=RA, token=peer.token)).code == 410
        await stranger.open()


async def test_a_user_gets_the_session_of_its_name_at_any_node(autojump_clock):
    issuer = Issuer()
    async with open_group(login=login_by(issuer, clock=lambda: 0.0)) as world:
        one, two = world.nodes
        await login_with(await one.outsider(RA), issuer.token(sub=ALICE))
        assert (await login_with(await two.outsider(RA), issuer.token(sub=BOB))).code == 409
        assert (await login_with(await two.outsider(RA), issuer.token(sub=ALICE))).code == 200
        await world.has(one, RA, None)


async def test_who_lost_its_session_to_a_login_hears_that_at_every_node(autojump_clock):
    """Its token is refused in other words than one that is unknown; the node logs it once."""
    issuer = Issuer()
    async with open_group(login=login_by(issuer, clock=lambda: 0.0)) as world:
        one, two = world.nodes
        first, second = await one.outsider(RA), await two.outsider(RA)
        await login_with(first, issuer.token(sub=ALICE))
        await first.control("ping")
        with captured_log() as logs:
            await login_with(second, issuer.token(sub=ALICE))
            await broken_link(first)
        assert [line["event"] for line in logs if line.get("why") == TAKEN_OVER].count(
            "session taken over"
        ) == 1
        for member in (one, two):
            again = await member.outsider(RA)
            answer = await again.control("re-open", runtimeURL=RA, token=first.token)
            assert (answer.code, answer.body["description"]) == (409, TAKEN_OVER)
        assert (await second.control("ping")).code == 200
        # Who has the session goes from node to node with it.
        await resumed(one, RA, second.token)
        again = await one.outsider(RA)
        assert (await again.control("re-open", runtimeURL=RA, token=first.token)).code == 409


async def test_a_login_token_opens_one_session_at_one_node(autojump_clock):
    """SEC-04."""
    issuer = Issuer()
    shown = issuer.token(sub=ALICE)

    def login():
        provider = by_keys(FakeKeySource(issuer.jwks()), terms_of(issuer.domain))
        return Login(provider=provider, clock=lambda: 0.0)

    async with open_group(0) as world:
        for code in (200, 401):
            member = await world.node(login=login())
            assert (await login_with(await member.outsider(RA), shown)).code == code


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"registry": "file"}, "registry"),
        ({"state": "file"}, "state"),
        ({"login": login_by(Issuer(), used_tokens="file")}, "used_tokens"),
    ],
)
def test_no_node_of_several_has_a_file_for_what_the_engine_keeps(given, named):
    """SEC-04: with a file of used tokens for each node, a token would open a session at each."""
    with pytest.raises(ValueError, match=f"used login tokens; leave {named} out"):
        NodeConfig(domain="a.ex", engine=nullcontext, **given)


async def test_nobody_logs_in_while_the_engine_is_away(autojump_clock):
    issuer = Issuer()
    async with open_group(1, login=login_by(issuer, clock=lambda: 0.0)) as world:
        (one,) = world.nodes
        world.store.stop()
        assert (await login_with(await one.outsider(RA), issuer.token(sub=ALICE))).code == 503


async def test_a_session_that_was_resumed_in_time_does_not_end(autojump_clock):
    async with open_group(3) as world:
        one, two, _ = world.nodes
        peer = await one.peer(RA)
        (address,) = await peer.allocate()
        await world.kill(one)
        await trio.sleep(GROUP_LEASE + 1)
        peer = await resumed(two, RA, peer.token)
        assert await peer.silence(GROUP_PATIENCE + GROUP_LEASE)
        assert [row.key for row in world.store.rows("owner/")] == [f"owner/{address}"]
        assert (await two.states())[RA] == "open"


async def test_what_a_link_has_not_written_follows_its_runtime(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        peer, other = await one.peer(RA), await one.peer(RB)
        assert (await peer.control("ping")).code == 200
        world.store.slow(0.5, one.engine)
        # Its answer waits for the engine, and what comes behind it waits, too.
        await peer.post(
            "create", f"{RA}/address-allocation", f"{peer.node}/address-allocation",
            scheme="hyperty", value={"number": 1},
        )  # fmt: skip
        await trio.testing.wait_all_tasks_blocked()
        sent = await other.post("update", f"{RB}/sm", f"{RA}/sm", value=1)
        await trio.testing.wait_all_tasks_blocked()
        again = await resumed(two, RA, peer.token)
        with trio.fail_after(10):
            while (await again.hear()).id != sent.id:
                pass


async def test_the_name_of_a_user_is_its_own_at_all_nodes(autojump_clock):
    issuer = Issuer()
    async with open_group(login=login_by(issuer, clock=lambda: 0.0)) as world:
        one, two = world.nodes
        peer = await one.outsider(RA)
        await login_with(peer, issuer.token(sub=ALICE))
        await peer.control("close")
        three = await world.node()
        for member in (two, three):
            assert (await login_with(await member.outsider(RA), issuer.token(sub=BOB))).code == 409
        again = await three.outsider(RA)
        assert (await login_with(again, issuer.token(sub=ALICE))).code == 200
        await again.control("release")
        await again.control("close")
        await trio.sleep(1)
        assert (await login_with(await one.outsider(RA), issuer.token(sub=BOB))).code == 200


@pytest.mark.parametrize("lost", [0, 2])
async def test_what_waited_comes_before_what_is_sent_later(autojump_clock, lost):
    """The old node is slow to notice that the runtime has gone, the new one perhaps to say so."""
    async with open_group(3) as world:
        one, two, three = world.nodes
        peer, other = await one.peer(RA), await three.peer(RB)
        assert (await peer.control("ping")).code == 200
        await peer.link.aclose()
        await world.has(one, RA, "detached")
        sent = [await other.post("update", f"{RB}/sm", f"{RA}/sm", n=n) for n in range(3)]

        async def has_all() -> bool:
            return [line.op for line in one.tracer.lines].count("queue") == len(sent)

        await world.until(has_all)
        before = world.store.row(f"session/{RA}")
        world.store.slow(0.1, one.engine)
        world.store.swallow(lost, two.engine)
        again = await two.outsider(RA)
        await again.post(
            "execute", again.stub, f"{again.node}/session",
            method="re-open", params={"runtimeURL": RA, "token": peer.token},
        )  # fmt: skip

        async def is_written() -> bool:
            return world.store.row(f"session/{RA}") != before

        await world.until(is_written, step=0.001)
        sent += [await other.post("update", f"{RB}/sm", f"{RA}/sm", n=n) for n in range(3, 6)]
        with trio.fail_after(10):
            assert (await again.hear()).code == 200
            assert [(await again.hear()).id for _ in sent] == [one.id for one in sent]


async def test_a_runtime_waits_for_no_node_that_has_died(autojump_clock):
    async with open_group() as world:
        one, two = world.nodes
        peer = await one.peer(RA)
        await world.kill(one)
        begun = trio.current_time()
        await resumed(two, RA, peer.token)
        assert trio.current_time() - begun < 1


async def test_what_is_written_in_the_name_of_a_node_and_is_not_there_is_removed(autojump_clock):
    """A write that was given up may be made later, when the row that it met is gone."""
    async with open_group(1) as world:
        (row,) = world.store.rows("node/")
        here = read_row(row.key, row.value).holder
        ghosts = [
            SessionRow(RA, here, 1, PeerForm.OWN, f"{RA}/protostub/1"),
            PathRow("comm://a.ex/1/changes", here),
        ]
        world.store.write([Put(one.key, write_row(one)) for one in ghosts])

        async def is_clean() -> bool:
            return not world.store.rows("session/") and not world.store.rows("path/")

        await world.until(is_clean, 10)
        assert (await (await world.nodes[0].peer(RA)).control("ping")).code == 200
