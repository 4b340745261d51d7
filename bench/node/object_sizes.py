"""Bytes of a change of a large object on the link of an observer, and of the object.

A reporter and an observer of the product talk by a node over a network in memory. What is
weighed are the frames that cross the observer's link: all that the runtimes and the node
put into a message is in them, the head of a WebSocket frame (2 to 4 bytes) is not.
"""

from typing import Final, final

import attrs
import trio
from typing_extensions import override

import actors
from specs.jsonvalue import Json, JsonObject
from transports.memory import MemoryNetwork

ENTRIES: Final = 100
"""Things on the list, of which one changes."""

_DOMAIN: Final = "a.example"
_CHANGED: Final = 42
_PATIENCE: Final = 10.0
"""Seconds in which the observer must have the change."""


@final
@attrs.frozen
class Weighed:
    """The frames that crossed the observer's link.

    Attributes:
        change: With the change of one entry.
        whole: With the snapshot of the object.
    """

    change: bytes
    whole: bytes


@final
class _Public(actors.Hyperty):
    """A hyperty without behaviour."""

    @override
    async def on_request(self, message: actors.Message) -> None:
        pass


async def weigh() -> Weighed:
    """Let one entry of a list change, and return what its observer got.

    Raises:
        trio.TooSlowError: The observer did not get the change.
        ValueError: Not one frame had the snapshot, or not one the change.
    """
    network = MemoryNetwork()
    crossed: list[bytes] = []

    def seen(frame: bytes) -> bytes:
        crossed.append(frame)
        return frame

    async with (
        actors.open_node(_DOMAIN, network=network) as node,
        actors.open_runtime(_DOMAIN, "ra", node=node.url, network=network) as here,
        actors.open_runtime(_DOMAIN, "rb", node=node.url, network=network) as there,
    ):
        reporter, observer = await here.deploy(_Public), await there.deploy(_Public)
        async with reporter.report("comm", _list(), public=True) as thing:
            for wire in network.wires:
                wire.acceptor.sieve = seen  # the node's ends
            await _change(thing, observer)
    return Weighed(_only(crossed, b'"type":"update"'), _only(crossed, b'"items":'))


def _list() -> JsonObject:
    entries: list[Json] = [
        {"text": f"number {number} of what is on the list", "done": False}
        for number in range(ENTRIES)
    ]
    return {"title": "to do", "items": entries}


async def _change(thing: actors.ReportedObject, observer: actors.Deployed) -> None:
    async with observer.observe(thing.url) as copy:
        version = await thing.set(f"items.{_CHANGED}.done", value=True)
        with trio.fail_after(_PATIENCE):
            async for state in copy.states():
                if state.version >= version:
                    return


def _only(crossed: list[bytes], mark: bytes) -> bytes:
    (frame,) = (one for one in crossed if mark in one)
    return frame
