"""The page of the dashboard in Chromium: login, live figures, explanations, keyboard, attacks."""

from contextlib import asynccontextmanager, suppress
from urllib.parse import quote

import orjson
import pytest

from actors.http.config import HttpConfig, ShownCatalogue
from actors.policy.store import PolicyConfig
from fsm.group.kinds import Holder, NodeRow
from fsm.group.row_form import write_row
from specs.limits.bus import REFUSALS_KEPT
from specs.limits.group import GROUP_PATIENCE, GROUP_RENEWAL
from tests.actors.node.dashboard.dashboard_world import TOKEN, watched_world
from tests.support.browser import needs_chromium
from tests.support.command import ROOT
from tests.support.node.group_world import open_group
from tests.support.node.node_peer import DR, RA, RB
from tests.web.npm import installed
from transports.engine.contract import Put
from transports.errors import LinkError
from transports.system import open_system_network

pytestmark = [needs_chromium, pytest.mark.timeout(240)]

SIZES = (390, 768, 1280)
VIEWS = ("fleet", "machines/session", "traffic", "refusals", "records", "conformance")
HOSTILE = "<img src=x onerror='window.pwned=1'><script>window.pwned=1</script>"
ONLINE = "(n) => document.querySelector('.tile-value').textContent === n"
OVER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
SETTLED = """() => new Promise((next) => {
    const look = () => (window.seen === document.body.innerText ? next() : again());
    const again = () => { window.seen = document.body.innerText; setTimeout(look, 150); };
    again();
})"""
AXE = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
    .map((one) => [one.id, ...one.nodes.map((node) => node.html + node.failureSummary)])"""
NOT_ASKED = """() => {
    const ask = window.fetch;
    window.fetch = (path, ...more) =>
        path.includes("elsewhere") ? Promise.reject(new Error()) : ask(path, ...more);
}"""
ERRORS = """() => performance.getEntriesByType("resource")
    .filter((each) => each.responseStatus >= 400).map((each) => each.name)"""
LABELS_CUT = """() => {
    const frame = document.querySelector(".sequence").getBoundingClientRect();
    return [...document.querySelectorAll(".sequence text")].filter((each) => {
        const {left, right, height} = each.getBoundingClientRect();
        return left < frame.left || right > frame.right || height < 11;
    }).map((each) => each.textContent);
}"""
WATCH = """() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation",
        (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
}"""


@asynccontextmanager
async def open_page(browsers, world):
    """Open the page, and have it note what its policy of content blocks."""
    async with browsers.open("chromium") as browser:
        await browser.preload(WATCH)
        page = await browser.new_page()
        await page.resize(1280, 900)
        await page.goto(f"{world.node.http_url}/dashboard")
        yield page


async def sign_in(page):
    await page.until("() => document.activeElement?.id === 'token'")
    await page.type(TOKEN)
    await page.press("Enter")
    await page.until("() => document.querySelector('#live').dataset.state === 'on'")


async def go(page, view):
    await page.evaluate("(hash) => { location.hash = hash; }", f"#/{view}")
    shown = "(name) => Boolean(document.querySelector(`.view-${name}`))"
    await page.until(shown, view.partition("/")[0])


async def shows(page, text):
    """Wait until a text is shown."""
    await page.until("(text) => document.querySelector('main').innerText.includes(text)", text)


async def is_clean(page):
    """Return that nothing was blocked, no script of a peer has run, and nothing failed."""
    assert await page.evaluate("() => window.violations") == []
    assert await page.evaluate("() => window.pwned ?? null") is None
    assert (
        await page.evaluate("() => document.querySelectorAll('img[src=x], main script').length")
        == 0
    )
    return [one for one in page.messages if "401" not in one] == []


async def test_the_page_says_that_a_token_is_wrong_and_then_counts_live_and_signs_out(browsers):
    async with watched_world() as world, open_page(browsers, world) as page:
        assert await page.evaluate("() => location.pathname") == "/web/dashboard/index.html"
        await page.until("() => document.activeElement?.id === 'token'")
        await page.type("wrong")
        await page.press("Enter")
        await shows(page, "did not accept this token")
        assert TOKEN not in await page.text()
        await sign_in(page)
        await shows(page, "No runtime is connected")
        alice, _ = await world.peer(RA), await world.peer(RB)
        await page.until(ONLINE, "2")
        await page.until("() => document.querySelectorAll('.view-fleet tbody tr').length === 2")
        await go(page, "machines/session")
        badge = "(n) => document.querySelector('#session__open .count text')?.textContent === n"
        await page.until(badge, "2")
        await world.peer("hyperty-runtime://a.ex/rc")
        await page.until(badge, "3")
        hot = "() => document.querySelector('#session__absent__opened').dataset.heat === '5'"
        await page.until(hot)
        await alice.control("close")
        await page.until(badge, "2")
        await go(page, "fleet")
        await page.until(ONLINE, "2")
        assert await is_clean(page)
        await page.click("#leave")
        await shows(page, "Enter the token of the node")
        await page.reload()
        await shows(page, "Enter the token of the node")
        assert await is_clean(page)


async def test_a_refusal_is_explained_and_a_connection_has_a_story_to_go_back_in(browsers):
    async with watched_world() as world, open_page(browsers, world) as page:
        alice, bob = await world.peer(RA), await world.peer(RB)
        (ours,), (theirs,) = await alice.allocate(), await bob.allocate()
        await sign_in(page)
        await alice.post("create", "hyperty://a.ex/stolen", theirs)
        answer = await alice.hear()
        await go(page, f"refusals/{answer.id}")
        await shows(page, "401 Ownership")
        await shows(page, "the session does not own hyperty://a.ex/stolen")

        await go(page, f"runtime/{quote(RA, safe='')}")
        await shows(page, "Messages are shown while this page is open")
        await shows(page, "session moves from new to open by opened")
        await alice.post("create", ours, theirs, note="never shown")
        await page.until("() => document.querySelectorAll('.sequence .arrow').length > 1")
        await shows(page, "received")
        await page.evaluate("() => document.querySelector('#story-at').focus()")
        await page.press("Home")
        first = "() => document.querySelector('.story-now').textContent.startsWith('1 of')"
        await page.until(first)
        current = "() => document.querySelector('.story-list [aria-current]').innerText"
        assert "session moves" in str(await page.evaluate(current))
        assert await page.evaluate("() => document.querySelector('#story-follow').checked") is False
        assert "never shown" not in await page.text()
        assert await is_clean(page)


async def test_two_tabs_ask_for_nothing_that_is_not_there_when_a_runtime_leaves(browsers):
    """The console of a browser shows each answer that is an error."""
    async with watched_world(token=None) as world, browsers.open("chromium") as browser:
        alice, bob = await world.peer(RA), await world.peer(RB)
        (ours,), (theirs,) = await alice.allocate(), await bob.allocate()
        story = f"runtime/{quote(RA, safe='')}"
        pages = []
        for _ in range(2):
            page = await browser.new_page()
            await page.goto(f"{world.node.http_url}/dashboard")
            await page.until("() => document.querySelector('#live').dataset.state === 'on'")
            for view in (*VIEWS, story):
                await go(page, view)
                await page.evaluate(SETTLED)
            pages.append(page)
        await pages[1].resize(390, 844)
        await alice.post("create", ours, theirs)
        await alice.post("create", "hyperty://a.ex/stolen", theirs)
        await shows(pages[1], "response 401")
        fits = "(all) => all.scrollWidth <= all.clientWidth"
        frame = "document.querySelector('.sequence-frame')"
        assert await pages[1].evaluate(f"() => ({fits})({frame})")
        assert await pages[1].evaluate(LABELS_CUT) == []
        await alice.control("close")
        await shows(pages[1], "This runtime has no session now")
        for page in pages:
            assert await page.evaluate(ERRORS) == []


async def test_what_is_typed_counts_when_it_is_submitted(browsers):
    async with watched_world() as world, open_page(browsers, world) as page:
        alice = await world.peer(RA)
        await sign_in(page)
        await go(page, "refusals")
        await shows(page, f"the last {REFUSALS_KEPT:,} refusals")
        await page.evaluate("() => document.querySelector('#refusal-text').focus()")
        await page.type("nobody-like-this")
        await alice.post("create", "hyperty://a.ex/stolen", "hyperty://a.ex/other")
        await shows(page, "the session does not own hyperty://a.ex/stolen")
        await page.press("Enter")
        await shows(page, "No refusal is remembered for this")
        await alice.post("create", "hyperty://a.ex/stolen", "hyperty://a.ex/nobody-like-this")
        await shows(page, "hyperty://a.ex/nobody-like-this")
        assert "hyperty://a.ex/other" not in await page.text()
        typed = "() => document.querySelector('#refusal-text').value"
        assert await page.evaluate(typed) == "nobody-like-this"
        assert await is_clean(page)


async def test_the_page_comes_back_by_itself_to_a_node_that_was_started_again(browsers):
    async with browsers.open("chromium") as browser:
        page = await browser.new_page()
        # A node without a token asks for none on its own machine.
        async with watched_world(token=None) as world:
            place = world.node.http_url.removeprefix("http://")
            await page.goto(f"{world.node.http_url}/dashboard")
            await page.until("() => document.querySelector('#live').dataset.state === 'on'")
            assert await page.evaluate("() => document.querySelector('#leave').hidden")
            await world.peer(RA)
            await page.until(ONLINE, "1")
        await page.until("() => document.querySelector('#live').dataset.state === 'wait'")
        assert "Trying again" in str(
            await page.evaluate("() => document.querySelector('#said').textContent")
        )
        async with watched_world(token=None, place=place) as world:
            await page.until("() => document.querySelector('#live').dataset.state === 'on'")
            await page.until(ONLINE, "0")
            await world.peer(RB)
            await page.until(ONLINE, "1")


async def tab_to(page, start):
    """Press Tab from the top of the page until a text is reached; return the texts on the way."""
    await page.evaluate("() => document.querySelector('.skip').focus()")
    reached = []
    while len(reached) < 24 and not (reached and reached[-1].startswith(start)):
        await page.press("Tab")
        reached.append(await page.evaluate("() => document.activeElement.textContent.trim()"))
    return reached


async def focus(page, selector):
    await page.evaluate("(selector) => document.querySelector(selector).focus()", selector)


async def test_all_of_it_can_be_used_by_keyboard(browsers):
    async with watched_world() as world, open_page(browsers, world) as page:
        for name in ("ra", "rb"):
            await world.peer(f"hyperty-runtime://a.ex/{name}")
        await sign_in(page)
        await page.until("() => document.querySelectorAll('.view-fleet tbody tr').length === 2")
        reached = await tab_to(page, "Runtime")
        views = ["Fleet", "Machines", "Traffic", "Refusals", "Records", "Conformance"]
        assert [one for one in reached if one in views] == views
        first = "() => document.querySelector('.view-fleet tbody th .runtime-name').textContent"
        sorted_by = "() => document.querySelector('.view-fleet thead th').ariaSort"
        await page.press("Enter")
        assert (await page.evaluate(sorted_by), await page.evaluate(first)) == ("ascending", "ra")
        await page.press("Space")
        assert (await page.evaluate(sorted_by), await page.evaluate(first)) == ("descending", "rb")
        await focus(page, "#fleet-search")
        await page.type("ra")
        await page.until("() => document.querySelector('#said').textContent === '1 runtime'")
        await focus(page, "#views a[href='#/records']")
        await page.press("Enter")
        await shows(page, "Registrations")
        assert await page.evaluate("() => document.activeElement.id") == "main"
        assert await page.evaluate("() => document.querySelector('#said').textContent") == "Records"
        await page.prefer("light")
        await focus(page, "#theme")
        await page.press("ArrowDown", "ArrowDown")
        colour = "() => getComputedStyle(document.body).backgroundColor === 'rgb(15, 23, 42)'"
        await page.until(colour)
        await page.press("Tab")
        ring = "() => getComputedStyle(document.activeElement).outlineStyle"
        assert await page.evaluate(ring) == "solid"
        assert await is_clean(page)


async def test_what_hostile_peers_write_is_shown_as_text_and_never_runs(browsers, tmp_path):
    """SEC-44."""
    folder = tmp_path / ".well-known"
    folder.mkdir()
    listed = {"entries": [{"type": "hyperty", "name": HOSTILE}]}
    (folder / "actors-catalogue.json").write_bytes(orjson.dumps(listed))
    shown = ShownCatalogue("a.ex", tmp_path)
    async with watched_world(catalogue=shown) as world, open_page(browsers, world) as page:
        await sign_in(page)
        mallory = await world.peer(RA)
        (own,) = await mallory.allocate()
        record = {
            "url": own, "runtime": RA, "status": "live", "descriptor": HOSTILE, "expires": 3600,
            "dataSchemes": [HOSTILE], "resources": ["chat"],
        }  # fmt: skip
        await mallory.ask("create", RA, DR, value=record)
        await mallory.post("create", own, f"hyperty://a.ex/x{quote(HOSTILE)}", note=HOSTILE)
        await mallory.post("create", f"hyperty://a.ex/{HOSTILE}", f"hyperty://a.ex/{HOSTILE}")
        outsider = await world.outsider(f"hyperty-runtime://a.ex/{HOSTILE}")
        with suppress(LinkError):
            await outsider.control("open", runtimeURL=outsider.runtime)
        for view in (*VIEWS, f"runtime/{quote(RA, safe='')}", f"runtime/{quote(HOSTILE, safe='')}"):
            await go(page, view)
            await page.evaluate(SETTLED)
            assert await is_clean(page), page.messages
        await go(page, "records")
        await page.until("() => Boolean(document.querySelector('.view-records summary'))")
        await page.click(".view-records summary")
        await shows(page, "<img src=x")
        await shows(page, "Published for a.ex.")
        assert await is_clean(page)
        # The watch is awake: what is inline would be noticed.
        await page.evaluate("""() => {
            const style = document.createElement("style");
            style.textContent = "p { color: red }";
            setTimeout(() => document.head.append(style));
        }""")
        await page.until("() => window.violations.length > 0", patience=8)


async def test_axe_finds_no_violation_and_nothing_overflows_in_both_themes_at_all_sizes(browsers):
    axe = installed("axe-core/axe.min.js")
    policies = PolicyConfig(files=(ROOT / "examples" / "policies" / "blacklist.toml",))
    async with (
        watched_world(monitor=True, policies=policies) as world,
        open_page(browsers, world) as page,
    ):
        await page.evaluate(f"() => {{ {axe}\n window.axe = axe; }}")
        found = {}
        for scheme in ("light", "dark"):
            await page.prefer(scheme)
            found["login", scheme] = await page.evaluate(AXE)
        await sign_in(page)
        alice, bob = await world.peer(RA), await world.peer(RB)
        (ours,), (theirs,) = await alice.allocate(), await bob.allocate()
        await alice.post("create", "hyperty://a.ex/stolen", theirs)
        story = f"runtime/{quote(RA, safe='')}"
        for view in (*VIEWS, story):
            await go(page, view)
            if view == story:
                await alice.post("create", ours, theirs)
                await shows(page, "session moves")
            if view == "machines/session":
                await page.until("() => document.querySelector('.count:not(.none)')?.textContent")
            for scheme in ("light", "dark"):
                await page.prefer(scheme)
                for width in SIZES:
                    await page.resize(width, 844)
                    found[view, scheme, width] = await page.evaluate(AXE)
                    assert await page.evaluate(OVER) <= 0, (view, width)
    assert {place: one for place, one in found.items() if one} == {}


@asynccontextmanager
async def open_group_page(browsers):
    """Three nodes, sessions at two of them, the page of the first, a refusal of the second."""
    http = HttpConfig("127.0.0.1:0")
    async with (
        open_system_network() as network,
        open_group(0, network, http=http) as world,
        browsers.open("chromium") as browser,
    ):
        one, two, _ = [await world.node(name) for name in ("berlin", "lisbon", "paris")]
        await one.peer(RA)
        refusal = await (await two.peer(RB)).ask("read", RB, "hyperty://a.ex/nobody")
        await browser.preload(WATCH)
        page = await browser.new_page()
        await page.goto(f"{one.node.http_url}/dashboard")
        await page.until("() => document.querySelector('#live').dataset.state === 'on'")
        axe = installed("axe-core/axe.min.js")
        await page.evaluate(f"() => {{ {axe}\n window.axe = axe; }}")
        yield world, page, refusal


async def says_that_others_were_not_asked(page):
    """What the node itself has refused is shown all the same."""
    await page.evaluate(NOT_ASKED)
    await go(page, "refusals/1")
    await shows(page, "the other nodes were not asked: The node does not answer.")
    assert await page.evaluate("() => document.querySelector('.error').textContent") == ""
    await go(page, "nodes")


async def links_no_address_that_leads_nowhere(world, page):
    """No other machine finds a node by the address at which it listens everywhere."""
    before = await page.evaluate("() => document.links.length")
    for name, url in (
        ("hostile", "javascript:window.pwned=1"),
        ("one", "http://0.0.0.0:9440"),
        ("other", "https://[::]"),
    ):
        node = NodeRow(Holder(name, 1), url)
        world.store.write((Put(node.key, write_row(node)),))
    await shows(page, "hostile")
    for port in (9440, 443):
        await shows(page, f"at all addresses of its machine; its dashboard is at port {port} of")
    assert await page.evaluate("() => document.links.length") == before


async def test_any_node_shows_all_nodes_of_its_domain_and_where_a_session_is(browsers):
    async with open_group_page(browsers) as (world, page, refusal):
        one, two, three = world.nodes
        story = f"runtime/{quote(RB, safe='')}"
        asked = f"refusals/{refusal.id}"
        for view, said in ((asked, "at the node lisbon-"), (story, "is at the node lisbon-")):
            await go(page, view)
            await shows(page, said)
            assert await page.evaluate(AXE) == []
        there = f"{two.node.http_url}/web/dashboard/index.html#/{story}"
        links = "() => [...document.querySelectorAll('.notice a')].map((one) => one.href)"
        assert await page.evaluate(links) == [there]
        await focus(page, "#views a[href='#/nodes']")
        await page.press("Enter")
        await shows(page, "404 Route")
        await shows(page, f"every {GROUP_RENEWAL:g} seconds")
        await shows(page, f"is listed for {GROUP_PATIENCE / 60:g} minutes")
        for scheme, width in (("light", 390), ("dark", 1280), ("light", 1920)):
            await page.prefer(scheme)
            await page.resize(width, 844)
            assert await page.evaluate(AXE) == []
            assert await page.evaluate(OVER) <= 0, width
        await says_that_others_were_not_asked(page)
        three.is_over.set()
        await shows(page, "left")
        await links_no_address_that_leads_nowhere(world, page)
        world.store.stop(one.engine)
        await shows(page, "This node cannot use the engine: it cannot be reached.")
        assert await is_clean(page)
        await page.goto(there)
        await shows(page, "protofly.v1")
