"""A runtime for a storm: it reports, observes, joins and leaves for as long as it lives.

`python -m tests.system.storm_party NAME NODE FOLDER SEED` reports a stored object, with
children, under the name `NAME.url` of the folder, and observes in turns what others wrote
there. Its trace goes to `FOLDER/trace`.
"""

import random
import sys
from contextlib import suppress
from pathlib import Path

import trio

import actors

PAUSE = 0.05


class Party(actors.Hyperty):
    """Lets everybody observe."""

    async def on_subscribe(self, url, observer):
        pass


async def report(party, name, folder):
    """Change an object as an application does, and say where it is."""
    async with party.report("comm", {"at": 0}, name=name, store=True) as thing:
        (folder / f"{name}.url").write_text(thing.url)
        while True:
            try:
                await thing.set("at", thing.version + 1)
            except actors.ObjectError:
                await trio.sleep(PAUSE)
            await trio.sleep(0.005)


async def observe(party, folder, chance):
    """Observe one object after another for a while, and write children beside it."""
    while True:
        known = sorted(folder.glob("*.url"))
        if known:
            url = chance.choice(known).read_text()
            with suppress(actors.ObjectError):
                await follow(party, url, chance)
        await trio.sleep(chance.random() * PAUSE)


async def follow(party, url, chance):
    async with party.observe(url, store=chance.random() < 0.5) as copy:
        with trio.move_on_after(chance.random()):
            child = await copy.children.create({"n": 0})
            async for _ in copy.changes():
                if chance.random() < 0.1:
                    await child.update({"n": copy.version})
            await child.delete()


async def main(name, node, folder, seed):
    chance, folder = random.Random(f"{seed} {name}"), Path(folder)  # noqa: S311 - to be had again
    trace = folder / "trace"
    async with (
        actors.open_runtime(
            "a.ex", name, node=node, store=folder / f"{name}.sqlite", trace=trace
        ) as runtime,
        trio.open_nursery() as nursery,
    ):
        party = await runtime.deploy(Party, "party")
        nursery.start_soon(report, party, name, folder)
        for number in range(3):
            eye = await runtime.deploy(Party, f"eye{number}")
            nursery.start_soon(observe, eye, folder, chance)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
