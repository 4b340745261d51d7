"""How many functions of the product are called for a round trip?

Best case: one at a time, everything as in the round before. Counted are calls of functions of the
product, and steps of tasks, of all parties together: they run in one process. The machine does not
matter, so two versions of the product can be compared.
"""

import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Final

import attrs
import trio
from typing_extensions import override

import actors
from bench.report import Case, Row, program

_TRIPS: Final = {
    "local": "a request within a runtime", "node": "a request by the node",
    "object": "a change of an object to its observer",
}  # fmt: skip
_DOMAIN: Final = "a.example"
_WARM_UP: Final = 20
_SETTLED: Final = 0.2
_PACKAGES: Final = tuple(
    str(Path(actors.__file__).parents[1] / name) + "/"
    for name in ("actors", "fsm", "specs", "transports")
)


@attrs.frozen
class Calls:
    """Numbers of calls for one round trip of a request.

    Attributes:
        calls: Calls of functions of the product.
        files: Number of source files that contain these functions.
        steps: How often the scheduler ran a task.
    """

    calls: float
    files: int
    steps: float


class _Steps(trio.abc.Instrument):
    """Trio instrument that counts how often the scheduler runs a task."""

    def __init__(self) -> None:
        self.count = 0

    @override
    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1


class _Echo(actors.Hyperty):
    """Hyperty that answers every request, and accepts every observer."""

    async def on_request(self, message: actors.Message) -> actors.Json:
        return message.body.get("value")

    async def on_subscribe(self, url: str, observer: str) -> None:
        pass


async def measure(rounds: int) -> dict[str, Calls]:
    """Measure a local request, a request by the node, and an object write to its observer."""
    async with (
        actors.open_node(_DOMAIN) as node,
        actors.open_runtime(_DOMAIN, "here", node=node.url) as here,
        actors.open_runtime(_DOMAIN, "there", node=node.url) as peer,
    ):
        caller = await here.deploy(actors.Hyperty, "caller")
        near, far = await here.deploy(_Echo, "near"), await peer.deploy(_Echo, "far")

        async def ask_near() -> None:
            await caller.request(near.url, 1)

        async def ask_far() -> None:
            await caller.request(far.url, 1)

        local = await _counted(ask_near, rounds)
        by_node = await _counted(ask_far, rounds)
        async with (
            near.report("ctxt", {"n": 0}) as reported,
            far.observe(reported.url) as copy,
        ):
            written = 0

            async def write() -> None:
                nonlocal written
                written += 1
                await reported.set("n", written)
                await copy.wait_for(lambda value: value["n"] == written)

            return {"local": local, "node": by_node, "object": await _counted(write, rounds)}


async def _counted(work: Callable[[], Awaitable[None]], rounds: int) -> Calls:
    for _ in range(_WARM_UP):
        await work()
    await trio.sleep(_SETTLED)
    files: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_PACKAGES):
            files[frame.f_code.co_filename] += 1

    steps = _Steps()
    trio.lowlevel.add_instrument(steps)
    sys.setprofile(count)
    try:
        for _ in range(rounds):
            await work()
        # What is done after the answer belongs to it.
        await trio.sleep(_SETTLED)
    finally:
        sys.setprofile(None)
        trio.lowlevel.remove_instrument(steps)
    many = sum(files[file] >= rounds for file in files)
    return Calls(files.total() / rounds, many, steps.count / rounds)


async def _rows(rounds: int) -> list[Row]:
    taken = await measure(rounds)
    return [
        Row(f"{_TRIPS[trip]}, {field.name}", getattr(calls, field.name), "", Case.BEST)
        for trip, calls in taken.items()
        for field in attrs.fields(Calls)
    ]


main = program(_rows, {"rounds": (200, 20)})

if __name__ == "__main__":
    main()
