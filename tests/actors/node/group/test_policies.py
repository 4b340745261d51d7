"""All nodes of a domain judge by one version of its policies (POL-03, POL-05, POL-14)."""

import tomllib
from pathlib import Path

import orjson
import pytest
import trio
import trio.testing

from actors.kit.counters import Gauge
from fsm.group.policies import POLICY_KEY, Whose
from specs.bodies.policy import UNTIL_CHANGED, PoliciesChanged, PoliciesListed
from specs.limits.group import GROUP_LEASE, GROUP_POLICY_BYTES
from tests.support.log import captured_log
from tests.support.node.group_world import open_group
from tests.support.node.issuer import BOB, Issuer
from tests.support.node.node_peer import RA, RB
from tests.support.node.policing import (
    POLICY,
    logged_in,
    one_policy,
    optional_login,
    policed,
    rule,
)
from transports.bodies import read_body
from transports.engine.memory import MemoryEngine


@pytest.fixture(autouse=True)
def files_are_read_in_no_time():
    """The clock jumps on while a thread works: leases would end."""

    async def at_once(work, *args, **_):
        await trio.lowlevel.checkpoint()
        return work(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trio.to_thread, "run_sync", at_once)
        yield


def denying(reason: str, name: str = "s") -> str:
    """A set that denies requests to `*/ua` for a reason."""
    text = f'effect = "deny"\nreason = "{reason}"\ntarget.msgTo.like = "*/ua"'
    return one_policy(rule("all", text), name=name)


def files(folder: Path, *texts: str) -> dict:
    folder.mkdir()
    return policed(folder, *texts)


async def reason(peer) -> str | None:
    """Return why a request is denied; None: it is not."""
    answer = await peer.ask("create", f"{peer.runtime}/x", f"{peer.runtime}/ua")
    return answer.body["description"] if answer.code == 403 else None


def versions(member) -> tuple[int, int]:
    """The version that a node knows of, and the one that it judges by."""
    read = member.node.counters.gauges[Gauge.POLICY_VERSION]()
    return read[Whose.DOMAIN], read[Whose.NODE]


def written(world) -> dict:
    (row,) = world.store.rows("policy/")
    return orjson.loads(row.value)


async def settled() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def test_files_that_one_node_reads_again_count_at_all(tmp_path, autojump_clock):
    one_file, two_file = files(tmp_path / "1", denying("old")), files(tmp_path / "2")
    async with open_group(0) as world:
        one, two = await world.node(**one_file), await world.node(**two_file)
        ra, rb = await one.peer(RA), await two.peer(RB)
        assert [await reason(peer) for peer in (ra, rb)] == ["old", "old"]
        (tmp_path / "1" / "0.toml").write_text(denying("new"))
        assert await one.node.reload_policies() == ""
        await settled()
        assert [await reason(peer) for peer in (ra, rb)] == ["new", "new"]
        assert versions(one) == versions(two) == (2, 2)
        assert await one.node.reload_policies() == ""
        assert versions(one) == (2, 2)


async def test_the_version_of_a_change_is_its_time(tmp_path, autojump_clock):
    made = files(tmp_path / "1", denying("old"))
    async with open_group(1, clock_offset=1_000_000.0, **made) as world:
        (tmp_path / "1" / "0.toml").write_text(denying("new"))
        assert await world.nodes[0].node.reload_policies() == ""
        assert 0 <= written(world)["version"] - 1_000_000 <= trio.current_time()


async def test_a_node_that_starts_judges_by_what_the_others_judge_by(tmp_path, autojump_clock):
    async with open_group(0) as world:
        await world.node(**files(tmp_path / "1", denying("first")))
        with captured_log() as log:
            two = await world.node(**files(tmp_path / "2", denying("second")))
            three = await world.node(**files(tmp_path / "3", denying("first")))
        assert await reason(await two.peer(RA)) == "first"
        assert await reason(await three.peer(RB)) == "first"
        assert [one["version"] for one in log if one["event"] == "policy files differ"] == [1]


async def test_nodes_without_policies_take_those_of_the_first_that_has_some(
    tmp_path, autojump_clock
):
    async with open_group(1) as world:
        (one,) = world.nodes
        peer = await one.peer(RA)
        assert await reason(peer) is None
        await world.node(**files(tmp_path / "1", denying("now")))
        await settled()
        assert await reason(peer) == "now"


async def test_of_two_nodes_that_start_at_once_one_has_its_files_judged_by(
    tmp_path, monkeypatch, autojump_clock
):
    """And no node serves anybody before it is known which."""
    put_all = MemoryEngine.put_all

    async def slow(engine, puts):
        if any(one.key == POLICY_KEY for one in puts):
            await trio.sleep(5)
        return await put_all(engine, puts)

    monkeypatch.setattr(MemoryEngine, "put_all", slow)
    made = [files(tmp_path / name, denying(name)) for name in ("1", "2")]
    async with open_group(0) as world:

        async def start(config):
            member = await world.node(**config)
            assert versions(member) == (1, 1)

        async with trio.open_nursery() as nursery:
            for one in made:
                nursery.start_soon(start, one)
        peers = [await world.nodes[0].peer(RA), await world.nodes[1].peer(RB)]
        assert len({await reason(peer) for peer in peers}) == 1


@pytest.fixture
def issuer():
    return Issuer()


async def admins(world, issuer):
    """Log an administrator in at each of two nodes."""
    return [
        await logged_in(member, issuer, runtime, roles=["admin"])
        for member, runtime in zip(world.nodes, (RA, RB), strict=True)
    ]


def change(peer, type_, **body):
    return peer.ask(type_, f"{peer.runtime}/admin", POLICY, **body)


CALM = tomllib.loads(denying("hush", "calm"))


async def test_a_change_by_message_holds_at_all_nodes_and_outlives_them(issuer, autojump_clock):
    async with open_group(2, **optional_login(issuer)) as world:
        ra, rb = await admins(world, issuer)
        answer = read_body(await change(ra, "create", value=CALM), PoliciesChanged).value
        assert (answer.version, answer.lasts) == (1, UNTIL_CHANGED)
        await settled()
        assert [await reason(peer) for peer in (ra, rb)] == ["hush", "hush"]
        listed = read_body(await change(rb, "read"), PoliciesListed).value
        assert [(one.id, one.source) for one in listed.sets] == [("calm", "user://idp.ex/alice")]
        for member in world.nodes[:2]:
            member.is_over.set()
            await world.node()
        assert await reason(await world.nodes[-1].peer("hyperty-runtime://a.ex/rc")) == "hush"


async def test_of_two_changes_at_once_one_is_made(issuer, autojump_clock):
    async with open_group(2, **optional_login(issuer)) as world:
        peers, answers = await admins(world, issuer), {}
        world.store.slow(0.2)

        async def ask(peer, name):
            value = tomllib.loads(denying(name, name))
            answers[name] = await change(peer, "create", value=value)

        async with trio.open_nursery() as nursery:
            for peer, name in zip(peers, ("one", "two"), strict=True):
                nursery.start_soon(ask, peer, name)
        assert sorted(answer.code for answer in answers.values()) == [200, 409]
        (made,) = [name for name, answer in answers.items() if answer.code == 200]
        await trio.sleep(1)
        assert [await reason(peer) for peer in peers] == [made, made]
        assert [one["document"]["id"] for one in written(world)["sets"]] == [made]


async def test_a_change_counts_when_the_engine_has_it(issuer, autojump_clock):
    """Until then its node judges as before; what comes meanwhile is refused."""
    async with open_group(2, **optional_login(issuer)) as world:
        ra, _ = await admins(world, issuer)
        other = await logged_in(
            world.nodes[0], issuer, "hyperty-runtime://a.ex/rc", sub=BOB, roles=["admin"]
        )
        world.store.slow(0.5, world.nodes[0].engine)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: change(ra, "create", value=CALM))
            await trio.sleep(0.1)
            assert await reason(other) is None
            assert (await change(other, "delete", resource="calm")).code == 404
            value = tomllib.loads(denying("x", "x"))
            assert (await change(other, "create", value=value)).code == 503
        assert await reason(ra) == "hush"


async def test_without_the_engine_nothing_is_changed(tmp_path, issuer, autojump_clock):
    made = files(tmp_path / "1", denying("old"))
    async with open_group(2, **optional_login(issuer), **made) as world:
        ra, _ = await admins(world, issuer)
        world.store.stop()
        await settled()
        assert (await change(ra, "create", value=CALM)).code == 503
        (tmp_path / "1" / "0.toml").write_text(denying("new"))
        assert "engine" in await world.nodes[0].node.reload_policies()
        assert await reason(ra) == "old"


async def test_more_than_a_row_holds_is_refused(tmp_path, issuer, autojump_clock):
    made = files(tmp_path / "1", denying("old"))
    async with open_group(1, **made) as world:
        rules = "".join(
            rule(f"r{number}", f'effect = "deny"\nreason = "{"x" * 2000}"') for number in range(150)
        )
        (tmp_path / "1" / "0.toml").write_text(one_policy(rules))
        assert str(GROUP_POLICY_BYTES) in await world.nodes[0].node.reload_policies()
        assert await reason(await world.nodes[0].peer(RA)) == "old"


UNREADABLE = [
    (b'{"version": 9, "combining": "denyOverrides", "default": "permit", "sets": [{"odd": 1}]}', 9),
    (b'{"version": 9, "combining": "later", "default": "permit", "sets": []}', 9),
    (b"no JSON", 0),
    (b'{"version": 9, "x": "' + b"x" * GROUP_POLICY_BYTES + b'"}', 0),
]


@pytest.mark.parametrize(("value", "version"), UNREADABLE, ids=range(4))
async def test_a_node_that_cannot_read_the_policies_permits_nothing(
    value, version, tmp_path, autojump_clock
):
    """POL-14: until there are others, which files bring at any node."""
    made = files(tmp_path / "1", denying("old"))
    async with open_group(2, **made) as world, world.store.open() as engine:
        one, two = world.nodes
        peer = await one.peer(RA)
        await engine.put(POLICY_KEY, value)
        await settled()
        assert (await peer.ask("create", f"{RA}/x", f"{RA}/y")).code == 403
        assert "cannot read the policies" in await reason(peer)
        late = await two.outsider(RB)
        opened = await late.control("open", runtimeURL=RB)
        assert (opened.code, opened.body["retryAfter"] > 0) == (503, True)
        assert versions(one) == (version, 0)
        three = await world.node()
        assert versions(three) == (version, 0)

        assert await two.node.reload_policies() == ""
        await settled()
        assert await reason(peer) == "old"
        newest = max(version, 1) + 1
        assert [versions(member) for member in world.nodes] == [(newest, newest)] * 3
        assert (await (await two.outsider(RB)).control("open", runtimeURL=RB)).code == 200


async def test_an_engine_that_comes_back_empty_gets_the_newest_version(
    tmp_path, issuer, autojump_clock
):
    made = files(tmp_path / "1", denying("old"))
    async with open_group(2, **optional_login(issuer), **made) as world:
        ra, _ = await admins(world, issuer)
        assert (await change(ra, "update", resource="s", value={**CALM, "id": "s"})).code == 200
        await settled()
        world.store.restart_empty()
        await trio.sleep(2 * GROUP_LEASE)
        assert written(world)["version"] == 2
        assert [versions(member) for member in world.nodes] == [(2, 2), (2, 2)]
        assert await reason(await world.nodes[1].peer("hyperty-runtime://a.ex/rc")) == "hush"


@pytest.mark.parametrize("is_removed", [False, True])
async def test_no_version_goes_back(is_removed, tmp_path, autojump_clock):
    """Another program puts an older version there, or none."""
    made = files(tmp_path / "1", denying("old"))
    async with open_group(2, **made) as world, world.store.open() as engine:
        old = (await engine.get(POLICY_KEY)).value
        (tmp_path / "1" / "0.toml").write_text(denying("new"))
        await world.nodes[0].node.reload_policies()
        await settled()
        await (engine.delete(POLICY_KEY) if is_removed else engine.put(POLICY_KEY, old))
        await settled()
        assert written(world)["version"] == 2
        assert [versions(member) for member in world.nodes] == [(2, 2), (2, 2)]
        assert await reason(await world.nodes[1].peer(RA)) == "new"
