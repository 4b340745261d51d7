"""The browsers that other tests use do what those rely on."""

import pytest
import trio

from tests.support.browser import (
    PATIENCE,
    BrowserError,
    needs_chromium,
    needs_firefox,
    open_browser,
)

PAGE = "data:text/html,<title>a</title><input id=one autofocus><button id=two>go</button>"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("chromium", marks=needs_chromium),
        pytest.param("firefox", marks=needs_firefox),
    ],
)
async def test_a_page_takes_functions_keys_and_clicks(name):
    async with open_browser(name) as browser:
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
