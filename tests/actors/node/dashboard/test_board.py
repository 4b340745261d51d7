"""The dashboard of a node, without its page: what its paths say, to whom, and at which cost."""

from contextlib import closing

import orjson
import pytest
import trio

from actors.http.config import HttpConfig
from actors.http.site import Visit
from actors.kit.counters import Counters, Gauge, Tally
from actors.kit.trace import NULL_TRACER
from actors.node.dashboard.board import Board, ViewerEnd
from actors.node.dashboard.pages import Sources, dashboard_services
from actors.node.dashboard.tap import Tap
from actors.policy.store import PolicyConfig
from fsm.dashboard.fleet import Fleet, Watched
from specs.limits.bus import FINDINGS_KEPT
from specs.limits.dashboard import FRAMES_KEPT, STORIES, STORY_LEASE, VIEWERS
from tests.actors.node.dashboard.dashboard_world import TOKEN, ask, watched_world, watching
from tests.support.command import serving
from tests.support.node.node_peer import RA, RB
from tests.support.node.web import get

pytestmark = pytest.mark.timeout(240)
PATHS = (
    "events", "about", "runtime", "story", "refused", "elsewhere", "registrations", "policies",
    "findings",
)  # fmt: skip


def states(content):
    return {row[0]: row[1] for row in content["rows"]}


# ---- who may read


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_is_shown_without_the_token(path):
    """SEC-42."""
    async with watched_world() as world:
        for shown in ("", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}"):
            answer = await ask(world, path, authorization=shown)
            assert answer.status == 401
            assert TOKEN not in answer.text


async def test_without_a_token_only_pages_of_the_node_itself_read_it_on_its_machine():
    """SEC-42."""
    async with watched_world(token=None) as world:
        assert (await ask(world, "about")).status == 200
        own = {"sec-fetch-site": "same-origin"}
        assert (await ask(world, "about", **own)).status == 200
        for foreign in (
            {"host": "evil.example"},
            {"host": "127.0.0.1.evil.example"},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
            {"x-forwarded-for": "192.0.2.1"},
        ):
            assert (await ask(world, "about", **foreign)).status == 403


async def test_the_short_path_leads_to_the_page_with_its_policy():
    async with watched_world() as world:
        answer = await get(f"{world.node.http_url}/dashboard")
        assert (answer.status, answer.headers["location"]) == (307, "/web/dashboard/index.html")
        page = await get(world.node.http_url + answer.headers["location"])
    assert page.status == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]


# ---- what is shown


async def test_a_runtime_is_shown_with_its_link_and_addresses():
    async with watched_world() as world:
        alice = await world.peer(RA)
        (address,) = await alice.allocate()
        shown = (await ask(world, "runtime", f"runtime={RA}")).json
        missing = await ask(world, "runtime", f"runtime={RB}")
    assert (shown["state"], shown["link"]["host"], shown["link"]["form"]) == (
        "open",
        "127.0.0.1",
        "protofly.v1",
    )
    assert address in shown["addresses"]
    assert (missing.status, missing.json["state"], missing.json["elsewhere"]) == (200, None, None)


async def test_who_does_not_read_is_named_with_what_waits():
    async with watched_world() as world, watching(world) as viewer:
        alice, bob = await world.peer(RA), await world.peer(RB)
        (ours,), (theirs,) = await alice.allocate(), await bob.allocate()
        await bob.link.aclose()
        await viewer.until(lambda content: states(content).get(RB) == "detached")
        await alice.post("create", ours, theirs)
        news = await viewer.until(lambda content: content["slow"])
    assert news["slow"] == [[RB, "", 1]]


async def test_the_command_serves_the_dashboard_behind_the_token_of_its_file(tmp_path):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    options = ("--domain", "a.ex", "--http", "127.0.0.1:0", "--http-token-file", str(file))
    async with serving("node", *options) as node:
        site = node.ready["http_url"]
        assert (await get(f"{site}/dashboard")).status == 307
        assert (await get(f"{site}/web/dashboard/main.js")).status == 200
        assert (await get(f"{site}/dashboard/about")).status == 401
        about = await get(f"{site}/dashboard/about", authorization=f"Bearer {TOKEN}")
    assert about.json["domain"] == "a.ex"
    assert {"session", "registration"} <= {one["name"] for one in about.json["machines"]}


# ---- the story of one connection


async def test_the_messages_of_a_connection_are_watched_only_while_it_is_looked_at():
    """SEC-44."""
    async with watched_world() as world:
        alice, bob = await world.peer(RA), await world.peer(RB)
        (ours,), (theirs,) = await alice.allocate(), await bob.allocate()
        before = (await ask(world, "story", f"runtime={RA}")).json
        assert before["hops"] == []
        assert [one["what"] for one in before["events"]] == ["session", "alloc"]
        await alice.post("create", ours, theirs, note="never shown")
        await bob.hear()
        await alice.post("create", "hyperty://a.ex/stolen", theirs)
        await alice.hear()
        story = await ask(world, "story", f"runtime={RA}")
    hops = [(one["op"], one["runtime"], one["to"]) for one in story.json["hops"]]
    assert ("rcv", RA, theirs) in hops
    assert ("xmit", RB, theirs) in hops
    (denied,) = [one for one in story.json["hops"] if one["op"] == "deny"]
    assert (denied["code"], denied["from"]) == (401, "hyperty://a.ex/stolen")
    assert "does not own" in denied["why"]
    assert "never shown" not in story.text


def test_no_more_connections_are_watched_than_allowed_and_no_longer_than_asked():
    watched = Watched()
    assert [watched.ask(f"r{n}", 0.0) for n in range(STORIES + 1)] == [True] * STORIES + [False]
    watched.expire(STORY_LEASE)
    assert not watched


# ---- many and slow viewers


async def test_viewers_beyond_the_limit_are_refused_and_places_are_free_again():
    """SEC-44."""
    async with watched_world() as world:
        counters = world.node.counters
        async with trio.open_nursery() as nursery:

            async def stay(started, task_status):
                async with watching(world) as viewer:
                    await viewer.event()
                    task_status.started()
                    await started.wait()

            leave = trio.Event()
            for _ in range(VIEWERS):
                await nursery.start(lambda task_status: stay(leave, task_status))
            assert counters.gauges[Gauge.VIEWERS]() == VIEWERS
            answer = await ask(world, "events")
            assert (answer.status, answer.headers["retry-after"]) == (503, "5")
            leave.set()
        while counters.gauges[Gauge.VIEWERS]():
            await ask(world, "about")
        ended = counters.tallies[Tally.VIEWERS]
        assert (ended[ViewerEnd.FULL,], ended[ViewerEnd.LEFT,]) == (1, VIEWERS)


def board():
    fleet, watched = Fleet(), Watched()
    return Board("a.ex", fleet, Tap(NULL_TRACER, fleet, watched), watched, Counters())


async def test_a_viewer_that_is_too_far_behind_is_dropped_and_the_others_are_not(autojump_clock):
    one = board()
    quick, slow = one.join(), one.join()
    with closing(quick), closing(slow):
        await quick.next()
        await slow.next()
        for _ in range(FRAMES_KEPT):
            assert b"event: news" in await quick.next()
        frames = await slow.next()
        assert frames.count(b"event: news") == FRAMES_KEPT
        for _ in range(FRAMES_KEPT + 1):
            await quick.next()
        assert await slow.next() == b"event: end\ndata: slow\n\n"
        assert await slow.next() is None
        assert b"event: news" in await quick.next()
    assert one.counters.tallies[Tally.VIEWERS] == {(ViewerEnd.SLOW,): 1, (ViewerEnd.LEFT,): 1}


async def test_a_broken_claim_is_shown_with_what_it_is_about():
    one = board()
    for number in range(FINDINGS_KEPT + 1):
        one.counters.broken_claim("I-M1", f"hyperty://a.ex/{number}", "one session for each")
    sources = Sources(None, None, "", is_monitored=True)
    services = dashboard_services(HttpConfig("127.0.0.1:0"), one, sources)
    visit = Visit("GET", "/dashboard/findings", (("host", "localhost"),))
    found = orjson.loads((await services[visit.path].answer(visit)).body)["findings"]
    assert len(found) == FINDINGS_KEPT
    assert (found[0]["claim"], found[0]["about"]) == ("I-M1", f"hyperty://a.ex/{FINDINGS_KEPT}")


async def test_sources_that_a_node_has_not_are_said_to_be_missing():
    services = dashboard_services(
        HttpConfig("127.0.0.1:0"), board(), Sources(None, None, "", is_monitored=False)
    )
    for path in ("registrations", "policies", "elsewhere"):
        answer = await services[f"/dashboard/{path}"].answer(
            Visit("GET", f"/dashboard/{path}", (("host", "localhost"),))
        )
        assert answer.status == 404


HOUSE = """
id = "house"
[[policies]]
id = "no-chat"
[[policies.rules]]
id = "never"
effect = "deny"
reason = "nobody chats here"
condition = { msgTo = { equals = "hyperty://a.ex/chat" } }
"""


async def test_a_message_that_policy_denies_is_explained_by_its_rule(tmp_path):
    file = tmp_path / "house.toml"
    file.write_text(HOUSE)
    async with watched_world(policies=PolicyConfig(files=(file,))) as world:
        alice = await world.peer(RA)
        (own,) = await alice.allocate()
        await alice.ask("create", own, "hyperty://a.ex/chat")
        denied = (await ask(world, "refused")).json["refusals"][0]
        shown = (await ask(world, "policies")).json
    assert (denied["ground"], denied["code"], denied["by"]) == ("policy", 403, RA)
    assert denied["why"] == "nobody chats here"
    assert "never" in denied["rule"]
    assert [(each["id"], each["rules"]) for each in shown["sets"]] == [("house", 1)]
