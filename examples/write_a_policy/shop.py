"""A policy of the node permits the till to take money out, and denies it to others.

Run it: `python examples/write_a_policy/shop.py`

`shop.toml` beside this file has the rules of the node; docs/policies.md explains them. The
policy of a single runtime is a class: `NoBots` refuses the messages of robots.
"""

from pathlib import Path

import trio

import actors

RULES = Path(__file__).with_name("shop.toml")


class Cash(actors.Hyperty):
    """Contains money."""

    async def on_request(self, message: actors.Message) -> actors.Json:
        """Give the requested money; the node has refused all other requests."""
        return f"here you are: {message.body.get('value')}"


class Person(actors.Hyperty):
    """Sends requests, and answers none."""


class NoBots(actors.Policy):
    """Refuses the messages of robots; its runtime calls it for each message."""

    def refusal(self, message: actors.Message, by: str) -> str | None:
        """Return the reason of a refusal; None: the message is permitted."""
        del by
        return "no robots" if message.value == "beep" else None


async def main() -> None:
    """Send three requests to the safe."""
    rules = actors.PolicyConfig(files=(RULES,))
    node_config = actors.NodeConfig(domain="shop.example", policies=rules)
    async with actors.open_node(node_config) as node:
        vault, till, street = (
            actors.RuntimeConfig(domain="shop.example", name=name, node=node.url, policy=NoBots())
            for name in ("vault", "till", "street")
        )
        async with (
            actors.open_runtime(vault) as behind,
            actors.open_runtime(till) as inside,
            actors.open_runtime(street) as outside,
        ):
            safe = await behind.deploy(Cash)
            clerk, thief = await inside.deploy(Person), await outside.deploy(Person)
            for name, sender, value in (
                ("clerk", clerk, "ten coins"),
                ("thief", thief, "ten coins"),
                ("robot", clerk, "beep"),
            ):
                answer = await sender.request(safe.url, value, actors.MessageType.DELETE)
                said = answer.value or answer.body.get("description")
                print(f"{name}: {answer.code} {said}")


if __name__ == "__main__":
    trio.run(main)
