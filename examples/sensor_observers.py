"""A sensor reports measurements; two observers follow, one of them slowly.

Run it: `python examples/sensor_observers.py`
"""

import trio

import actors

READINGS = (20.0, 20.5, 21.0, 22.5, 24.0)
TOO_WARM = 24.0


class Sensor(actors.Hyperty):
    """Reports a temperature to all observers."""

    async def on_subscribe(self, url: str, observer: str) -> None:
        """Accept every observer: returning is consent."""


class Display(actors.Hyperty):
    """Shows every change."""

    async def show(self, url: str, ready: trio.Event) -> None:
        """Print each change until the object is deleted."""
        async with self.observe(url) as copy:
            print(f"display: {copy.value['celsius']} degrees to begin with")
            ready.set()
            async for change in copy.changes():
                print(f"display: {change.new} degrees (version {change.version})")
        print("display: the sensor is gone")


class Alarm(actors.Hyperty):
    """Waits for one value, and may miss all others."""

    async def follow(self, url: str, ready: trio.Event) -> None:
        """Print a warning at the first high temperature."""
        async with self.observe(url) as copy:
            ready.set()
            await copy.wait_for(lambda value: value["celsius"] == TOO_WARM)
            print("alarm: it is too warm!")


async def main() -> None:
    """Run a sensor in one runtime and its observers in another."""
    display, alarm = Display(), Alarm()
    async with (
        actors.open_node("home.example") as node,
        actors.open_runtime("home.example", "cellar", node=node.url) as cellar,
        actors.open_runtime("home.example", "kitchen", node=node.url) as kitchen,
        trio.open_nursery() as observers,
    ):
        sensor = await cellar.deploy(Sensor)
        await kitchen.deploy(lambda: display, "display")
        await kitchen.deploy(lambda: alarm, "alarm")
        async with sensor.report("ctxt", {"celsius": 19.5}, name="hall") as thermometer:
            for follow in (display.show, alarm.follow):
                ready = trio.Event()
                observers.start_soon(follow, thermometer.url, ready)
                await ready.wait()
            for celsius in READINGS:
                await thermometer.set("celsius", celsius)
                await trio.sleep(0.05)


if __name__ == "__main__":
    trio.run(main)
