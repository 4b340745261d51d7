"""The demonstration as a page: two windows of a browser and the robot."""

import signal
import subprocess
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import pytest
import trio

import actors
from actors.cli.group import ExitCode
from examples.demo.page import DOMAIN, open_web_demo
from examples.demo.robot import ITEMS, LINES, MORE_LINES, NAME, PEOPLE, TEXT
from tests.support.browser import needs_chromium
from tests.support.command import PYTHON, ROOT
from tests.web.npm import installed

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

# Without these Chromium hides its address behind a name that nobody resolves here.
FLAGS = ("--disable-features=WebRtcHideLocalIpsWithMdns", "--allow-loopback-in-peer-connection")
PLACE = "127.0.0.1:0"
HOSTILE = "<img src=x onerror='window.pwned=1'>"
SIZES = (390, 768, 1280, 1920)
OVER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
WATCH = """() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation",
        (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
}"""
WRITE = """(form, text) => {
    const entry = document.getElementById(form);
    entry.querySelector("input").value = text;
    entry.requestSubmit();
}"""
SHOWS = "(id, part) => document.getElementById(id).innerText.includes(part)"
SHOWN_ITEMS = "() => [...document.querySelectorAll('#items .what')].map((one) => one.textContent)"
WAYS = """() => Object.fromEntries([...document.querySelectorAll("button.person")].map((one) =>
    [one.querySelector(".person-name").innerText, one.querySelector(".badge").innerText]))"""
LINKED = f"""(names) => {{
    const ways = ({WAYS})();
    return names.every((name) => ways[name] === "direct link");
}}"""
STEPS = "() => document.getElementById('steps').innerText"
CHOOSE = """(name) => [...document.querySelectorAll("button.person")]
    .find((one) => one.innerText.includes(name)).click()"""


async def join(browser, url, name):
    page = await browser.new_page(isolated=True)
    await page.goto(url)
    await page.evaluate(WRITE, "joining", name)
    await page.until("() => !document.getElementById('stage').hidden")
    return page


@asynccontextmanager
async def open_windows(browsers, *names, flags=FLAGS):
    """Run the demonstration, and join it in a window for each name."""
    async with open_web_demo(PLACE) as url, browsers.open("chromium", *flags) as browser:
        await browser.preload(WATCH)
        yield [await join(browser, url, name) for name in names]


@needs_chromium
async def test_two_windows_and_the_robot_chat_and_share_a_list(browsers):
    async with open_windows(browsers, "Anna", HOSTILE) as (one, two):
        await one.until(SHOWS, "lines", f"{HOSTILE} joins.")
        await one.evaluate(WRITE, "saying", "hello to all of you")
        await two.until(SHOWS, "lines", "I count 5 words.")
        await two.evaluate(WRITE, "saying", f"todo: {HOSTILE}")
        await one.until(SHOWS, "items", HOSTILE)
        async with trio.open_nursery() as nursery:
            for page, who in ((one, "a"), (two, "b")):
                for number in range(3):
                    nursery.start_soon(page.evaluate, WRITE, "adding", f"{who}{number}")
        full = "() => document.querySelectorAll('#items li').length === 7"
        for page in (one, two):
            await page.until(full)
        assert await one.evaluate(SHOWN_ITEMS) == await two.evaluate(SHOWN_ITEMS)
        await one.click("#items input")
        await two.until("() => document.querySelector('#items input').checked")
        await two.click("#items li:last-child button")
        await one.until("() => document.querySelectorAll('#items li').length === 6")
        await two.evaluate("() => dispatchEvent(new Event('pagehide'))")
        await one.until(SHOWS, "lines", f"{HOSTILE} leaves.")
        for page in (one, two):
            assert not await page.evaluate("() => window.pwned ?? document.querySelector('li img')")
            assert await page.evaluate("() => window.violations") == []
            assert page.messages == []


@needs_chromium
async def test_a_link_goes_live_is_cut_and_mends_and_outlives_the_way_to_the_node(browsers):
    async with open_windows(browsers, "Anna", "Bert") as (one, two):
        await one.until(LINKED, ["Bert"])
        await two.until(LINKED, ["Anna"])
        await one.evaluate(CHOOSE, "Bert")
        live = "() => document.querySelector('#p2p_connection__live.peopled')"
        await one.until(f"() => Boolean(({live})())")
        await one.click("#cut")
        await one.until(SHOWS, "steps", "You cut the link to Bert.")
        for page, peer in ((one, "Bert"), (two, "Anna")):
            await page.until(SHOWS, "steps", f"The link to {peer} is lost")
            await page.until(LINKED, [peer])
        await one.click("#online")
        await one.until("() => document.getElementById('live-text').innerText === 'Offline'")
        ways, steps = [await one.evaluate(read) for read in (WAYS, STEPS)]
        assert ways["Bert"] == "direct link", steps
        await one.click("#online")
        await one.until("() => document.getElementById('live-text').innerText === 'Online'")
        assert one.messages == two.messages == []


@needs_chromium
async def test_without_webrtc_messages_go_by_the_node_and_the_page_says_so(browsers):
    async with open_web_demo(PLACE) as url, browsers.open("chromium") as browser:
        await browser.preload("() => { delete window.RTCPeerConnection; }")
        one, two = [await join(browser, url, name) for name in ("Anna", "Bert")]
        await one.evaluate(WRITE, "saying", "hello")
        await two.until(SHOWS, "lines", "hello")
        assert "This browser has no WebRTC" in await one.text()
        assert set((await two.evaluate(WAYS)).values()) == {"by the node"}


@needs_chromium
async def test_axe_finds_no_violation_and_nothing_overflows(browsers):
    axe = installed("axe-core/axe.min.js")
    look = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
        .map((one) => [one.id, ...one.nodes.map((node) => node.html + node.failureSummary)])"""
    async with open_web_demo(PLACE) as url, browsers.open("chromium", *FLAGS) as browser:
        page = await browser.new_page(isolated=True)
        await page.goto(url)
        await page.evaluate(f"() => {{ {axe}\n window.axe = axe; }}")
        assert await page.evaluate(look) == []
        await page.evaluate(WRITE, "joining", "x" * NAME)
        await page.until("() => Boolean(document.querySelector('#drawing svg'))")
        await page.evaluate(WRITE, "saying", f"todo: {'y' * (TEXT - 10)}")
        await page.until(SHOWS, "items", "yyy")
        for scheme in ("light", "dark"):
            await page.prefer(scheme)
            for width in SIZES:
                await page.resize(width, 844)
                assert await page.evaluate(look) == []
                assert await page.evaluate(OVER) <= 0, width


async def test_ctrl_c_ends_the_command_in_order():
    command = [*PYTHON, "examples.demo", "--web"]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, cwd=ROOT)
    said = b""
    while b"robot=" not in said:
        said += await process.stdout.receive_some() or pytest.fail(said.decode())
    assert b" http://127.0.0.1:" in said
    process.send_signal(signal.SIGINT)
    assert await process.wait() == ExitCode.OK


@pytest.mark.parametrize("place", ["nowhere", "127.0.0.1:65536", "127.0.0.1:x", "192.0.2.1:0"])
async def test_a_place_that_cannot_be_used_is_named(place):
    with pytest.raises(actors.HttpPlaceError, match=place):
        async with open_web_demo(place):
            pytest.fail("there is a page")


class Visitor(actors.Hyperty):
    """Takes part."""


@asynccontextmanager
async def open_visitor():
    """Run the demonstration, and a hyperty in Python that has not joined."""
    async with open_web_demo(PLACE) as url:
        given = parse_qs(urlsplit(url).fragment)
        (node,), (robot,) = given["node"], given["robot"]
        async with actors.open_runtime(DOMAIN, "visitor", node=node) as runtime:
            yield runtime, await runtime.deploy(Visitor), robot


async def code_of(me, robot, value):
    return (await me.request(robot, value)).code


async def test_the_robot_refuses_strangers_and_what_does_not_fit():
    async with open_visitor() as (_, me, robot):
        for value in ({"text": "hi"}, {"what": "milk"}, {"id": 1, "done": True}, {"drop": 1}):
            assert await code_of(me, robot, value) == actors.Code.FORBIDDEN
        for name in ("", " ", "x" * (NAME + 1), 5):
            assert await code_of(me, robot, {"name": name}) == actors.Code.MALFORMED
        assert await code_of(me, robot, {"name": "Anna"}) == actors.Code.OK
        assert await code_of(me, robot, {"text": "x" * (TEXT + 1)}) == actors.Code.MALFORMED
        assert await code_of(me, robot, {"id": 1, "done": True}) == actors.Code.NOT_FOUND


async def test_chat_and_list_stay_within_their_limits():
    async with open_visitor() as (_, me, robot):
        joined = (await me.request(robot, {"name": "Anna"})).body["value"]
        async with me.observe(joined["chat"]) as chat, me.observe(joined["todo"]) as todo:
            for number in range(ITEMS):
                assert await code_of(me, robot, {"text": f"todo: {number}"}) == actors.Code.OK
                assert len(chat.value["lines"]) <= LINES + MORE_LINES
            assert await code_of(me, robot, {"what": "more"}) == actors.Code.UNAVAILABLE
            await chat.wait_for(lambda value: value["lines"][-1]["text"].endswith(str(ITEMS - 1)))
            await todo.wait_for(lambda value: len(value["items"]) == ITEMS)


async def test_the_oldest_participant_who_does_not_observe_makes_room():
    async with open_visitor() as (runtime, observer, robot):
        joined = (await observer.request(robot, {"name": "Anna"})).body["value"]
        async with observer.observe(joined["chat"]):
            others = [await runtime.deploy(Visitor) for _ in range(PEOPLE - 1)]
            for me in others:
                assert await code_of(me, robot, {"name": "Bert"}) == actors.Code.OK
            says = [await code_of(me, robot, {"text": "hi"}) for me in (observer, *others[:2])]
            assert says == [actors.Code.OK, actors.Code.FORBIDDEN, actors.Code.OK]
