"""The runtime in real browsers, with a real node and a runtime in Python."""

import time
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner
from typing_extensions import override

from actors import GivenToken, Hyperty, RuntimeConfig
from actors.embedding import open_runtime
from actors.hyperties import Caller, Echo
from fsm.__main__ import cli
from tests.support.browser import needs_chromium, needs_firefox
from tests.support.node.issuer import Issuer, login_by
from tests.web.pages import DOMAIN, OPEN, open_served_node, open_wire

pytestmark = pytest.mark.timeout(240)

BOTH = [
    pytest.param("chromium", marks=needs_chromium),
    pytest.param("firefox", marks=needs_firefox),
]
DOUBLE = """async () => {
    const code = { request: ({ body }) => body.value * 2 };
    return (window.double = await window.runtime.deploy("double", code)).url;
}"""
DOUBLE_APART = """async () => {
    const code = new URL("/web/example/double.js", location.href);
    return (window.double = await window.runtime.deploy("double", code)).url;
}"""
ASK = "async (to, value) => await window.double.request(to, value)"
REOPENED = """(times) => window.runtime.state === "live" &&
    window.steps.filter((step) => step.cause === "reestablished").length >= times"""
CLOSE = """async () => {
    await window.runtime.close();
    return [window.runtime.trace.path, window.runtime.trace.text()];
}"""


async def close(page, folder: Path) -> None:
    """Close a page's runtime, and put its trace beside the others."""
    path, text = await page.evaluate(CLOSE)
    file = trio.Path(folder, path)
    await file.parent.mkdir(parents=True)
    await file.write_text(text)


def judged(folder: Path) -> str:
    """Judge all traces below a folder; return what the judge says last."""
    result = CliRunner().invoke(cli, ["judge", str(folder)])
    return f"{result.exit_code} {result.output}"


@pytest.mark.parametrize("name", BOTH)
async def test_pages_and_a_program_talk_through_cuts_and_their_traces_are_conformant(
    browsers, name, tmp_path
):
    async with (
        open_served_node(tmp_path) as served,
        open_wire(served.url) as wire,
        browsers.open(name) as browser,
        open_runtime(DOMAIN, "program", node=served.url, trace=tmp_path) as program,
    ):
        echo, caller = await program.deploy(Echo), await program.deploy(Caller)
        one, two = [await browser.new_page(isolated=True) for _ in range(2)]
        for page, who, code in ((one, "one", DOUBLE), (two, "two", DOUBLE_APART)):
            await page.goto(served.page)
            options = {"node": wire.url, "name": who, "trace": True}
            await page.evaluate(OPEN, options)
            await page.evaluate(f"async () => {{ await ({code})(); }}")
        urls = [await page.evaluate("() => window.double.url") for page in (one, two)]
        for cuts in range(2):
            # What was under way when the wire was cut would be lost, and answered 408.
            for page in (one, two):
                await page.until(REOPENED, cuts)
            assert await one.evaluate(ASK, urls[1], 4) == 8
            assert await two.evaluate(ASK, urls[0], 5.25) == 10.5
            assert await one.evaluate(ASK, echo.url, {"ü": [1, None, 1.0, 0.1]}) == {
                "ü": [1, None, 1, 0.1]
            }
            assert [(await caller.request(url, 21.0)).value for url in urls] == [42, 42]
            wire.cut()
        for page in (one, two):
            await page.until(REOPENED, 2)
            await close(page, tmp_path)
            assert page.messages == []
    assert judged(tmp_path).startswith("0 "), judged(tmp_path)


OVER_RELOADS = """async (node) => {
    const { openRuntime } = await import("/web/protofly.js");
    const store = await new Promise((resolve, reject) => {
        const opening = indexedDB.open("keys", 1);
        opening.onupgradeneeded = () => opening.result.createObjectStore("keys");
        opening.onsuccess = () => resolve(opening.result);
        opening.onerror = () => reject(opening.error);
    });
    const keys = () => store.transaction("keys", "readwrite").objectStore("keys");
    const done = (asked) =>
        new Promise((resolve) => { asked.onsuccess = () => resolve(asked.result); });
    let key = await done(keys().get("own"));
    if (!key) {
        key = await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
        await done(keys().put(key, "own"));
    }
    const session = sessionStorage.getItem("session") ?? undefined;
    const runtime = await openRuntime({ domain: "a.example", node, name: "one", key, session });
    sessionStorage.setItem("session", runtime.session);
    const echo = await runtime.deploy("echo", { request: ({ body }) => body.value });
    return [runtime.key.thumbprint, echo.url, await echo.request(echo.url, 7)];
}"""


@needs_chromium
async def test_a_page_that_is_reloaded_has_its_key_session_and_addresses_again(browsers):
    async with open_served_node() as served, browsers.open() as browser:
        page = await browser.new_page()
        await page.goto(served.page)
        first = await page.evaluate(OVER_RELOADS, served.url)
        await page.reload()
        assert await page.evaluate(OVER_RELOADS, served.url) == first
        assert first[2] == 7


THUMBPRINT = """async () => {
    const { openKey } = await import("/web/protofly.js");
    window.pair = await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
    return (await openKey(window.pair)).thumbprint;
}"""
LOG_IN = """async (node, token, whose) => {
    const { openRuntime } = await import("/web/protofly.js");
    const key = whose === "own" ? window.pair : undefined;
    try {
        window.runtime = await openRuntime({ domain: "a.example", node, token, key });
    } catch (error) {
        return { name: error.name, code: error.code };
    }
    window.double = await window.runtime.deploy("double", {});
    return window.runtime.said.identity.user;
}"""


class WhoAsks(Hyperty):
    """Answers with what it is told of the sender."""

    @override
    async def on_request(self, message):
        return [message.identity.user, message.identity.vouched_by.value]


@pytest.mark.parametrize("name", BOTH)
async def test_a_login_token_that_is_bound_to_a_key_is_good_for_its_holder_only(browsers, name):
    issuer = Issuer(domain=DOMAIN, now=time.time())  # noqa: TID251 - tokens are of our time
    login = login_by(issuer, clock=time.time)  # noqa: TID251 - the same
    async with (
        open_served_node(login=login, allow_legacy=False) as served,
        browsers.open(name) as browser,
    ):
        credentials = GivenToken(issuer.token(sub="user://idp.ex/bob"))
        config = RuntimeConfig(
            domain=DOMAIN, name="program", node=served.url, credentials=credentials
        )
        async with open_runtime(config) as program:
            who = await program.deploy(WhoAsks)
            page = await browser.new_page()
            await page.goto(served.page)
            thumbprint = await page.evaluate(THUMBPRINT)
            token = issuer.token(sub="user://idp.ex/alice", cnf={"jkt": thumbprint})
            stolen = {"name": "RefusedError", "code": 401}
            assert await page.evaluate(LOG_IN, served.url, token, "another") == stolen
            assert await page.evaluate(LOG_IN, served.url, None, "own") == stolen
            assert await page.evaluate(LOG_IN, served.url, token, "own") == "user://idp.ex/alice"
            asked = await page.evaluate(ASK, who.url, 1)
            assert asked == ["user://idp.ex/alice", "identity-provider"]
