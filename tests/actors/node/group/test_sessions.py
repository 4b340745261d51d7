"""A session goes with its runtime from node to node of a domain."""

from contextlib import nullcontext

import pytest
import trio
import trio.testing

from actors.node.config import NodeConfig
from fsm.group.kinds import PathRow, SessionRow
from fsm.group.row_form import read_row, write_row
from fsm.session.node_session_io import PeerForm
from specs.limits.group import GROUP_LEASE, GROUP_PATIENCE
from tests.support.node.group_world import open_group, resumed
from tests.support.node.issuer import ALICE, BOB, Issuer, login_by
from tests.support.node.issuer import opened as login_with
from tests.support.node.node_peer import RA, RB
from transports.engine.contract import Put
from transports.errors import LinkError


async def broken_link(peer) -> None:
    """Wait until a link is closed by its node."""
    with trio.fail_after(30), pytest.raises(LinkError):
        await peer.read_on()


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
