"""Data objects between pages and a program, through a real node."""

import pytest
import trio

import actors
from actors.embedded_node import open_node
from actors.embedding import open_runtime
from actors.node.config import NodeConfig
from tests.support.browser import needs_chromium
from tests.support.ports import free_port
from tests.web.pages import DOMAIN, HERE, OPEN, open_served_node
from tests.web.test_browser_runtime import BOTH, close, judged

pytestmark = pytest.mark.timeout(240)

DEPLOY = """async () => {
    window.code = {
        subscribe({ observer }) {
            window.asked = [...(window.asked ?? []), observer];
            if (observer === window.banned) throw new Refusal(403, "not you");
        },
    };
    const { Refusal } = await import("/web/protofly.js");
    window.hyperty = await window.runtime.deploy("writer", window.code);
    return window.hyperty.url;
}"""
REPORT = """async (value, options) => {
    window.mine = await window.hyperty.report("comm", value, options);
    return window.mine.url;
}"""
OBSERVE = """async (url) => {
    window.theirs = await window.hyperty.observe(url);
    window.changes = [];
    window.theirs.on("change", (change) => window.changes.push([change.path, change.new]));
    return window.theirs.value;
}"""
HAS = """(expected) => {
    const order = (_, value) => value && typeof value === "object" && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).sort()) : value;
    return JSON.stringify(window.theirs.value, order) === JSON.stringify(expected, order);
}"""
CHILDREN = "() => [...(window.mine ?? window.theirs).children].map((one) => one.value)"


class Keeper(actors.Hyperty):
    """Reports, and accepts every observer."""

    async def on_subscribe(self, url: str, observer: str) -> None:
        pass


async def children_converge(page, reported: actors.ReportedObject) -> None:
    """A page and the reporting program write children; each gets those of the other."""
    changes = reported.children.changes()
    mine = await page.evaluate("""async () => {
        const child = await window.theirs.children.create({ text: "from a page" });
        await child.update({ text: "from a page!" });
        return child.id;
    }""")
    await reported.children.create({"text": "from a program"})
    await page.until(f"async () => ({CHILDREN})().length === 2")
    with trio.fail_after(30):
        async for change in changes:
            if (change.id, change.new) == (mine, {"text": "from a page!"}):
                break


@pytest.mark.parametrize("name", BOTH)
async def test_objects_of_pages_and_of_a_program_converge_everywhere(browsers, name, tmp_path):
    async with (
        open_served_node(tmp_path) as served,
        browsers.open(name) as browser,
        open_runtime(DOMAIN, "program", node=served.url, trace=tmp_path) as program,
        await program.deploy(Keeper) as keeper,
    ):
        pages = [await browser.new_page(isolated=True) for _ in range(2)]
        urls = []
        for page, who in zip(pages, ("one", "two"), strict=True):
            await page.goto(served.page)
            await page.evaluate(OPEN, {"node": served.url, "name": who, "trace": True})
            urls.append(await page.evaluate(DEPLOY))
        one, two = pages
        url = await one.evaluate(REPORT, {"items": [], "n": 0}, {"name": "to do"})
        assert await two.evaluate(OBSERVE, url) == {"items": [], "n": 0}
        async with keeper.observe(url) as copy, keeper.report("comm", {"a": 1}) as other:
            assert await one.evaluate("() => window.asked") == [urls[1], keeper.url]
            await one.evaluate("""async () => {
                await window.mine.add("items", { what: "milk", done: false });
                await window.mine.set("items.0.done", true);
                await window.mine.set("where.shop", "corner");
                await Promise.all([1, 2, 3].map((n) => window.mine.set("n", n)));
                await window.mine.replace({ ...window.mine.value, items: [] });
            }""")
            expected = {"items": [], "n": 3, "where": {"shop": "corner"}}
            await two.until(HAS, expected)
            await copy.wait_for(lambda value: value == expected)
            assert await one.evaluate("() => [window.mine.version, window.mine.value]") == [
                8,
                expected,
            ]
            assert await two.evaluate("() => window.changes") == [
                ["items", [{"what": "milk", "done": False}]],
                ["items.0.done", True],
                ["where", {"shop": "corner"}],
                ["n", 1],
                ["n", 2],
                ["n", 3],
                ["", expected],
            ]
            # The other way round: a program reports, pages observe.
            await two.evaluate("() => window.theirs.close()")
            assert await two.evaluate(OBSERVE, other.url) == {"a": 1}
            other.data.b = {"c": [1, None, 0.5]}
            await two.until(HAS, {"a": 1, "b": {"c": [1, None, 0.5]}})
            await children_converge(two, other)
            for page in pages:
                await page.evaluate("() => window.hyperty.close()")
            with pytest.raises(actors.ObjectError):
                await copy.wait_for(lambda value: value == "never")
        for page in pages:
            await close(page, tmp_path)
            assert page.messages == []
    assert judged(tmp_path).startswith("0 "), judged(tmp_path)


@needs_chromium
async def test_a_node_that_has_forgotten_all_learns_the_objects_of_pages_again(browsers, tmp_path):
    address = f"{HERE}:{free_port()}"
    async with open_served_node() as served, browsers.open("chromium") as browser:

        def config():
            origins = frozenset({served.site})
            return NodeConfig(domain=DOMAIN, listen=address, origins=origins, allow_legacy=True)

        pages = [await browser.new_page(isolated=True) for _ in range(2)]
        async with open_node(config()) as node:
            for page, name in zip(pages, ("one", "two"), strict=True):
                await page.goto(served.page)
                await page.evaluate(OPEN, {"node": node.url, "name": name, "trace": True})
                await page.evaluate(DEPLOY)
            one, two = pages
            url = await one.evaluate(REPORT, {"n": 0}, {})
            assert await two.evaluate(OBSERVE, url) == {"n": 0}
        await one.evaluate("() => void window.mine.set('n', 1)")
        async with open_node(config()):
            await two.until(HAS, {"n": 1})
            await one.evaluate("() => window.mine.set('n', 2)")
            await two.until(HAS, {"n": 2})
            await two.evaluate("() => window.theirs.children.create('still here')")
            await one.until(f"() => ({CHILDREN})().length === 1")
            for page in (two, one):
                await close(page, tmp_path)
    assert " 0 broken" in judged(tmp_path), judged(tmp_path)


REFUSED = """async (url) => {
    try { await window.hyperty.observe(url); } catch (error) { return [error.code, error.reason]; }
}"""


@needs_chromium
async def test_a_reporter_in_a_page_refuses_allows_and_expels_observers(browsers, tmp_path):
    async with open_served_node(tmp_path) as served, browsers.open("chromium") as browser:
        pages, urls = [await browser.new_page(isolated=True) for _ in range(2)], []
        for page, name in zip(pages, ("one", "two"), strict=True):
            await page.goto(served.page)
            await page.evaluate(OPEN, {"node": served.url, "name": name, "trace": True})
            urls.append(await page.evaluate(DEPLOY))
        one, two = pages
        await one.evaluate("(banned) => void (window.banned = banned)", urls[1])
        url = await one.evaluate(REPORT, {"n": 0}, {})
        assert await two.evaluate(REFUSED, url) == [403, "not you"]
        await one.evaluate("(observer) => window.mine.allow(observer)", urls[1])
        assert await two.evaluate(OBSERVE, url) == {"n": 0}
        await one.until("() => window.mine.observers.length === 1")
        # What an object cannot have, or nobody may write, is refused, and changes nothing.
        wrong = """async (path, value) => {
            try { await window.mine.set(path, value); } catch (error) { return error.code; }
        }"""
        assert await one.evaluate(wrong, "n.x.0", None) is None
        assert await one.evaluate(wrong, "", 1) == 400
        assert await one.evaluate(wrong, "n", "x" * 70_000) == 413
        forged = """async (url) => (await window.runtime.ask("update", `${window.runtime.url}/sm`,
            { resource: url, attribute: "n", value: 9 })).body.code"""
        assert await one.evaluate(forged, url) == 403
        assert await two.evaluate(forged, url) == 404
        await one.evaluate("(observer) => window.mine.expel(observer)", urls[1])
        await two.until("() => window.theirs.gone?.code === 403")
        await one.evaluate("() => window.mine.set('n', 5)")
        assert await two.evaluate("() => window.theirs.value") == {"n": 0}
        assert await two.evaluate(REFUSED, url) == [403, "not you"]
        for page in (two, one):
            await close(page, tmp_path)
            assert page.messages == []
    assert judged(tmp_path).startswith("0 "), judged(tmp_path)
