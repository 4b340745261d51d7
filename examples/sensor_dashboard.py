"""Sensors that a page shows: it observes a data object of each, and draws the last values.

Run it: `python examples/sensor_dashboard.py`, and open the address that it prints. Ctrl-C ends it.

The node serves the page, whose sources are `web/example/sensors.html` and `sensors.js`.
"""

import random
import sys
from urllib.parse import urlencode

import trio

import actors

DOMAIN = "home.example"
PAGE = "/web/example/sensors.html"
SENSORS = (("hall", 19.5, "°C"), ("cellar", 11.0, "°C"), ("barometer", 1013.0, "hPa"))
PAUSE = 0.5
"""Seconds between two values of a sensor."""


class Sensor(actors.Hyperty):
    """Measures, and reports each value to all observers."""


async def measure(thing: actors.ReportedObject, value: float) -> None:
    """Let a value wander, until the program ends."""
    while True:
        value += random.gauss(0, 0.2)
        await thing.set("value", round(value, 2))
        await trio.sleep(PAUSE)


async def run_sensor(
    runtime: actors.Runtime,
    name: str,
    value: float,
    unit: str,
    *,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Deploy a sensor, tell the address of its object, and measure."""
    sensor = await runtime.deploy(Sensor, name)
    first: actors.JsonObject = {"value": value, "unit": unit}
    async with sensor.report("ctxt", first, name=name, public=True) as thing:
        task_status.started(thing.url)
        await measure(thing, value)


async def main(port: str) -> None:
    """Run a node with its page, and the sensors."""
    site = f"http://127.0.0.1:{port}"
    config = actors.NodeConfig(
        domain=DOMAIN,
        http=actors.HttpConfig(f"127.0.0.1:{port}"),
        origins=frozenset({site}),
    )
    async with (
        actors.open_node(config) as node,
        actors.open_runtime(DOMAIN, "sensors", node=node.url) as runtime,
        trio.open_nursery() as nursery,
    ):
        objects = {
            name: await nursery.start(run_sensor, runtime, name, value, unit)
            for name, value, unit in SENSORS
        }
        place = urlencode({"node": node.url, "domain": DOMAIN, **objects})
        print(f"{site}{PAGE}#{place}", flush=True)


if __name__ == "__main__":
    try:
        trio.run(main, sys.argv[1] if len(sys.argv) > 1 else "8441")
    except KeyboardInterrupt:
        print("ended")
