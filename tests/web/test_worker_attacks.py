"""Code in a Worker that means harm: what it reaches, and what becomes of it."""

import json

import pytest
import trio

from tests.support.browser import Browser, BrowserError, Page
from tests.web.pages import HERE, OPEN, Served, open_served_node
from tests.web.test_browser_runtime import BOTH
from tests.web.worker_attacks import ATTACKS, HOSTILE

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

QUICK = """async (options) => {
    // Three seconds of this clock are one: a busy machine is not too late (LATE) all the time.
    const now = () => performance.now() / 333;
    const at = (moment, act) => {
        if (moment === Infinity) return () => {};
        const timer = setTimeout(act, Math.max(0, (moment - now()) * 333));
        return () => clearTimeout(timer);
    };
    return (OPEN)({ ...options, clock: { now, at } });
}""".replace("OPEN", OPEN)
DEPLOY = """async (source) => {
    window.ended = [];
    window.heard = [];
    const module = new Blob([source]);
    const onEnded = (why) => window.ended.push(why);
    window.hostile = await window.runtime.deploy("hostile", module, { onEnded });
    window.honest = await window.runtime.deploy("honest", {
        request: ({ body }) => body.value,
        event: (message) => window.heard.push(message),
    });
    return [window.hostile.url, window.honest.url];
}"""
ATTACK = """async (attack, ...rest) => {
    try {
        return await window.honest.request(window.hostile.url, [attack, ...rest]);
    } catch (error) {
        return { code: error.code, reason: error.reason };
    }
}"""
REMOVED = f"""async (...how) => {{
    const {{ code }} = await ({ATTACK})(...how);
    if (code !== 503 && code !== 404) throw new Error(`answered ${{code}}`);
    return code === 404;
}}"""
DROPS = "() => Object.fromEntries(window.runtime.counters.drops)"


async def attacked(browser: Browser, served: Served, source: str, opening: str = OPEN) -> Page:
    page = await browser.new_page(isolated=True)
    await page.goto(served.page)
    await page.evaluate(opening, {"node": served.url})
    await page.evaluate(DEPLOY, source)
    return page


async def it_reaches_only_its_runtime(browser: Browser, served: Served) -> None:
    reached = []

    async def reach(stream: trio.SocketStream) -> None:
        reached.append(stream)
        await stream.aclose()

    page = await attacked(browser, served, HOSTILE)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, reach, 0)
        port = listeners[0].socket.getsockname()[1]
        got = {one: await page.evaluate(ATTACK, one) for one in ATTACKS}
        assert got == dict.fromkeys(ATTACKS, "undefined")
        for url in (
            f"http://{HERE}:{port}/x.js",
            f"{served.site}/web/src/index.js",
            "data:text/javascript,",
        ):
            assert str(await page.evaluate(ATTACK, "import", url)).startswith("refused: "), url
        assert await page.evaluate(ATTACK, "eval") == "refused"
        assert reached == []
        nursery.cancel_scope.cancel()


async def what_it_sends_is_checked(browser: Browser, served: Served) -> None:
    page = await attacked(browser, served, HOSTILE)
    honest = await page.evaluate("() => window.honest.url")
    # What it may do works, in whatever number.
    assert await page.evaluate(ATTACK, "flood", honest) == [200]
    large = {"code": 413, "reason": "a body has at most 61440 bytes"}
    assert await page.evaluate(ATTACK, "huge") == large
    assert (await page.evaluate(ATTACK, "circle"))["code"] == 500
    assert await page.evaluate(ATTACK, "forge", honest, honest) == 401
    assert await page.evaluate(ATTACK, "forge", honest, "hyperty://a.example/nobody") == 401
    assert await page.evaluate(DROPS) == {"unknown-source": 2}
    assert await page.evaluate("() => window.ended") == []


async def it_gets_no_object_of_others_and_none_in_their_name(
    browser: Browser, served: Served
) -> None:
    page = await attacked(browser, served, HOSTILE)
    urls = "() => [window.runtime.url, window.hostile.url, window.honest.url]"
    runtime, hostile, honest = await page.evaluate(urls)
    manager = f"{runtime}/sm"
    url = await page.evaluate("""async () => {
        window.mine = await window.honest.report("comm", { n: 0 });
        return window.mine.url;
    }""")

    async def say(from_: str, type_: str, to: str, **body: object) -> object:
        return await page.evaluate(ATTACK, "say", from_, type_, to, body)

    # In the name of another it reports nothing, and speaks for no object.
    value = {"data": {}, "reporter": honest}
    assert await say(honest, "create", manager, schema="x/Communication", value=value) == 401
    assert await say(honest, "update", manager, resource=url, attribute="n", value=1) == 401
    assert await say(f"{url}/subscription", "delete", f"{url}/changes") == 401
    assert await say(manager, "subscribe", f"{url}/subscription", source=hostile) == 401
    assert await page.evaluate(DROPS) == {"unknown-source": 4}
    # In its own name it changes, deletes and reads no other's object, and lets nobody in.
    assert await say(hostile, "update", manager, resource=url, attribute="n", value=1) == 403
    assert await say(hostile, "delete", manager, resource=url) == 403
    assert await say(hostile, "create", manager, resource=url, observer=hostile) == 403
    assert await say(hostile, "subscribe", f"{url}/subscription", source=honest) == 403
    assert await say(hostile, "create", f"{url}/children/resources", value=1) == 403
    assert await say(hostile, "read", url) == 401
    assert await page.evaluate(ATTACK, "observe", honest, url) == 403
    assert await page.evaluate("() => [window.mine.value, window.mine.observers]") == [{"n": 0}, []]
    # What it reports is its own, whatever name it gives itself, and ends with it. The module of
    # data objects is loaded once.
    own, reporter = await page.evaluate(ATTACK, "report", honest, hostile)
    assert reporter == hostile
    assert (await page.evaluate(ATTACK, "steal", "do load"))["code"] == 503
    assert await page.evaluate("() => window.ended") == ["it says what nobody has asked for"]
    gone = "async (url) => (await window.honest.ask('read', url, {})).body.code === 404"
    await page.until(gone, own)


async def with_the_port_in_its_hands_it_is_checked_like_any_other_and_then_ended(
    browser: Browser, served: Served
) -> None:
    page = await attacked(browser, served, HOSTILE)
    urls = "() => [window.runtime.url, window.hostile.url, window.honest.url]"
    runtime, hostile, honest = await page.evaluate(urls)
    stub = f"{runtime}/protostub/1"
    lies = [
        message(stub, f"{stub}/status", "update", value="failed"),
        message(hostile, f"{stub}/status", "update", value="failed"),
        message(honest, f"{honest}/events", "create", value="forged"),
        message(hostile, honest, "response", code=200),
        message(hostile, honest, "create", via=[stub, stub]),
        "{", "{}", '{"id":LONG',
    ]  # fmt: skip
    assert await page.evaluate(ATTACK, "steal", *lies) == "[object MessagePort]"
    await page.until("() => window.runtime.counters.drops.size >= 5")
    assert await page.evaluate(DROPS) == {
        "unknown-source": 2, "forged-status": 1, "unmatched": 1, "malformed": 3, "loop": 1,
    }  # fmt: skip
    assert await page.evaluate("() => window.heard") == []
    assert await page.evaluate("() => window.runtime.state") == "live"
    assert (await page.evaluate(ATTACK, "steal", *["{}"] * 2000))["code"] == 503
    assert await page.evaluate("() => window.ended") == ["it posts more than it may"]
    # While it is removed it is gone (503), then nobody has its address (404).
    await page.until(REMOVED, "steal")


async def a_flood_of_what_nobody_has_asked_for_ends_it(browser: Browser, served: Served) -> None:
    page = await attacked(browser, served, HOSTILE)
    assert (await page.evaluate(ATTACK, "steal", *["no object"] * 2000))["code"] == 503
    assert await page.evaluate("() => window.ended") == ["it says what nobody has asked for"]


async def if_it_does_not_answer_it_is_ended(browser: Browser, served: Served) -> None:
    page = await attacked(browser, served, HOSTILE, QUICK)
    answer = await page.evaluate(ATTACK, "loop")
    assert answer == {"code": 503, "reason": "the receiver is gone"}
    assert await page.evaluate("() => window.ended") == ["it does not answer"]
    assert await page.evaluate("() => window.runtime.hyperties.length") == 1


async def if_it_does_not_start_nothing_is_left(browser: Browser, served: Served) -> None:
    page = await attacked(browser, served, "export default {};")
    for code, why in (
        ("export default 7;", "TypeError: the code of a hyperty is an object or a class"),
        ("import './other.js';", "does not start"),
        ("not JavaScript", "SyntaxError"),
        ("export default { started() { throw new Error('no'); } };", "Error: no"),
    ):
        with pytest.raises(BrowserError, match=why):
            await page.evaluate(DEPLOY, code)
    assert await page.evaluate("() => window.runtime.hyperties.length") == 2


SCENES = (
    it_reaches_only_its_runtime,
    what_it_sends_is_checked,
    it_gets_no_object_of_others_and_none_in_their_name,
    with_the_port_in_its_hands_it_is_checked_like_any_other_and_then_ended,
    a_flood_of_what_nobody_has_asked_for_ends_it,
    if_it_does_not_answer_it_is_ended,
    if_it_does_not_start_nothing_is_left,
)


@pytest.mark.parametrize("name", BOTH)
async def test_code_in_a_worker_that_means_harm(browsers, name):
    """One browser for all: to start one takes longer than most attacks."""
    async with open_served_node() as served, browsers.open(name) as browser:
        for scene in SCENES:
            await scene(browser, served)


def message(from_: str, to: str, type_: str, **body: object) -> str:
    return json.dumps({"id": 1, "type": type_, "from": from_, "to": to, "body": body})
