"""Data objects between pages and a program, through a real node."""

import pytest
import trio

import actors
from actors.embedding import open_runtime
from tests.support.browser import open_browser
from tests.web.pages import DOMAIN, OPEN, open_served_node
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
async def test_objects_of_pages_and_of_a_program_converge_everywhere(name, tmp_path):
    async with (
        open_served_node(tmp_path) as served,
        open_browser(name) as browser,
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
                ["where.shop", "corner"],
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
