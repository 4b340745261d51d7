"""A program follows the state machine of a direct link.

python examples/follow_a_link.py
"""

import trio
from transitions import EventData

import actors
import fsm


class Echo(actors.Hyperty):
    """Answers each request with its value."""

    async def on_request(self, message: actors.Message) -> actors.Json:
        """Return the value of the request."""
        return message.value


class Link:
    """Follows one direct link; the machine sets `state`.

    Args:
        key: Identifies the link: both runtimes, the role of this one, and a name.
    """

    state: str
    is_live = trio.Event()

    def __init__(self, key: str) -> None:
        self.remote = key.split("|")[1]

    def on_enter_in_progress(self, _: EventData) -> None:
        """Print that the link is being set up."""
        print(f"link to {self.remote}: it is set up")

    def on_enter_live(self, _: EventData) -> None:
        """Print that the link carries messages, and wake the waiting task."""
        print(f"link to {self.remote}: it is live")
        self.is_live.set()

    def on_exit_live(self, event: EventData) -> None:
        """Print why the link carries no more messages."""
        print(f"link to {self.remote}: it ends, {event.kwargs['step'].cause}")


async def main() -> None:
    """Follow the link that the first request sets up, until its runtime ends."""
    print("a link may be", ", ".join(list(fsm.machine("p2p_connection").states)[1:]))
    async with actors.open_node("a.example") as node:
        alice, bob = (
            actors.RuntimeConfig(
                domain="a.example", name=name, node=node.url, kinds=(actors.Kind.TCP,)
            )
            for name in ("alice", "bob")
        )
        async with actors.open_runtime(bob) as there, actors.open_runtime(alice) as here:
            await here.follow("p2p_connection", Link)
            caller, echo = await here.deploy(Echo), await there.deploy(Echo)
            print("by the node:", (await caller.request(echo.url, "hello")).value)
            await Link.is_live.wait()
            print("by the link:", (await caller.request(echo.url, "again")).value)


if __name__ == "__main__":
    trio.run(main)
