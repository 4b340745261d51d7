"""Real browsers for tests: Debian's Chromium and Firefox, driven by WebDriver BiDi on Trio."""

import base64
import os
import re
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import attrs
import httpcore
import orjson
import pytest
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_client_stream

from tests.support.ports import free_port

START = 60  # seconds that a browser may take to start on a machine whose cores are busy
ATTEMPTS = 5  # to start a program
PATIENCE = 30  # seconds that a page may take until what is waited for is there
FRAME = 1 << 26  # a screenshot is one message

CHROMIUM = (
    "--headless",
    "--no-sandbox",  # tests may run as root
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
FIREFOX = {
    "app.normandy.enabled": False,
    "browser.aboutwelcome.enabled": False,
    "browser.newtab.preload": False,
    "browser.newtabpage.enabled": False,
    "browser.pagethumbnails.capturing_disabled": True,
    "browser.region.update.enabled": False,
    "browser.safebrowsing.blockedURIs.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.ipc.processPrelaunch.enabled": False,
    "extensions.enabledScopes": 0,
    "extensions.systemAddon.update.enabled": False,
    "extensions.webextensions.remote": False,
    "services.settings.server": "",
    "toolkit.telemetry.server": "",
}
"""Preferences without what pages do not see: a start takes a third less processor time."""

KEYS = {
    "Backspace": "\ue003",
    "Tab": "\ue004",
    "Enter": "\ue007",
    "Shift": "\ue008",
    "Escape": "\ue00c",
    "Space": " ",
    "End": "\ue010",
    "Home": "\ue011",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
}

needs_chromium = pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")),
    reason="no Chromium; apt-get install chromium chromium-driver",
)
needs_firefox = pytest.mark.skipif(
    not shutil.which("firefox-esr"), reason="no Firefox; apt-get install firefox-esr"
)


class BrowserError(Exception):
    """The browser refused a command, or a function in a page threw."""


@attrs.define(eq=False)
class Page:
    """A tab; functions are JavaScript, what they take and return is JSON."""

    browser: "Browser"
    context: str
    messages: list[str] = attrs.field(factory=list)
    """What the console said, `level: text`, uncaught errors included."""
    _news: trio.Event = attrs.field(factory=trio.Event, init=False)

    async def goto(self, url: str, wait: str = "complete") -> None:
        """Load a page; `wait` may be `none`, `interactive` or `complete`."""
        await self._call("browsingContext.navigate", url=url, wait=wait)

    async def reload(self) -> None:
        await self._call("browsingContext.reload", wait="complete")

    async def evaluate(self, function: str, *arguments: object) -> object:
        """Call a function in the page and wait for its promise.

        Raises:
            BrowserError: The function threw.
        """
        wrapped = (
            f"async (text) => JSON.stringify(await ({function})(...JSON.parse(text))) ?? 'null'"
        )
        result = await self._call(
            "script.callFunction",
            functionDeclaration=wrapped,
            arguments=[{"type": "string", "value": orjson.dumps(arguments).decode()}],
            awaitPromise=True,
            target={"context": self.context},
        )
        if result["type"] == "exception":
            raise BrowserError(result["exceptionDetails"]["text"])
        return orjson.loads(result["result"]["value"])

    async def until(self, function: str, *arguments: object, patience: float = PATIENCE) -> object:
        """Call a function at every change of the page until what it returns is true; return that.

        Raises:
            BrowserError: It was never true.
        """
        waiting = f"""async (patience, ...args) => {{
            const end = performance.now() + patience * 1000;
            for (;;) {{
                const value = await ({function})(...args);
                if (value || performance.now() > end) return [Boolean(value), value];
                await new Promise((next) => setTimeout(next, 20));
            }}
        }}"""
        is_true, value = await self.evaluate(waiting, patience, *arguments)
        if not is_true:
            raise BrowserError(f"never true: {function}; console: {self.messages}")
        return value

    async def said(self, part: str) -> str:
        """Wait for a message of the console that has a text in it."""
        while True:
            if found := [message for message in self.messages if part in message]:
                return found[0]
            await self._news.wait()

    def hear(self, message: str) -> None:
        """Note a message of the console."""
        self.messages.append(message)
        self._news.set()
        self._news = trio.Event()

    async def text(self) -> str:
        """Return the text that is shown."""
        return str(await self.evaluate("() => document.body.innerText"))

    async def press(self, *keys: str, held: str | None = None) -> None:
        """Press keys one by one, by their names or as text, while another may be held."""
        values = [KEYS.get(key, key) for key in keys]
        actions = [
            {"type": kind, "value": value} for value in values for kind in ("keyDown", "keyUp")
        ]
        if held is not None:
            down, up = ({"type": kind, "value": KEYS[held]} for kind in ("keyDown", "keyUp"))
            actions = [down, *actions, up]
        await self._perform({"type": "key", "id": "keys", "actions": actions})

    async def type(self, text: str) -> None:
        """Type a text into what has the focus."""
        await self.press(*text)

    async def click(self, selector: str) -> None:
        """Click the middle of the first element that fits, as a mouse does."""
        x, y = await self.evaluate(
            """(selector) => {
                const element = document.querySelector(selector);
                if (!element) throw new Error(`nothing fits ${selector}`);
                element.scrollIntoView({block: "center", behavior: "instant"});
                const box = element.getBoundingClientRect();
                return [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)];
            }""",
            selector,
        )
        moves = [
            {"type": "pointerMove", "x": x, "y": y},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        await self._perform({"type": "pointer", "id": "mouse", "actions": moves})

    async def screenshot(
        self, width: int | None = None, height: int = 800, *, whole: bool = False
    ) -> bytes:
        """Return a PNG of what is visible, or of the whole page, after a change of the size."""
        if width is not None:
            await self.resize(width, height)
        origin = "document" if whole else "viewport"
        shot = await self._call("browsingContext.captureScreenshot", origin=origin)
        return base64.b64decode(shot["data"])

    async def resize(self, width: int, height: int = 800) -> None:
        size = {"width": width, "height": height}
        await self._call("browsingContext.setViewport", viewport=size)

    async def cdp(self, method: str, **params: object) -> dict:
        """Call Chromium's own DevTools protocol, e.g. `Emulation.setEmulatedMedia`."""
        session = await self._call("goog:cdp.getSession")
        sent = {"method": method, "params": params, "session": session["session"]}
        return (await self.browser.call("goog:cdp.sendCommand", sent))["result"]

    async def prefer(self, scheme: str) -> None:
        """Say that the user prefers `dark` or `light` pages (Chromium only)."""
        scheme = {"name": "prefers-color-scheme", "value": scheme}
        await self.cdp("Emulation.setEmulatedMedia", features=[scheme])

    async def close(self) -> None:
        await self._call("browsingContext.close")

    async def _perform(self, source: dict) -> None:
        await self._call("input.performActions", actions=[source])

    async def _call(self, method: str, **params: object) -> dict:
        named = {} if method.startswith("script.") else {"context": self.context}
        return await self.browser.call(method, named | params)


@attrs.define(eq=False)
class Browser:
    """A browser as one test has it: nothing of the tests before is in it."""

    socket: WebSocketConnection
    _ids: count = attrs.field(factory=partial(count, 1), init=False)
    _waiting: dict[int, trio.MemorySendChannel] = attrs.field(factory=dict, init=False)
    _pages: dict[str, Page] = attrs.field(factory=dict, init=False)
    _profiles: list[str] = attrs.field(factory=list, init=False)
    """The first is for pages that are not isolated."""
    _preloads: list[str] = attrs.field(factory=list, init=False)

    async def new_page(self, *, isolated: bool = False) -> Page:
        """Open a tab, in a profile of its own if `isolated`: no cookies, storage, cache shared."""
        profile = await self.new_profile() if isolated else self._profiles[0]
        tab = await self.call("browsingContext.create", {"type": "tab", "userContext": profile})
        context = tab["context"]
        page = self._pages[context] = Page(self, context)
        return page

    async def new_profile(self) -> str:
        """Create a profile, which is removed with its pages when the test is over."""
        made = await self.call("browser.createUserContext", {})
        self._profiles.append(made["userContext"])
        return self._profiles[-1]

    async def preload(self, function: str) -> None:
        """Call a function in all pages to come, before their own scripts."""
        made = await self.call("script.addPreloadScript", {"functionDeclaration": function})
        self._preloads.append(made["script"])

    async def clear(self) -> None:
        """Remove what the test has opened, with all that its pages have stored."""
        for script in self._preloads:
            await self.call("script.removePreloadScript", {"script": script})
        for profile in self._profiles:
            await self.call("browser.removeUserContext", {"userContext": profile})

    async def call(self, method: str, params: dict) -> dict:
        """Call a method of WebDriver BiDi.

        Raises:
            BrowserError: The browser refused.
        """
        number = next(self._ids)
        send, receive = trio.open_memory_channel(1)
        self._waiting[number] = send
        message = {"id": number, "method": method, "params": params}
        await self.socket.send_message(orjson.dumps(message).decode())
        try:
            answer = await receive.receive()
        except trio.EndOfChannel:
            raise BrowserError(f"the browser ended at {method}") from None
        finally:
            self._waiting.pop(number, None)
        if answer["type"] == "error":
            raise BrowserError(f"{method}: {answer['error']}: {answer['message']}")
        return answer["result"]

    async def read(self) -> None:
        """Hand out what the browser says until its connection ends."""
        try:
            while True:
                message = orjson.loads(await self.socket.get_message())
                if (send := self._waiting.get(message.get("id"))) is not None:
                    send.send_nowait(message)
                elif message.get("method") == "log.entryAdded":
                    entry = message["params"]
                    page = self._pages.get(entry["source"].get("context"))
                    if page is not None:
                        page.hear(f"{entry['level']}: {entry['text']}")
        except ConnectionClosed:
            for send in self._waiting.values():
                send.close()


@attrs.frozen(eq=False)
class _Running:
    """A browser process, which one test after another connects to."""

    process: subprocess.Popen
    url: str
    folder: TemporaryDirectory

    def end(self) -> None:
        _kill(self.process)
        self.folder.cleanup()


def _kill(process: subprocess.Popen) -> None:
    # It may have ended by itself, and been waited for.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _spawn(command: list, folder: str) -> subprocess.Popen:
    """Start a program in a process group of its own; its output goes to the file `said`."""
    with Path(folder, "said").open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - a browser
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | {"HOME": folder},
        )


async def _started(command: list, folder: str, sign: bytes) -> tuple[subprocess.Popen, str]:
    """Start a program; return what stands after a sign on its output, "" if it has ended."""
    process = _spawn(command, folder)
    try:
        with trio.fail_after(START):
            while process.poll() is None:
                said = await trio.Path(folder, "said").read_bytes()
                if found := re.search(sign + rb"(\S+?)\.?\s", said):
                    return process, found[1].decode()
                await trio.sleep(0.02)  # real time: it looks again
    except BaseException:
        _kill(process)
        raise
    return process, ""


async def _process(command: list, folder: str, sign: bytes) -> tuple[subprocess.Popen, str]:
    """Run a program; return what stands after a sign on its output, too.

    A free port that a program picks may be taken by another when it listens: it is started again.
    """
    for _ in range(ATTEMPTS):
        process, found = await _started(command, folder, sign)
        if found:
            return process, found
        _kill(process)
    raise BrowserError(await trio.Path(folder, "said").read_text())


async def _chromium(folder: str, *options: str) -> tuple[subprocess.Popen, str]:
    # A port of its own choice would have to be free at two addresses at once.
    driver = [shutil.which("chromedriver"), f"--port={free_port()}"]
    process, port = await _process(driver, folder, b"started successfully on port ")
    profile = f"--user-data-dir={folder}/profile"
    wanted = {
        "webSocketUrl": True,
        "acceptInsecureCerts": True,
        "goog:chromeOptions": {"args": [*CHROMIUM, profile, *options]},
    }
    try:
        async with httpcore.AsyncConnectionPool() as pool:
            url = f"http://127.0.0.1:{port}/session"
            body = orjson.dumps({"capabilities": {"alwaysMatch": wanted}})
            response = await pool.request("POST", url, content=body)
        value = orjson.loads(response.content)["value"]
        assert "capabilities" in value, value
    except BaseException:
        _kill(process)
        raise
    return process, value["capabilities"]["webSocketUrl"]


async def _firefox(folder: str, *options: str) -> tuple[subprocess.Popen, str]:
    profile = trio.Path(folder, "profile")
    await profile.mkdir()
    lines = [f"user_pref({name!r}, {orjson.dumps(at).decode()});" for name, at in FIREFOX.items()]
    await (profile / "user.js").write_text("\n".join(lines))
    command = [shutil.which("firefox-esr"), "--headless", "--no-remote", "--profile", str(profile)]
    command += ["--remote-debugging-port", "0", *options, "about:blank"]
    process, url = await _process(command, folder, b"BiDi listening on ")
    return process, f"{url}/session"


STARTS = {"chromium": _chromium, "firefox": _firefox}


async def _start(name: str, *options: str) -> _Running:
    folder = TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
    try:
        process, url = await STARTS[name](folder.name, *options)
    except BaseException:
        folder.cleanup()
        raise
    return _Running(process, url, folder)


@asynccontextmanager
async def _connected(name: str, url: str) -> AsyncIterator[Browser]:
    """Use a browser; leave it as it was, unless the test fails."""
    at = urlsplit(url)
    # A connection that the browser ends with its session would be left unclosed by its WebSocket.
    async with (
        await trio.open_tcp_stream(at.hostname, at.port) as stream,
        trio.open_nursery() as nursery,
    ):
        socket = await wrap_client_stream(
            nursery, stream, at.netloc, at.path, max_message_size=FRAME
        )
        browser = Browser(socket)
        nursery.start_soon(browser.read)
        if name == "firefox":
            wanted = {"alwaysMatch": {"acceptInsecureCerts": True}}
            await browser.call("session.new", {"capabilities": wanted})
        heard = await browser.call("session.subscribe", {"events": ["log.entryAdded"]})
        await browser.new_profile()
        yield browser
        await browser.clear()
        await browser.call("session.unsubscribe", {"subscriptions": [heard["subscription"]]})
        if name == "firefox":
            await browser.call("session.end", {})
        await socket.aclose()
        nursery.cancel_scope.cancel()


@attrs.frozen(eq=False)
class Browsers:
    """The browsers of a session of tests: each is started once, as that takes seconds.

    Each test has profiles of its own, which are removed after it. A browser in which a test has
    failed is ended, and the next test starts another one.
    """

    _idle: dict[tuple[str, ...], _Running] = attrs.field(factory=dict, init=False)

    @asynccontextmanager
    async def open(self, name: str = "chromium", *options: str) -> AsyncIterator[Browser]:
        """Use Chromium or Firefox; options are its own."""
        kind = (name, *options)
        running = self._idle.pop(kind, None) or await _start(*kind)
        try:
            async with _connected(name, running.url) as browser:
                yield browser
        except BaseException:
            running.end()
            raise
        if self._idle.setdefault(kind, running) is not running:
            running.end()

    @property
    def idle(self) -> dict[tuple[str, ...], subprocess.Popen]:
        """The processes that wait for the next test."""
        return {kind: running.process for kind, running in self._idle.items()}

    def close(self) -> None:
        """End those that no test uses."""
        while self._idle:
            self._idle.popitem()[1].end()
