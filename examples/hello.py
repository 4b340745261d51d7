"""A node, two runtimes, one question: the smallest program there is.

python examples/hello.py
"""

import trio

import actors


class Greeter(actors.Hyperty):
    """Answers each request with a greeting."""

    async def on_request(self, message: actors.Message) -> actors.Json:
        """Answer with a greeting; refuse a request without a name."""
        name = message.value
        if not isinstance(name, str):
            raise actors.Refused(actors.Code.MALFORMED, "a greeting needs a name")
        return f"Hello, {name}!"


class Caller(actors.Hyperty):
    """Answers nothing; the program asks in its name."""


async def main() -> None:
    """Ask twice, and print the answers."""
    async with (
        actors.open_node("a.example") as node,
        actors.open_runtime("a.example", "bob", node=node.url) as there,
        actors.open_runtime("a.example", "alice", node=node.url) as here,
    ):
        greeter = await there.deploy(Greeter)
        caller = await here.deploy(Caller)
        for value in ("Alice", 42):
            answer = await caller.request(greeter.url, value)
            print(answer.code, answer.value or answer.body.get("description"))


if __name__ == "__main__":
    trio.run(main)
