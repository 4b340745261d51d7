"""Direct links of pages, with other pages and with a program, by WebRTC data channels."""

import socket
import time
from functools import partial
from pathlib import Path

import pytest
import trio

import actors
from actors.embedding import open_runtime
from actors.hyperties import Echo
from actors.kit.back_ends.ice import IcePlan, ListedServer
from actors.node.connectors.back_ends import BackEnds
from actors.node.connectors.quality import ConfiguredServers
from fsm.p2p.link_policy import LinkPolicy, P2pUse, PeerPolicy
from tests.actors.runtime.p2p.test_channel_relay import NEEDED, open_turn_server
from tests.actors.runtime.p2p.test_channel_relay import SECRET as TURN_SECRET
from tests.support.browser import needs_chromium
from tests.web.pages import DOMAIN, OPEN, open_served_node
from tests.web.test_browser_objects import Keeper
from tests.web.test_browser_runtime import BOTH, close, judged
from transports.link import Kind
from transports.webrtc.extra import is_webrtc_installed

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

FLAGS = ("--disable-features=WebRtcHideLocalIpsWithMdns", "--allow-loopback-in-peer-connection")
DOUBLE = """async () => {
    window.connections = [];
    const code = {
        request: ({ body, identity }) => body.value === "who" ? identity ?? null : body.value * 2,
        subscribe() {},
    };
    return (window.hyperty = await window.runtime.deploy("double", code)).url;
}"""
ASK = "async (to, value) => await window.hyperty.request(to, value)"
ASK_UNTIL_LIVE = """async (to, value) => {
    // On a busy machine the first links fail, and the next request sets another up.
    while (!window.runtime.p2p.some((one) => one.isLive)) {
        await window.hyperty.request(to, value);
        await new Promise((resolve) => setTimeout(resolve, 100));
    }
}"""
LIVE = "() => window.runtime.p2p.filter((one) => one.isLive).length"
RECORD = """() => {
    window.connections = [];
    const Original = window.RTCPeerConnection;
    window.RTCPeerConnection = class extends Original {
        constructor(...terms) { super(...terms); window.connections.push(this); }
    };
}"""
BY_LINK = """() => window.runtime.trace.text().split("\\n").filter(Boolean)
    .map((line) => JSON.parse(line))
    .filter((one) => one.op === "xmit" && one.stub.includes("/p2p")).map((one) => one.type)"""


async def open_page(browser, served, name, **options):
    page = await browser.new_page(isolated=True)
    await page.goto(served.page)
    await page.evaluate(RECORD)
    await page.evaluate(
        OPEN, {"node": served.url, "name": name, "trace": True, "p2p": True, **options}
    )
    return page, await page.evaluate(DOUBLE)


RESTARTED = """() => window.steps.some((step) => step.cause === "renegotiated")
    && window.runtime.p2p.some((one) => one.isLive)"""
CUT = "() => window.connections.at(-1).close()"
REPORT = """async () => {
    window.mine = await window.hyperty.report("comm", { n: 0 });
    return window.mine.url;
}"""
OBSERVE = """async (url) => {
    window.theirs = await window.hyperty.observe(url);
    return window.theirs.value;
}"""
CHANGES_BY_LINK = """(url) => window.runtime.trace.text().split("\\n").filter(Boolean)
    .map((line) => JSON.parse(line))
    .some((one) => one.op === "rcv" && one.stub.includes("/p2p") && one.to === `${url}/changes`)"""


@pytest.mark.parametrize("name", BOTH)
async def test_pages_talk_by_a_direct_link_that_is_cut_and_comes_back(browsers, name, tmp_path):
    flags = FLAGS if name == "chromium" else ()
    async with open_served_node(tmp_path) as served, browsers.open(name, *flags) as browser:
        one, own = await open_page(browser, served, "one")
        two, url = await open_page(browser, served, "two")
        assert await one.evaluate(ASK, url, 4) == 8
        for page in (one, two):
            await page.until(LIVE)
        assert await one.evaluate(ASK, url, 5) == 10
        assert "create" in await one.evaluate(BY_LINK)
        assert "response" in await two.evaluate(BY_LINK)
        sender = {"runtime": "hyperty-runtime://a.example/one", "user": None, "vouchedBy": "none"}
        assert await one.evaluate(ASK, url, "who") == sender
        # Large bodies go in chunks; what cannot be doubled is refused by the hyperty.
        refused = "(to, value) => window.hyperty.request(to, value).catch((error) => error.code)"
        assert await two.evaluate(refused, own, {"text": "ä" * 14_000}) == 500
        for page in (one, two):
            await page.evaluate(CUT)
            assert await one.evaluate(ASK, url, 6) == 12
            for end in (one, two):
                await end.until(RESTARTED)
                await end.evaluate("() => window.steps.splice(0)")
            assert await two.evaluate(ASK, own, 7) == 14
        for page in (one, two):
            await close(page, tmp_path)
            assert page.messages == []
    assert judged(tmp_path).startswith("0 "), judged(tmp_path)


@needs_chromium
async def test_objects_of_pages_converge_by_a_direct_link_and_by_the_node_when_it_is_gone(
    browsers, tmp_path
):
    async with open_served_node(tmp_path) as served, browsers.open("chromium", *FLAGS) as browser:
        one, _ = await open_page(browser, served, "one")
        two, _ = await open_page(browser, served, "two")
        url = await one.evaluate(REPORT)
        assert await two.evaluate(OBSERVE, url) == {"n": 0}
        await two.until(LIVE)
        for _ in range(3):
            await one.evaluate(
                "async () => { await window.mine.set('n', window.mine.value.n + 1); }"
            )
        await two.until("() => window.theirs.value.n === 3")
        for number in range(4, 40):
            await one.evaluate("async (n) => { await window.mine.set('n', n); }", number)
            if await two.evaluate(CHANGES_BY_LINK, url):
                break
        await two.until("(n) => window.theirs.value.n === n", number)
        assert await two.evaluate(CHANGES_BY_LINK, url)
        await two.evaluate("""async () => {
            const child = await window.theirs.children.create({ text: "hi" });
            await child.update({ text: "hi!" });
        }""")
        await one.until("() => [...window.mine.children].some((one) => one.value.text === 'hi!')")
        await one.evaluate("() => window.mine.children.create({ text: 'ho' })")
        await two.until("() => window.theirs.children.size === 2")
        await two.evaluate(CUT)
        await one.evaluate("async () => { await window.mine.set('n', 100); }")
        await two.until("() => window.theirs.value.n === 100")
        for page in (two, one):
            await close(page, tmp_path)
            assert page.messages == []
    assert judged(tmp_path).startswith("0 "), judged(tmp_path)


@needs_chromium
async def test_requests_of_both_ends_at_once_lead_to_one_link_each(browsers, tmp_path):
    async with open_served_node(tmp_path) as served, browsers.open("chromium", *FLAGS) as browser:
        pages = [await open_page(browser, served, name) for name in ("one", "two", "three")]
        async with trio.open_nursery() as nursery:
            for page, own in pages:
                for _, url in pages:
                    if url != own:
                        nursery.start_soon(page.evaluate, ASK, url, 4)
        for page, _ in pages:
            await page.until(f"() => ({LIVE})() === 2")
        for page, own in pages:
            for _, url in pages:
                assert url == own or await page.evaluate(ASK, url, 5) == 10
        for page, _ in pages:
            await close(page, tmp_path)
            assert page.messages == []
    assert judged(tmp_path).startswith("0 "), judged(tmp_path)


@needs_chromium
@NEEDED
async def test_pages_use_the_relay_that_their_domain_names(browsers, tmp_path):
    async with open_turn_server(tmp_path, own_address()) as (relay, log):
        plan = IcePlan((ListedServer((relay,), TURN_SECRET),))
        now = partial(time.clock_gettime, time.CLOCK_REALTIME)
        servers = BackEnds(quality=partial(ConfiguredServers, plan, now))
        async with (
            open_served_node(back_ends=servers) as served,
            browsers.open("chromium", *FLAGS) as browser,
        ):
            relayed = {"p2p": {"relayOnly": True}}
            one, _ = await open_page(browser, served, "one", **relayed)
            two, url = await open_page(browser, served, "two", **relayed)
            assert await one.evaluate(ASK, url, 4) == 8
            await one.until(LIVE)
            assert await one.evaluate(ASK, url, 5) == 10
            for page in (one, two):
                assert page.messages == []
        users = {
            line.split("user <")[1].split(">")[0]
            for line in log.read_text().splitlines()
            if "user <" in line
        }
        assert len(users - {""}) == 2  # each page has credentials of its own


@needs_chromium
async def test_a_peer_that_is_killed_is_missed_and_its_address_is_free_for_another(
    browsers, tmp_path
):
    async with open_served_node(tmp_path) as served, browsers.open("chromium", *FLAGS) as browser:
        one, _ = await open_page(browser, served, "one")
        two, url = await open_page(browser, served, "two")
        assert await one.evaluate(ASK, url, 4) == 8
        await one.until(LIVE)
        await two.goto("about:blank")
        # A message that is not acknowledged shows it soonest.
        await one.evaluate("(to) => void window.hyperty.request(to, 1).catch(() => {})", url)
        await one.until("() => window.steps.some((step) => step.new === 'disconnected')")
        assert await one.evaluate(LIVE) == 0
        three, other = await open_page(browser, served, "three")
        assert await one.evaluate(ASK, other, 5) == 10
        await three.until(LIVE)
        for page in (three, one):
            await close(page, tmp_path)
            assert page.messages == []
    # The trace of the one that was killed is missing.
    assert " 0 broken" in judged(tmp_path), judged(tmp_path)


def own_address() -> str:
    """Return an address of this machine that is no loopback: browsers use no other one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no network")
        return probe.getsockname()[0]


def open_program(served, tmp_path):
    """Run a runtime in Python that uses data channels, also in this network."""
    policy = PeerPolicy(DOMAIN, P2pUse.WHENEVER_POSSIBLE)
    config = actors.RuntimeConfig(
        domain=DOMAIN,
        name="program",
        node=served.url,
        kinds=(Kind.WEBRTC,),
        p2p_host=own_address(),
        links=LinkPolicy(P2pUse.WHENEVER_POSSIBLE, (policy,)),
    )
    return open_runtime(config, trace=tmp_path)


@needs_chromium
@pytest.mark.skipif(not is_webrtc_installed(), reason="the extra 'webrtc' is not installed")
@pytest.mark.parametrize("asks_first", ["page", "program"])
async def test_a_page_and_a_program_are_linked_whoever_asks(browsers, asks_first, tmp_path):
    async with (
        open_served_node(tmp_path) as served,
        browsers.open("chromium", *FLAGS) as browser,
        open_program(served, tmp_path) as program,
        await program.deploy(Echo) as echo,
        await program.deploy(Keeper) as keeper,
    ):
        page, url = await open_page(browser, served, "page")
        if asks_first == "page":
            assert await page.evaluate(ASK, echo.url, "hi") == "hi"
        else:
            assert (await keeper.request(url, 4)).value == 8
        await page.until(LIVE)
        await page.evaluate(ASK, echo.url, "where are you")
        assert await page.evaluate(ASK, echo.url, {"text": "ä" * 14_000}) == {"text": "ä" * 14_000}
        assert (await keeper.request(url, 5)).value == 10
        assert {"create", "response"} <= set(await page.evaluate(BY_LINK))
        async with keeper.report("comm", {"n": 0}) as thing:
            assert await page.evaluate(OBSERVE, thing.url) == {"n": 0}
            for number in range(1, 40):
                thing.data.n = number
                await thing.flush()
                await page.until("(n) => window.theirs.value.n === n", number)
                if await page.evaluate(CHANGES_BY_LINK, thing.url):
                    break
            assert await page.evaluate(CHANGES_BY_LINK, thing.url)
            changes = thing.children.changes()
            await page.evaluate("() => window.theirs.children.create('from a page')")
            await thing.children.create("from a program")
            await page.until("() => window.theirs.children.size === 2")
            async for change in changes:
                if change.new == "from a page":
                    break
            await page.evaluate(CUT)
            thing.data.n = 100
            await page.until("() => window.theirs.value.n === 100")
            await page.until(RESTARTED)
            thing.data.n = 101
            await page.until("() => window.theirs.value.n === 101")
        await close(page, tmp_path)
        assert page.messages == []
    assert judged(tmp_path).startswith("0 "), judged(tmp_path)


SILENT = """async () => (await window.runtime.deploy("silent", {})).url"""
LISTED = """(url) => window.runtime.registry.links.entries.some((one) => one.entities.has(url))"""


@needs_chromium
@pytest.mark.skipif(not is_webrtc_installed(), reason="the extra 'webrtc' is not installed")
async def test_a_page_and_a_program_list_what_lives_at_their_ends(browsers, tmp_path):
    """P2P-23..25: neither has asked the other's hyperty anything, or looked for it."""
    async with (
        open_served_node(tmp_path) as served,
        browsers.open("chromium", *FLAGS) as browser,
        open_program(served, tmp_path) as program,
        await program.deploy(Echo) as echo,
    ):
        page, _ = await open_page(browser, served, "page")
        await page.evaluate(ASK_UNTIL_LIVE, echo.url, "hi")
        theirs = await page.evaluate(SILENT)
        with trio.fail_after(60):
            while not any(theirs in one.entities for one in await program.links()):  # noqa: ASYNC110 - looked at
                await trio.sleep(0.05)
        async with await program.deploy(Echo) as another:
            await page.until(LISTED, another.url)
        await page.until(f"(url) => !({LISTED})(url)", another.url)
        await close(page, tmp_path)
        assert page.messages == []
    assert judged(tmp_path).startswith("0 "), judged(tmp_path)


# The page takes no script but the node's own: the test's is a part of this function.
ATTACK = """async (node, victim, handler, attackers) => {
    SOURCE
    const { openRuntime } = await import("/web/protofly.js");
    const results = [];
    const controls = await Promise.all(Array.from({ length: attackers }, async (_, number) => {
        const runtime = await openRuntime({ domain: "a.example", node, name: `mallory-${number}` });
        for (const [at, one] of ATTACKS.entries()) {
            if (at % attackers !== number) continue;
            results.push([at, await offerLink(runtime, victim, handler, 10 + at, one)]);
        }
        // The same without any change is answered: so it is the change that is refused.
        const control = await offerLink(runtime, victim, handler, 500);
        await runtime.close();
        return control;
    }));
    return [results, controls];
}"""
ATTACKERS = 8  # a runtime may ask a handler for ten links at once
WELL_SIGNED = 34  # the first attacks, of which some are refused by the browser itself


@needs_chromium
async def test_no_forged_replayed_or_malformed_offer_leads_to_a_link(browsers):
    source = Path(__file__).with_name("link_attacks.js").read_text().replace("export ", "")
    async with open_served_node() as served, browsers.open("chromium", *FLAGS) as browser:
        victim, url = await open_page(browser, served, "victim")
        handler = await victim.evaluate("() => window.runtime.registry.links.handler")
        mallory = await browser.new_page(isolated=True)
        await mallory.goto(served.page)
        told = served.url, "hyperty-runtime://a.example/victim", handler, ATTACKERS
        found, controls = await mallory.evaluate(ATTACK.replace("SOURCE", source), *told)
        results = dict(found)

        assert len(results) >= 64
        assert controls == ["answered"] * ATTACKERS
        refused = [result for at, result in results.items() if at >= WELL_SIGNED]
        assert refused == ["refused"] * len(refused)
        live = """() => window.steps
            .filter((step) => step.new === "live" && step.machine === "p2p_connection")"""
        assert await victim.evaluate(live) == []
        peer, _ = await open_page(browser, served, "peer")
        assert await peer.evaluate(ASK, url, 21) == 42
        await peer.until(LIVE)
        assert [one for one in victim.messages if one.startswith("error")] == []
