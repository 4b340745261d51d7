"""A reporter or an observer with a store, as a process that may be killed at any moment.

`python -m tests.actors.runtime.store.stored_party report NODE STORE` reports one object,
changes it as fast as it can, and says each version that it was notified. `... observe NODE STORE
URL` observes it, and says each version that it sees. Each line is one JSON object.
"""

import json
import sys

import trio

import actors
from tests.support.report_world import Open


def say(**reported):
    sys.stdout.write(json.dumps(reported) + "\n")
    sys.stdout.flush()


async def report(node, store):
    async with (
        actors.open_runtime("a.ex", "ra", node=node, store=store) as runtime,
        await runtime.deploy(Open, "todo") as todo,
        todo.report("comm", {"at": 1}, name="todo", store=True) as thing,
    ):
        say(url=thing.url, resumed=thing.resumed, version=thing.version, at=thing.value["at"])
        while True:
            version = await thing.set("at", thing.version + 1)
            say(version=version)
            await trio.sleep(0.002)


async def observe(node, store, url):
    async with (
        actors.open_runtime("a.ex", "rb", node=node, store=store) as runtime,
        await runtime.deploy(Open, "watch") as watch,
        watch.observe(url, store=True) as copy,
    ):
        seen = copy.state
        say(version=seen.version, at=seen.value["at"], stale=copy.is_stale)
        while (seen := await copy.later_than(seen.version)) is not None:
            say(version=seen.version, at=seen.value["at"], stale=copy.is_stale)
        say(gone=True)


if __name__ == "__main__":
    trio.run({"report": report, "observe": observe}[sys.argv[1]], *sys.argv[2:])
