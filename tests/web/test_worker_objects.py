"""Data objects of hyperties in Workers, through a real node, with a program on the other side."""

import pytest
import trio

import actors
from actors.embedding import open_runtime
from actors.hyperties import Caller
from tests.web.pages import DOMAIN, OPEN, open_served_node
from tests.web.test_browser_objects import Keeper
from tests.web.test_browser_runtime import BOTH, close, judged

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

CODE = """export default class {
    asked = [];
    changes = [];
    constructor(hyperty) { this.hyperty = hyperty; }
    subscribe({ observer }) { this.asked.push(observer); }
    async invited({ object }) { this.invitation = object; }
    request({ body: { value: [act, ...rest] } }) { return this[act](...rest); }
    async report(value, options) {
        this.mine = await this.hyperty.report("comm", value, options);
        return this.mine.url;
    }
    async change() {
        await this.mine.add("items", "milk");
        await this.mine.set("where.shop", "corner");
        return [this.mine.version, this.asked, this.mine.observers];
    }
    async observe(url) {
        this.theirs = await this.hyperty.observe(url);
        this.theirs.on("change", ({ path, new: value }) => this.changes.push([path, value]));
        return this.theirs.value;
    }
    async seen(n) { return [await this.theirs.waitFor((value) => value.n === n), this.changes]; }
    async child(text) { return (await (this.mine ?? this.theirs).children.create({ text })).id; }
    async children(count) {
        const { children } = this.mine ?? this.theirs;
        while (children.size < count) {
            await new Promise((next) => { const end = children.on("change", () => next(end())); });
        }
        return [...children].map((one) => one.value.text).sort();
    }
    async post(first, last, padding = "") {
        const { children } = this.mine ?? this.theirs;
        for (let n = first; n <= last; n += 1) await children.create([n, padding]);
    }
    passed = new Set();
    count() {
        const { children } = this.theirs;
        children.on("change", ({ id, old }) => void (old ?? this.passed.add(id)));
    }
    async window(wanted) {
        const { children } = this.mine ?? this.theirs;
        const numbers = () => [...children].map((one) => one.value[0]);
        while (numbers().join() !== wanted.join()) {
            await new Promise((next) => { const end = children.on("change", () => next(end())); });
        }
        return [this.passed.size, children.missed];
    }
    async remove_child(id) { await this.mine.children.get(id).delete(); }
    invited_to() { return this.invitation; }
    async leave() { await this.theirs.close(); return this.theirs.gone.code; }
    async remove() { await this.mine.close(); }
    statuses = [];
    async follow(url) {
        this.left = await this.hyperty.follow(url, (status) => this.statuses.push(status));
    }
    async told(count) {
        while (this.statuses.length < count) await new Promise((next) => setTimeout(next, 10));
        return this.statuses;
    }
    leave_record() { return this.left(); }
    async gone() {
        const { theirs } = this;
        return (theirs.gone ?? (await new Promise((end) => theirs.on("end", end)))).code;
    }
}"""
DEPLOY = """async (source) => {
    const deploy = (name) => window.runtime.deploy(name, new Blob([source]));
    window.apart = [await deploy("one"), await deploy("two")];
    return window.apart.map((one) => one.url);
}"""


async def a_worker_reports_to_a_program_and_to_another(ask, keeper, one, two):
    url = await ask(one, "report", {"n": 0, "items": []})
    async with keeper.observe(url) as copy:
        assert await ask(two, "observe", url) == {"n": 0, "items": []}
        assert await ask(one, "change") == [3, [keeper.url, two], [keeper.url, two]]
        await copy.wait_for(lambda value: value.get("where") == {"shop": "corner"})
        assert copy.value["items"] == ["milk"]
        # Each of the three writes a child.
        changes = copy.children.changes()
        for who in (one, two):
            await ask(who, "child", who)
        await copy.children.create({"text": "program"})
        texts = sorted([one, two, "program"])
        assert [await ask(who, "children", 3) for who in (one, two)] == [texts, texts]
        with trio.fail_after(30):
            while len(copy.children) < len(texts):
                await anext(changes)
        assert sorted(one.value["text"] for one in copy.children.values()) == texts
        assert await ask(two, "leave") == 410
        await ask(one, "remove")
        with pytest.raises(actors.ObjectError):
            await copy.wait_for(lambda value: value == "never")


async def a_worker_observes_an_object_of_a_program(ask, keeper, two):
    async with keeper.report("comm", {"n": 0}) as other:
        await other.invite(two)
        assert await ask(two, "invited_to") == other.url
        assert await ask(two, "observe", other.url) == {"n": 0}
        other.data.n = 1
        before = [["items", ["milk"]], ["where", {"shop": "corner"}]]
        assert await ask(two, "seen", 1) == [{"n": 1}, [*before, ["n", 1]]]
    assert await ask(two, "gone") == 410


async def shows(children: actors.Children, wanted: list[int]) -> None:
    changes = children.changes()
    with trio.fail_after(30):
        while [child.value[0] for child in children.values()] != wanted:
            await anext(changes)


async def a_worker_sees_the_window_of_a_program_pass(ask, keeper, two):
    async with keeper.report("comm", {}, children=actors.ChildWindow(last=20)) as room:
        await room.allow(two)
        await ask(two, "observe", room.url)
        await ask(two, "count")
        for number in range(1, 91):
            await room.children.create([number])
        await ask(two, "post", 91, 100)
        wanted = [*range(81, 101)]
        assert await ask(two, "window", wanted) == [100, 0]
        await shows(room.children, wanted)
        await room.children[[*room.children][-1]].delete()
        assert await ask(two, "window", wanted[:-1]) == [100, 0]
        await ask(two, "leave")


async def a_program_sees_the_window_of_a_worker_pass(ask, keeper, one):
    url = await ask(one, "report", {}, {"children": {"last": 20}})
    async with keeper.observe(url) as copy:
        changes, passed = copy.children.changes(), set()
        await ask(one, "post", 1, 90)
        with trio.fail_after(30):
            while len(passed) < 90:
                change = await anext(changes)
                passed.add(change.id)
        for number in range(91, 101):
            mine = await copy.children.create([number])
        wanted = [*range(81, 101)]
        await shows(copy.children, wanted)
        await ask(one, "window", wanted)
        await ask(one, "remove_child", mine.id)
        await shows(copy.children, wanted[:-1])
        with pytest.raises(actors.ObjectError):
            await mine.update([0])
        assert copy.children.missed == 0
        await ask(one, "remove")
    url = await ask(one, "report", {}, {"children": {"seconds": 1}})
    async with keeper.observe(url) as copy:
        await copy.children.create([1])
        await shows(copy.children, [])
        await ask(one, "window", [])
        await ask(one, "remove")


async def who_observes_late_reads_a_window_in_pages(ask, keeper, one, two):
    wanted, text = [*range(1, 251)], "x" * 450
    url = await ask(one, "report", {}, {"children": {}})
    await ask(one, "post", wanted[0], wanted[-1], text)
    async with keeper.observe(url) as copy:
        await shows(copy.children, wanted)
        await ask(one, "remove")
    async with keeper.report("comm", {}, children=actors.ChildWindow()) as room:
        for number in wanted:
            await room.children.create([number, text])
        await room.allow(two)
        await ask(two, "observe", room.url)
        await ask(two, "window", wanted)
        await ask(two, "leave")


async def what_a_worker_reports_ends_with_it(ask, keeper, page, one):
    url = await ask(one, "report", {"n": 7})
    async with keeper.observe(url) as copy:
        assert copy.value == {"n": 7}
        await page.evaluate("() => window.apart[0].close()")
        with pytest.raises(actors.ObjectError):
            await copy.wait_for(lambda value: value == "never")


async def a_worker_follows_the_record_of_a_hyperty(ask, program, one):
    async with await program.deploy(Caller) as other:
        await ask(one, "follow", other.url)
        assert await ask(one, "told", 1) == ["live"]
    assert await ask(one, "told", 2) == ["live", "disconnected"]
    await ask(one, "leave_record")


async def a_worker_follows_the_record_of_an_object(ask, keeper, one):
    async with keeper.report("comm", {"n": 0}) as thing:
        await ask(one, "follow", thing.url)
        assert (await ask(one, "told", 3))[2:] == ["live"]
    assert (await ask(one, "told", 4))[3:] == ["disconnected"]


@pytest.mark.parametrize("name", BOTH)
async def test_hyperties_in_workers_report_observe_and_change_data_objects(
    browsers, name, tmp_path
):
    async with (
        open_served_node(tmp_path) as served,
        browsers.open(name) as browser,
        open_runtime(DOMAIN, "program", node=served.url, trace=tmp_path) as program,
        await program.deploy(Keeper) as keeper,
        await program.deploy(Caller) as caller,
    ):
        page = await browser.new_page(isolated=True)
        await page.goto(served.page)
        await page.evaluate(OPEN, {"node": served.url, "name": "one", "trace": True})
        one, two = await page.evaluate(DEPLOY, CODE)

        async def ask(who, act, *rest):
            return (await caller.request(who, [act, *rest])).value

        await a_worker_reports_to_a_program_and_to_another(ask, keeper, one, two)
        await a_worker_observes_an_object_of_a_program(ask, keeper, two)
        await a_worker_follows_the_record_of_a_hyperty(ask, program, one)
        await a_worker_follows_the_record_of_an_object(ask, keeper, one)
        await a_worker_sees_the_window_of_a_program_pass(ask, keeper, two)
        await a_program_sees_the_window_of_a_worker_pass(ask, keeper, one)
        await who_observes_late_reads_a_window_in_pages(ask, keeper, one, two)
        await what_a_worker_reports_ends_with_it(ask, keeper, page, one)
        await close(page, tmp_path)
        assert page.messages == []
    assert judged(tmp_path).startswith("0 "), judged(tmp_path)
