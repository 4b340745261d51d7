"""A to-do list that two terminals share: each sees the changes of both.

Start a node in a separate terminal; it prints the address to use as NODE:

    python -m actors node --domain home.example --allow-legacy

The first command opens a list and prints its address; the second joins the list by it:

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
    "required": ["owner", "items"],
    "additionalProperties": False,
    "properties": {
        "owner": {"type": "string"},
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
"""The schema of a list; other values are refused."""


class RequestError(Exception):
    """A typed request cannot be carried out; the text says why."""


def fulfil(todo: actors.ReportedObject, request: str) -> None:
    """Carry out a typed request on the list."""
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
    """Return the index of the item that a number from 1 on names."""
    digits = number.strip()
    if not digits.isdecimal() or len(digits) > DIGITS or not 1 <= int(digits) <= count:
        raise RequestError(f"there is no item {digits[:MOST] or 'without a number'}")
    return int(digits) - 1


class Owner(actors.Hyperty):
    """Reports a list, and carries out requests of other hyperties."""

    todo: actors.ReportedObject

    async def on_subscribe(self, url: str, observer: str) -> None:
        """Accept every observer that knows the address."""

    async def on_request(self, message: actors.Message) -> actors.Json:
        """Write the requested change, and answer when all observers have it."""
        try:
            fulfil(self.todo, str(message.value))
            return await self.todo.flush()
        except (RequestError, actors.SchemaError) as wrong:
            raise actors.Refused(actors.Code.MALFORMED, str(wrong)) from wrong
        except actors.ObjectError as lost:
            raise actors.Refused(actors.Code(lost.code), lost.why) from lost


class Visitor(actors.Hyperty):
    """Observes a list, and requests changes of its owner."""


def show(value: actors.JsonObject) -> None:
    """Print a list."""
    items = value["items"]
    print("---")
    for number, item in enumerate(items if isinstance(items, list) else [], 1):
        if isinstance(item, dict):
            print(f"{number} [{'x' if item['done'] else ' '}] {item['title']}")
    sys.stdout.flush()


async def follow(copy: actors.ObservedObject, over: trio.CancelScope) -> None:
    """Print the list after each change, until it is closed."""
    async for state in copy.states():
        show(dict(state.value))
    print("the list is closed", flush=True)
    over.cancel()


async def converse(hyperty: actors.Deployed, url: str) -> None:
    """Carry out typed requests until `quit` or the end of the input."""
    async with hyperty.observe(url) as copy, trio.open_nursery() as nursery:
        nursery.start_soon(follow, copy, nursery.cancel_scope)
        show(dict(copy.value))
        read = partial(trio.to_thread.run_sync, sys.stdin.readline, abandon_on_cancel=True)
        while (line := await read()) and line.strip() != "quit":
            if line.strip() == "show":
                show(dict(copy.value))
            elif line.strip():
                answer = await hyperty.request(str(copy.value["owner"]), line)
                if answer.code != actors.Code.OK:
                    print(answer.body.get("description", answer.code), flush=True)
        nursery.cancel_scope.cancel()


async def main(node: str, name: str, url: str | None) -> None:
    """Open a list, or join one."""
    async with actors.open_runtime(DOMAIN, name, node=node) as runtime:
        if url is not None:
            await converse(await runtime.deploy(Visitor), url)
            return
        owner = Owner()
        me = await runtime.deploy(lambda: owner, "owner")
        first: actors.JsonObject = {"owner": me.url, "items": []}
        async with me.report("comm", first, name="to do", definition=DEFINITION) as owner.todo:
            print(f"list: {owner.todo.url}", flush=True)
            await converse(me, owner.todo.url)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or urlsplit(sys.argv[1]).scheme not in ("ws", "wss"):
        sys.exit(USAGE)
    try:
        trio.run(main, sys.argv[1], sys.argv[2], sys.argv[3] if sys.argv[3:] else None)
    except actors.ProtoflyError as wrong:
        sys.exit(f"todo: {wrong}")
    except KeyboardInterrupt:
        sys.exit(0)
