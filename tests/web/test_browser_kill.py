"""A node that is killed and started again: its pages have everything again before they use it."""

from signal import SIGKILL

import pytest

from tests.support.browser import needs_chromium
from tests.support.node.node_process import UNHURRIED, node_process
from tests.web.pages import DOMAIN, OPEN, open_served_node

pytestmark = pytest.mark.timeout(240)

DEPLOY = """async () => {
    window.hyperty = await window.runtime.deploy("all", {
        request: ({ body }) => body.value,
        subscribe() {},
    });
    window.mine = await window.hyperty.report("comm", { n: 0 });
    return [window.hyperty.url, window.mine.url];
}"""
USE = """async (peer, object) => {
    Object.assign(window, { starts: 1, answers: {}, statuses: [] });
    await window.hyperty.follow(peer, (status) => window.statuses.push(status));
    window.theirs = await window.hyperty.observe(object);
    // At a rate of its own: some are asked while the node is away.
    window.asking = setInterval(async () => {
        const begun = window.starts;
        const { body } = await window.hyperty.ask("create", peer, { value: 1 });
        const isSoon = body.code === 503 && body.retryAfter > 0;
        const when = begun === window.starts ? begun : "between";
        const key = `${when} ${isSoon ? "later" : body.code}`;
        window.answers[key] = (window.answers[key] ?? 0) + 1;
    }, 50);
}"""
ANSWERED = "() => window.answers[`${window.starts} 200`] > 3"


@needs_chromium
@pytest.mark.parametrize("kept", [False, True], ids=["nothing", "sessions"])
async def test_pages_use_a_node_that_was_killed_as_before(browsers, tmp_path, kept):
    """STB-09: no request, path or follower is refused, or forgotten, after the node's start."""
    state = ("--state", str(tmp_path / "state.sqlite")) if kept else ()

    def started(site, listen="127.0.0.1:0"):
        about = ("--domain", DOMAIN, "--allow-legacy", "--allow-origin", site, "--listen", listen)
        return node_process(tmp_path / "node.log", *about, *state, *UNHURRIED)

    async with open_served_node() as served, browsers.open("chromium") as browser:
        pages = [await browser.new_page(isolated=True) for _ in range(2)]
        with started(served.site) as node:
            url, addresses = node.ready["url"], []
            for page, name in zip(pages, ("one", "two"), strict=True):
                await page.goto(served.page)
                await page.evaluate(OPEN, {"node": url, "name": name})
                addresses.append(await page.evaluate(DEPLOY))
            for page, theirs in zip(pages, reversed(addresses), strict=True):
                await page.evaluate(USE, *theirs)
            for page in pages:
                await page.until(ANSWERED)
            node.process.send_signal(SIGKILL)
            node.process.wait(60.0)
        for page in pages:
            await page.evaluate("() => void (window.starts = 2)")
        with started(served.site, url.removeprefix("ws://").removesuffix("/link")) as node:
            for page in pages:
                await page.until(ANSWERED)
                await page.evaluate("() => window.mine.set('n', 1)")
            for page in pages:
                await page.until("() => window.theirs.value.n === 1")
                await page.evaluate("() => clearInterval(window.asking)")
            one, two = pages
            await two.evaluate("() => window.hyperty.close()")
            await one.until("() => window.statuses.at(-1) === 'disconnected'")
            for page in pages:
                answers = await page.evaluate("() => Object.keys(window.answers)")
                # What the killed process had may be answered by nobody.
                assert {one.split()[1] for one in answers} <= {"200", "later", "408"}
                assert "2 408" not in answers
                assert page.messages == []
            assert node.complaints == []
