"""A to-do list that two terminals share: whatever one of them writes, both see.

First a node, in a terminal of its own; it prints the address to be used as NODE:

    python -m actors node --domain home.example --allow-legacy

Opening a list prints its address; other people join by it:

    python examples/todo/todo.py NODE anna
    python examples/todo/todo.py NODE bert LIST
"""

import sys
from functools import partial
from urllib.parse import urlsplit

import trio

import actors

USAGE = "usage: python todo.py NODE NAME [LIST]"
WORDS = "say add TEXT, done NUMBER, undo NUMBER, drop NUMBER, show, or quit"
DOMAIN = "home.example"
MOST = 50
DIGITS = len(str(MOST))

DEFINITION: actors.JsonObject = {
    "type": "object",
    "required": ["keeper", "items"],
    "additionalProperties": False,
    "properties": {
        "keeper": {"type": "string"},
        "items": {
            "type": "array",
            "maxItems": MOST,
            "items": {
                "type": "object",
                "required": ["title", "done"],
                "additionalProperties": False,
                "properties": {
                    "title": {"type": "string", "minLength": 1, "maxLength": 60},
                    "done": {"type": "boolean"},
                },
            },
        },
    },
}
"""The schema of a list: nothing else can be written into it."""


class RequestError(Exception):
    """A typed request cannot be carried out; the text says why."""


def fulfil(todo: actors.ReportedObject, request: str) -> None:
    """Write into the list what somebody typed."""
    word, _, rest = request.strip().partition(" ")
    items = todo.data.items
    match word:
        case "add":
            items.append({"title": rest.strip(), "done": False})
        case "done":
            items[place(rest, len(items))].done = True
        case "undo":
            items[place(rest, len(items))].done = False
        case "drop":
            del items[place(rest, len(items))]
        case _:
            raise RequestError(WORDS)


def place(number: str, count: int) -> int:
    """Return which item a number from 1 on names."""
    digits = number.strip()
    if not digits.isdecimal() or len(digits) > DIGITS or not 1 <= int(digits) <= count:
        raise RequestError(f"there is no item {digits[:MOST] or 'without a number'}")
    return int(digits) - 1


class Keeper(actors.Hyperty):
    """Keeps a list, and does what others ask for."""

    todo: actors.ReportedObject

    async def on_subscribe(self, url: str, observer: str) -> None:
        """Let everybody observe who knows the address."""

    async def on_request(self, message: actors.Message) -> actors.Json:
        """Write the requested change, and answer when all observers have it."""
        try:
            fulfil(self.todo, str(message.body.get("value")))
            return await self.todo.flush()
        except (RequestError, actors.SchemaError) as wrong:
            raise actors.Refused(actors.Code.MALFORMED, str(wrong)) from wrong
        except actors.ObjectError as lost:
            raise actors.Refused(actors.Code(lost.code), lost.why) from lost


class Guest(actors.Hyperty):
    """Looks at a list, and asks its keeper to write."""


def show(value: actors.JsonObject) -> None:
    """Print a list."""
    items = value["items"]
    print("---")
    for number, item in enumerate(items if isinstance(items, list) else [], 1):
        if isinstance(item, dict):
            print(f"{number} [{'x' if item['done'] else ' '}] {item['title']}")
    sys.stdout.flush()


async def follow(copy: actors.ObservedObject, over: trio.CancelScope) -> None:
    """Show the list whenever it has changed, until it is gone."""
    async for state in copy.states():
        show(dict(state.value))
    print("the list is closed", flush=True)
    over.cancel()


async def converse(hyperty: actors.Deployed, url: str) -> None:
    """Do what is typed, until it is `quit` or nothing is typed any more."""
    async with hyperty.observe(url) as copy, trio.open_nursery() as nursery:
        nursery.start_soon(follow, copy, nursery.cancel_scope)
        show(dict(copy.value))
        read = partial(trio.to_thread.run_sync, sys.stdin.readline, abandon_on_cancel=True)
        while (line := await read()) and line.strip() != "quit":
            if line.strip() == "show":
                show(dict(copy.value))
            elif line.strip():
                answer = await hyperty.request(str(copy.value["keeper"]), line)
                if answer.code != actors.Code.OK:
                    print(answer.body.get("description", answer.code), flush=True)
        nursery.cancel_scope.cancel()


async def main(node: str, name: str, url: str | None) -> None:
    """Open a list, or join one."""
    async with actors.open_runtime(DOMAIN, name, node=node) as runtime:
        if url is not None:
            await converse(await runtime.deploy(Guest), url)
            return
        keeper = Keeper()
        me = await runtime.deploy(lambda: keeper, "keeper")
        first: actors.JsonObject = {"keeper": me.url, "items": []}
        async with me.report("comm", first, name="to do", definition=DEFINITION) as keeper.todo:
            print(f"list: {keeper.todo.url}", flush=True)
            await converse(me, keeper.todo.url)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or urlsplit(sys.argv[1]).scheme not in ("ws", "wss"):
        sys.exit(USAGE)
    try:
        trio.run(main, sys.argv[1], sys.argv[2], sys.argv[3] if sys.argv[3:] else None)
    except actors.ProtoflyError as wrong:
        sys.exit(f"todo: {wrong}")
    except KeyboardInterrupt:
        sys.exit(0)
