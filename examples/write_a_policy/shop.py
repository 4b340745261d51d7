"""A policy at the node decides who may take money out: the till may, a visitor may not.

Run it: `python examples/write_a_policy/shop.py`

The rules stand in `shop.toml` beside this file, see docs/policies.md. A policy of a single
runtime is a class instead: `NoBots` keeps back what robots say.
"""

from pathlib import Path

import trio

import actors

RULES = Path(__file__).with_name("shop.toml")


class Cash(actors.Hyperty):
    """Holds money."""

    async def on_request(self, message: actors.Message) -> actors.Json:
        """Give what is asked for: the node has decided who may ask."""
        return f"here you are: {message.body.get('value')}"


class Person(actors.Hyperty):
    """Asks only."""


class NoBots(actors.Policy):
    """Lets no robot speak; each runtime that is given it asks it about each message."""

    def refusal(self, message: actors.Message, by: str) -> str | None:
        """Say why not; None: it may pass."""
        del by
        return "no robots" if message.body.get("value") == "beep" else None


async def main() -> None:
    """Let three ask the same."""
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
            for name, who, value in (
                ("clerk", clerk, "ten coins"),
                ("thief", thief, "ten coins"),
                ("robot", clerk, "beep"),
            ):
                answer = await who.request(safe.url, value, actors.MessageType.DELETE)
                said = answer.body.get("value") or answer.body.get("description")
                print(f"{name}: {answer.code} {said}")


if __name__ == "__main__":
    trio.run(main)
