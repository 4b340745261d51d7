"""What each node of a group shows of it: its dashboard, its metrics, and whether it is ready."""

from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import quote, urlsplit

import h11
import orjson
import trio
from prometheus_client.parser import text_string_to_metric_families

from actors.http.config import HttpConfig
from fsm.group.kinds import Holder, NodeRow
from fsm.group.row_form import write_row
from fsm.registry.node_rights import Observation
from specs.limits.dashboard import COLLEAGUE_PATIENCE
from specs.limits.engine import INBOX_MESSAGES
from specs.limits.group import GROUP_LEASE, GROUP_NODES
from specs.reply_code import DropReason
from tests.actors.node.dashboard.dashboard_world import Watching
from tests.support.node.group_world import open_group
from tests.support.node.node_peer import DR, RA, RB
from tests.support.node.web import Stream, ask
from transports.engine.contract import Put
from transports.link import Kind

HTTP = HttpConfig("127.0.0.1:0")


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


# ---- readiness


async def test_a_node_for_which_its_group_has_no_room_says_so_and_waits(autojump_clock):
    strangers = [NodeRow(Holder(f"stranger-{number}", 1)) for number in range(GROUP_NODES - 2)]
    place = "127.0.0.1:4000"
    async with group(2) as world:
        world.store.write([Put(row.key, write_row(row)) for row in strangers])
        world.nursery.start_soon(partial(world.node, http=HttpConfig(place)))
        await trio.sleep(GROUP_LEASE)
        page = await ask(world.network, f"http://{place}", "/readyz")
        why = {one["part"]: one["why"] for one in page.json["missing"]}
        assert why["engine"] == "the group has 64 other nodes, and takes no further one"
        assert len(world.nodes) == 2
        world.nodes[1].is_over.set()
        await world.until(partial(is_started, world, 3))
        assert not await missing(world, world.nodes[2])


async def is_started(world, count):
    return len(world.nodes) == count
