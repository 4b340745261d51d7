"""The example of the document: a page that the node serves, used by hand."""

import os
import re
import signal
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
import trio

from tests.support.browser import needs_chromium
from tests.support.ports import free_port
from tests.web.pages import DOMAIN, open_served_node

pytestmark = [pytest.mark.timeout(240), needs_chromium]

DOCUMENT = Path(__file__).parents[2] / "docs" / "browser.md"
EXAMPLES = Path(__file__).parents[2] / "examples"
FILL = """(name, value) => {
    const field = document.querySelector(`[name="${name}"]`);
    field.value = value;
}"""
ANSWERS = "() => [...document.querySelectorAll('li')].map((one) => one.textContent)"


async def test_the_page_opens_a_runtime_and_asks_code_in_a_worker(browsers):
    async with open_served_node() as served, browsers.open() as browser:
        page = await browser.new_page()
        await page.goto(served.page)
        await page.evaluate(FILL, "node", served.url)
        await page.click("#opening button")
        await page.until("() => !document.querySelector('#asking').hidden")
        for number in ("21", "-1.5"):
            await page.evaluate(FILL, "number", number)
            await page.click("#asking button")
        await page.until("() => document.querySelectorAll('li').length === 2")
        await page.until(
            "() => [...document.querySelectorAll('li')].every((one) => one.textContent)"
        )
        assert await page.evaluate(ANSWERS) == ["21: 42", "-1.5: -3"]
        await page.evaluate(FILL, "to", "hyperty://a.example/nobody")
        await page.click("#asking button")
        await page.until("() => document.querySelectorAll('li')[2]?.textContent")
        assert (await page.evaluate(ANSWERS))[2].startswith("-1.5: refused, 404 ")
        assert page.messages == []


async def test_the_program_of_the_document_runs_as_it_stands(browsers):
    (program,) = re.findall(
        r"```js\n(import \{ openRuntime.*?)```", DOCUMENT.read_text(), re.DOTALL
    )
    async with open_served_node() as served, browsers.open() as browser:
        page = await browser.new_page()
        await page.goto(served.page)
        program = program.replace("ws://127.0.0.1:8440/link", served.url).replace(
            'from "./protofly.js"', 'from "/web/protofly.js"'
        )
        assert DOMAIN in program
        imports, rest = program.split(";\n", 1)
        names = re.search(r"\{(.*)\}", imports)[1]
        await page.evaluate(
            f"async () => {{ const {{{names}}} = await import('/web/protofly.js'); {rest} }}"
        )
        said = await page.said(" 42")
        assert re.search(r"hyperty://a\.example/\S+ 42$", said), said


async def test_the_page_of_sensors_shows_each_value_until_the_sensors_are_gone(browsers):
    values = """() => {
        const lines = [...document.querySelectorAll("polyline")];
        const drawn = lines.map((one) => (one.getAttribute("points") ?? "").split(" ").length);
        return drawn.length === 3 && Math.min(...drawn) > 3 && drawn;
    }"""
    command = sys.executable, EXAMPLES / "sensor_dashboard.py", str(free_port())
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}
    async with browsers.open() as browser:
        sensors = await trio.lowlevel.open_process(command, stdout=PIPE, env=environment)
        try:
            said = b""
            while not said.endswith(b"\n"):
                said += await sensors.stdout.receive_some()
            page = await browser.new_page()
            await page.goto(said.decode().strip())
            await page.until(values)
            text = await page.text()
            for name, unit in (("hall", "°C"), ("cellar", "°C"), ("barometer", "hPa")):
                assert re.search(rf"{name}\s+-?\d+\.\d {unit}", text), text
            sensors.send_signal(signal.SIGINT)
            assert await sensors.wait() == 0
            assert page.messages == []
        finally:
            sensors.kill()
            await sensors.wait()
