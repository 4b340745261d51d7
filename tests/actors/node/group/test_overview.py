"""What each node of a group shows of it: its dashboard, its metrics, and whether it is ready."""

from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import quote, urlsplit

import h11
import orjson
import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from actors.http.config import HttpConfig
from actors.kit.counters import Refused
from actors.node.app import open_node
from actors.node.config import NodeConfig
from fsm.registry.node_rights import Observation
from specs.limits.dashboard import COLLEAGUE_PATIENCE, COLLEAGUE_ROWS
from specs.limits.engine import ENGINE_TIMEOUT, INBOX_MESSAGES, WATCH_BATCH
from specs.limits.group import GROUP_GONE, GROUP_LEASE, GROUP_PATIENCE, GROUP_RENEWAL
from specs.message import Message, MessageType
from specs.reply_code import DropReason, Ground
from tests.actors.node.dashboard.dashboard_world import Watching
from tests.support.node.group_world import TimedTracer, open_group, resumed
from tests.support.node.node_peer import DOMAIN, DR, RA, RB
from tests.support.node.web import Stream, ask
from transports.engine.memory import open_memory_store
from transports.link import Kind
from transports.memory import MemoryNetwork

HTTP = HttpConfig("127.0.0.1:0")
ALLOCATED = 32
ADDRESSES = (RA, RB, f"hyperty-runtime://{DOMAIN}/rc")


@asynccontextmanager
async def watching(network, url):
    place = urlsplit(url).netloc
    http = h11.Connection(h11.CLIENT)
    request = h11.Request(method="GET", target="/dashboard/events", headers=[("host", place)])
    async with await network.dial(Kind.STREAM, place) as link:
        await link.send(http.send(request) + http.send(h11.EndOfMessage()))
        yield Watching(Stream(link), http)


async def shown(world, member):
    """What a page shows of the nodes that opens now."""
    async with watching(world.network, member.node.http_url) as viewer:
        return (await viewer.event())[1]["nodes"]


def states(nodes):
    return sorted(node["state"] for node in nodes.values())


async def metrics(world, member):
    text = (await ask(world.network, member.node.http_url, "/metrics")).text
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("protofly_")
    }


async def missing(world, member):
    page = await ask(world.network, member.node.http_url, "/readyz")
    assert page.status == (503 if page.json["missing"] else 200)
    return {one["part"]: one["why"] for one in page.json["missing"]}


@asynccontextmanager
async def group(count=3):
    async with open_group(count, http=HTTP, observation=Observation.OWNER) as world:
        yield world


# ---- the dashboard


async def test_each_node_shows_all_with_the_figures_of_each(autojump_clock):
    async with group() as world:
        for member, runtime in zip(world.nodes, ADDRESSES, strict=True):
            peer = await member.peer(runtime)
            await peer.ask("read", runtime, "hyperty://a.ex/nobody")
        await trio.sleep(2 * GROUP_RENEWAL)
        seen = [await shown(world, member) for member in world.nodes]
        for nodes, member in zip(seen, world.nodes, strict=True):
            about = (await ask(world.network, member.node.http_url, "/dashboard/about")).json
            assert states(nodes) == ["member"] * 3
            own = nodes[about["node"]]
            assert own["engine"] == {"up": True, "problem": ""}
            assert own["url"] == member.node.http_url
            for node in nodes.values():
                assert node["figures"]["sessions.open"] == 1
                assert node["figures"]["refused.route.404"] == 1
        assert {frozenset(nodes) for nodes in seen} == {frozenset(seen[0])}
        for node in seen[0]:
            assert len({nodes[node]["boot"] for nodes in seen}) == 1


async def test_a_page_that_is_open_sees_nodes_come_move_and_go(autojump_clock):
    async with group(2) as world:
        one, two = world.nodes
        async with watching(world.network, one.node.http_url) as viewer:
            _, whole = await viewer.event()
            nodes = whole["nodes"]

            async def until(*wanted):
                async def take():
                    while states(nodes) != sorted(wanted):
                        _, news = await viewer.event()
                        nodes.update(news["nodes"])
                        for gone in [name for name, row in nodes.items() if row is None]:
                            del nodes[gone]

                with trio.fail_after(2 * GROUP_PATIENCE):
                    await take()

            await until("member", "member")
            third = await world.node()
            await until("member", "member", "member")
            await world.kill(third)
            await until("member", "member", "gone")
            two.is_over.set()
            await until("member", "left", "gone")
            await until("member")


async def test_of_nodes_that_are_gone_only_the_last_ones_are_known(autojump_clock):
    async with group(1) as world:
        for _ in range(GROUP_GONE + 2):
            (await world.node()).is_over.set()
            await trio.sleep(GROUP_RENEWAL)
        assert states(await shown(world, world.nodes[0])) == ["left"] * GROUP_GONE + ["member"]


async def test_a_fenced_node_does_not_say_that_the_others_are_gone(autojump_clock):
    async with group() as world:
        one = world.nodes[0]
        world.store.stop(one.engine)
        await trio.sleep(GROUP_LEASE)
        (own,) = (await shown(world, one)).values()
        assert own["state"] == "joining"
        assert own["engine"] == {"up": False, "problem": "it cannot be reached"}
        assert states(await shown(world, world.nodes[1])) == ["gone", "member", "member"]
        world.store.start(one.engine)
        await trio.sleep(GROUP_LEASE)
        assert states(await shown(world, one)) == ["member"] * 3
        after = await metrics(world, one)
        assert after["protofly_group_fences_total",] == 1
        assert after["protofly_group_admissions_total",] == 2


async def test_a_runtime_at_another_node_is_said_to_be_there(autojump_clock):
    async with group(2) as world:
        one, two = world.nodes
        alice = await one.peer(RA)
        await trio.sleep(1)
        path = f"/dashboard/runtime?runtime={quote(RA, safe='')}"
        answer = await ask(world.network, two.node.http_url, path)
        about = (await ask(world.network, one.node.http_url, "/dashboard/about")).json
        place = {"node": about["node"], "url": one.node.http_url}
        assert (answer.status, answer.json["elsewhere"]) == (404, place)
        assert (await ask(world.network, one.node.http_url, path)).json["state"] == "open"
        await resumed(two, RA, alice.token)
        await trio.sleep(1)
        assert (await ask(world.network, two.node.http_url, path)).status == 200
        assert (await ask(world.network, one.node.http_url, path)).json["elsewhere"] != place


async def test_each_node_lists_the_registrations_of_the_domain(autojump_clock):
    async with group() as world:
        alice = await world.nodes[0].peer(RA)
        (own,) = await alice.allocate()
        record = {"url": own, "runtime": RA, "status": "live", "expires": 3600}
        assert (await alice.ask("create", RA, DR, value=record)).code == 200
        await trio.sleep(1)
        for member in world.nodes:
            page = await ask(world.network, member.node.http_url, "/dashboard/registrations")
            assert [one["url"] for one in page.json["records"]] == [own]


async def elsewhere(world, member, query=""):
    path = f"/dashboard/elsewhere{query and '?'}{query}"
    return (await ask(world.network, member.node.http_url, path)).json["nodes"]


async def test_why_a_message_was_refused_is_asked_at_all_nodes(autojump_clock):
    async with group() as world:
        one, two, three = world.nodes
        alice = await one.peer(RA)
        answer = await alice.ask("read", RA, "hyperty://a.ex/nobody")
        await alice.post("response", RA, "hyperty://a.ex/nobody", code=200)
        await (await three.peer(RB)).ask("read", RB, "hyperty://a.ex/nobody")
        names = [await name_of(world, member) for member in world.nodes]
        found = await elsewhere(world, two, f"id={answer.id}&q={quote(RA, safe='')}")
        assert set(found) == {names[0], names[2]}
        (refusal,) = found[names[0]]["refusals"]
        assert (refusal["ground"], refusal["code"], refusal["by"]) == ("route", 404, RA)
        assert found[names[2]] == {"refusals": [], "drops": []}
        before = trio.current_time()
        everything = await elsewhere(world, two)
        assert trio.current_time() == before
        assert [one["reason"] for one in everything[names[0]]["drops"]] == ["no-target"]
        assert [one["by"] for one in everything[names[2]]["refusals"]] == [RB]


async def test_an_answer_has_room_for_whatever_peers_wrote(autojump_clock):
    """Characters that take six bytes each, in all texts of all rows."""
    odd = "\x01" * 1000
    message = Message(1, MessageType.READ, odd, odd, {})
    refusal = Refused(
        wall_ns=0, where="bus", id=1, type="read", from_=odd, to=odd, by=odd, code=404,
        ground=Ground.ROUTE, why=odd, rule=odd,
    )  # fmt: skip
    async with group(2) as world:
        one, two = world.nodes
        for _ in range(2 * COLLEAGUE_ROWS):
            one.node.counters.refuse(refusal)
            one.node.counters.drop(DropReason.NO_TARGET, message)
        (found,) = (await elsewhere(world, two)).values()
        assert [len(rows) for rows in found.values()] == [COLLEAGUE_ROWS] * 2


async def test_a_node_that_does_not_answer_is_named(autojump_clock):
    async with group() as world:
        one, _, three = world.nodes
        names = [await name_of(world, member) for member in world.nodes]
        world.store.stop(three.engine)
        before = trio.current_time()
        nothing = {"refusals": [], "drops": []}
        assert await elsewhere(world, one) == {names[1]: nothing, names[2]: None}
        assert trio.current_time() - before == COLLEAGUE_PATIENCE
        world.store.stop()
        assert await elsewhere(world, one) == {names[1]: None, names[2]: None}


async def test_what_is_no_question_and_no_awaited_answer_changes_nothing(autojump_clock):
    async with group(2) as world:
        one, two = world.nodes
        names = [await name_of(world, member) for member in world.nodes]
        told = [
            b"no json", b"[]", b"7", orjson.dumps(["question", "a/b", 1, "", ""]),
            orjson.dumps(["question", 1, 1, "", ""]), orjson.dumps(["answer", names[1], 99, {}]),
            orjson.dumps(["answer", names[1], 1, {"refusals": [1]}]),
            orjson.dumps(["answer", "another", 1, {"refusals": [], "drops": []}]),
        ]  # fmt: skip
        world.store.stop(two.engine)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, COLLEAGUE_PATIENCE)

            @nursery.start_soon
            async def _():
                assert await elsewhere(world, one) == {names[1]: None}

            await trio.sleep(COLLEAGUE_PATIENCE / 2)
            world.store.publish(f"{names[0]}/questions", told)
        counts = one.node.drops().counts
        assert counts[DropReason.MALFORMED] == 6
        assert (counts[DropReason.LATE_RESPONSE], counts[DropReason.UNMATCHED]) == (1, 1)


async def test_questions_that_find_no_room_are_counted(autojump_clock):
    """OBS-06."""
    async with group(1) as world:
        (one,) = world.nodes
        inbox = f"{await name_of(world, one)}/questions"
        async with world.store.open() as stranger:
            await stranger.publish(inbox, [b""] * (INBOX_MESSAGES + 2))
        assert one.node.counters.drops[DropReason.OVERFLOW] == 2


async def name_of(world, member):
    return (await ask(world.network, member.node.http_url, "/dashboard/about")).json["node"]


async def test_the_only_node_of_a_domain_shows_no_group(autojump_clock):
    network = MemoryNetwork()
    config = NodeConfig(domain=DOMAIN, http=HTTP)
    async with open_node(config, network, TimedTracer("one")) as node:
        async with watching(network, node.http_url) as viewer:
            assert "nodes" not in (await viewer.event())[1]
            assert "nodes" not in (await viewer.event())[1]
        assert (await ask(network, node.http_url, "/dashboard/about")).json["node"] == ""
        text = (await ask(network, node.http_url, "/metrics")).text
        assert "protofly_group_state" not in text
        assert "protofly_engine_up" not in text


# ---- metrics


async def test_the_metrics_of_a_node_are_its_own_and_say_how_it_sees_the_group(autojump_clock):
    async with group() as world:
        one, two, _ = world.nodes
        await one.peer(RA)
        await trio.sleep(1)
        mine, other = await metrics(world, one), await metrics(world, two)
        assert mine["protofly_sessions", "open"] == 1
        assert other["protofly_sessions", "open"] == 0
        for found in (mine, other):
            assert found["protofly_group_nodes", "member"] == 3
            assert found["protofly_group_state", "member"] == 1
            assert found["protofly_group_state", "fenced"] == 0
            assert found["protofly_engine_up",] == 1
            assert found["protofly_group_rows",] == len(world.store.rows()) - _foreign(world)
            assert found["protofly_group_rows_waiting",] == 0
            assert found["protofly_group_messages_waiting",] == 0
        world.store.stop(one.engine)
        await trio.sleep(1)
        cut = await metrics(world, one)
        assert (cut["protofly_engine_up",], cut["protofly_engine_outages_total",]) == (0, 1)


def _foreign(world):
    """Rows that other parts of the node follow: names, records, and the secret of the domain."""
    kinds = ("node/", "session/", "owner/", "path/")
    return sum(not row.key.startswith(kinds) for row in world.store.rows())


# ---- readiness


def stopped(world, one):
    world.store.stop()


def cut_off(world, one):
    world.store.stop(one.engine)


def slow(world, one):
    world.store.slow(ENGINE_TIMEOUT + 1)


def full(world, one):
    """No write is done any more, as on a full disk."""
    world.store.swallow(1_000_000)


def well(world, one):
    world.store.start()
    world.store.start(one.engine)
    world.store.slow(0.0)
    world.store.swallow(0)


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        (stopped, "it cannot be reached"),
        (cut_off, "it cannot be reached"),
        (slow, "no answer within 3 s"),
        (full, "no answer came"),
    ],
)
async def test_a_node_is_not_ready_while_it_cannot_use_the_engine(autojump_clock, trouble, why):
    async with group(2) as world:
        one, two = world.nodes
        assert not await missing(world, one)
        trouble(world, one)
        await trio.sleep(GROUP_RENEWAL + ENGINE_TIMEOUT + 0.25)
        assert why in (await missing(world, one))["engine"]
        assert bool(await missing(world, two)) is (trouble is not cut_off)
        await trio.sleep(GROUP_LEASE)
        assert "engine" in await missing(world, one)
        well(world, one)
        await trio.sleep(2 * GROUP_LEASE)
        assert not await missing(world, one)
        assert not await missing(world, two)


async def test_a_node_is_not_ready_until_it_is_a_member_of_an_engine_that_came_back_empty(
    autojump_clock,
):
    async with group(2) as world:
        one = world.nodes[0]
        world.store.slow(0.5)
        world.store.restart_empty()
        await trio.sleep(0.75)
        assert "no member of its group" in (await missing(world, one))["engine"]
        await trio.sleep(GROUP_LEASE)
        assert not await missing(world, one)


async def test_a_member_is_not_ready_until_it_knows_all_rows(autojump_clock):
    async with group(2) as world:
        one, two = world.nodes
        bob = await two.peer(RB)
        for _ in range(4 * WATCH_BATCH // ALLOCATED):
            await bob.allocate(number=ALLOCATED)
        world.store.stop(one.engine)
        await trio.sleep(GROUP_LEASE)
        world.store.slow(0.5, one.engine)
        world.store.start(one.engine)

        async def is_member():
            return (await metrics(world, one))["protofly_group_state", "member"]

        await world.until(is_member, step=0.1)
        assert await missing(world, one) == {"engine": "its rows are being read"}
        await trio.sleep(5)
        assert not await missing(world, one)


async def test_a_node_that_waits_for_the_engine_at_its_start_is_not_ready(autojump_clock):
    network, place = MemoryNetwork(), "127.0.0.1:4000"
    async with open_memory_store() as store, trio.open_nursery() as nursery:
        store.stop()
        config = NodeConfig(domain=DOMAIN, http=HttpConfig(place), engine=store.open)
        is_over = trio.Event()

        @nursery.start_soon
        async def _():
            async with open_node(config, network, TimedTracer("one")):
                await is_over.wait()

        await trio.sleep(10)
        page = await ask(network, f"http://{place}", "/readyz")
        assert [one["part"] for one in page.json["missing"]] == ["node", "engine"]
        assert (await ask(network, f"http://{place}", "/healthz")).status == 200
        store.start()
        await trio.sleep(2)
        assert (await ask(network, f"http://{place}", "/readyz")).status == 200
        is_over.set()


async def test_a_node_for_which_its_group_has_no_room_says_so_and_waits(
    autojump_clock, monkeypatch
):
    monkeypatch.setattr("fsm.group.membership.GROUP_NODES", 2)
    place = "127.0.0.1:4000"
    async with group(2) as world:
        world.nursery.start_soon(partial(world.node, http=HttpConfig(place)))
        await trio.sleep(GROUP_LEASE)
        page = await ask(world.network, f"http://{place}", "/readyz")
        why = {one["part"]: one["why"] for one in page.json["missing"]}
        assert why["engine"] == "the group has 64 other nodes, and takes no further one"
        assert states(await shown(world, world.nodes[0])) == ["member"] * 2
        assert len(world.nodes) == 2
        world.nodes[1].is_over.set()
        await world.until(partial(is_started, world, 3))
        assert not await missing(world, world.nodes[2])


async def is_started(world, count):
    return len(world.nodes) == count
