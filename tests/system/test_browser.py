"""The browsers that other tests use do what those rely on."""

from contextlib import closing

import pytest
import trio

from tests.support.browser import PATIENCE, BrowserError, Browsers, needs_chromium, needs_firefox
from tests.web.pages import open_served_node

PAGE = "data:text/html,<title>a</title><input id=one autofocus><button id=two>go</button>"
STORE = """async () => {
    localStorage.kept = sessionStorage.kept = document.cookie = "kept=1";
    await (await caches.open("kept")).put("/kept", new Response("kept"));
    await new Promise((done) => { indexedDB.open("kept", 1).onsuccess = done; });
    await navigator.serviceWorker.register("/web/example/double.js", { type: "module" });
}"""
STORED = """async () => [
    localStorage.length, sessionStorage.length, document.cookie, (await caches.keys()).length,
    (await indexedDB.databases()).length,
    (await navigator.serviceWorker.getRegistrations()).length, window.preloaded ?? null,
]"""

each = pytest.mark.parametrize(
    "name",
    [pytest.param("chromium", marks=needs_chromium), pytest.param("firefox", marks=needs_firefox)],
)


@each
async def test_a_page_takes_functions_keys_and_clicks(browsers, name):
    async with browsers.open(name) as browser:
        page = await browser.new_page()
        await page.goto(PAGE)
        assert await page.evaluate("async (a, b) => ({sum: a + b})", 1, 2) == {"sum": 3}
        with pytest.raises(BrowserError, match="broken"):
            await page.evaluate("() => { throw new Error('broken') }")
        await page.evaluate("() => { two.onclick = () => console.log('clicked ' + one.value) }")
        await page.click("#one")
        await page.type("ab")
        await page.click("#two")
        with trio.fail_after(PATIENCE):
            assert await page.said("clicked") == "info: clicked ab"
        assert (await page.screenshot(390, 400)).startswith(b"\x89PNG")
        other = await browser.new_page(isolated=True)
        await other.goto(PAGE)
        assert await other.until("() => document.title") == "a"


@each
async def test_a_browser_is_as_new_for_the_next_that_uses_it(browsers, name):
    async with open_served_node() as served:
        async with browsers.open(name) as browser:
            await browser.preload("() => { window.preloaded = 1; }")
            page = await browser.new_page()
            await page.goto(served.page)
            await page.evaluate(STORE)
            assert await page.evaluate(STORED) == [1, 1, "kept=1", 1, 1, 1, 1]
        first = browsers.idle
        async with browsers.open(name) as browser:
            page = await browser.new_page()
            await page.goto(served.page)
            assert await page.evaluate(STORED) == [0, 0, "", 0, 0, 0, None]
            open_pages = await browser.call("browsingContext.getTree", {})
            assert len(open_pages["contexts"]) == 2  # and the one that it started with
        assert browsers.idle == first


@needs_chromium
async def test_a_browser_in_which_a_test_fails_is_ended():
    with closing(Browsers()) as browsers:
        async with browsers.open():
            pass
        (process,) = browsers.idle.values()
        with pytest.RaisesGroup(KeyError):
            async with browsers.open():
                raise KeyError
        assert browsers.idle == {}
        assert process.poll() is not None
