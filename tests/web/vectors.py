"""Odd values, and what a program makes of them: a page has to make the same.

`vectors.json` holds both; `vectors.test.js` gives the values to the browser runtime. After a rule
has changed, `python -m tests.web.vectors` writes what a program makes of them now.
"""

import json
from functools import reduce
from pathlib import Path
from typing import Any

import trio

import actors
from actors.embedded_node import open_node
from actors.embedding import open_runtime
from actors.kit.trace import value_digest
from fsm.sync.value.value import check_path
from specs.addresses.address import domain_name, runtime_name
from specs.bodies.object import Change, DataObject
from specs.errors import BadMessageError, BadUrlError
from specs.message import Message, MessageType
from tests.support.lone_copy import lone_copy, told, without_steps
from transports.bodies import read_body
from transports.codec import BadLine, decode_line

URL = "comm://a.ex/1"
FILE = Path(__file__).with_name("vectors.json")
REFUSALS = (actors.NotJsonError, actors.SchemaError, actors.ObjectError, BadMessageError)


def made(value: Any) -> Any:  # noqa: PLR0911 - a table
    """Return the value that a vector describes: some would be too long for a file, or no JSON."""
    match value:
        case {"$number": text}:
            return float(text) if set(text) & set(".eNI") or text == "-0" else int(text)
        case {"$repeat": [text, count]}:
            return text * count
        case {"$list": [part, count]}:
            return [made(part)] * count
        case {"$join": [text, count]}:
            return ".".join([text] * count)
        case {"$nested": depth}:
            return reduce(lambda inner, _: [inner], range(depth), 1)
        case {"$nestedKeys": depth}:
            return reduce(lambda inner, _: {"k": inner}, range(depth), 1)
        case {"$keys": count}:
            return dict.fromkeys(map(str, range(count)), 1)
        case {"$named": [name, part]}:
            return {made(name): made(part)}
        case dict():
            return {key: made(part) for key, part in value.items()}
        case list():
            return [made(part) for part in value]
        case _:
            return value


class Echo(actors.Hyperty):
    """Answers what it was sent, in short."""

    async def on_request(self, request: Message) -> str:
        return value_digest(request.body)


async def outcomes(vectors: dict[str, Any]) -> dict[str, list[Any]]:
    """Return what a program makes of each vector."""
    async with open_node("a.ex") as node, open_runtime("a.ex", "ra", node=node.url) as runtime:
        hyperty = await runtime.deploy(Echo, "echo")
        start = vectors["start"]
        async with hyperty.report("comm", start) as thing:
            written = [await _written(hyperty, thing, one, start) for one in vectors["writes"]]
        return {
            "writes": written,
            "requests": [await _requested(hyperty, one) for one in vectors["requests"]],
            "changes": [_changed(one["body"], vectors["before"]) for one in vectors["changes"]],
            "names": [_named(one) for one in vectors["names"]],
            "lines": [_read(one["text"]) for one in vectors["lines"]],
        }


async def _written(
    hyperty: actors.Deployed, thing: actors.ReportedObject, vector: dict[str, Any], start: Any
) -> str:
    value, path, call = made(vector.get("value")), made(vector.get("path")), vector["call"]
    try:
        if call in {"report", "named"}:
            async with hyperty.report("comm", value, name=made(vector.get("name"))) as other:
                return value_digest(dict(other.value))
        if call == "child":
            return value_digest((await thing.children.create(value)).value)
        await _become(thing, made(vector.get("start", start)))
        arguments = {"remove": (), "set": (value,)}.get(call, value)
        await getattr(thing, call)(path, *arguments)
        return value_digest(dict(thing.value))
    except REFUSALS:
        return "refused"
    except TypeError:
        if call == "report":
            return "refused"
        raise


async def _become(thing: actors.ReportedObject, value: Any) -> None:
    now = thing.value
    for key in {**now, **value}:
        if key not in value:
            await thing.remove(key)
        elif key not in now or value_digest(now[key]) != value_digest(value[key]):
            await thing.set(key, value[key])


async def _requested(hyperty: actors.Deployed, vector: dict[str, Any]) -> Any:
    try:
        answer = await hyperty.ask(hyperty.url, MessageType.CREATE, made(vector["body"]))
    except REFUSALS:
        return "refused"
    return answer.value if answer.ok else "refused"


def _changed(body: Any, before: Any) -> Any:
    copy = lone_copy(URL, "hyperty://a.ex/o")
    copy.begin(0)
    copy.become(DataObject("hyperty://a.ex/r", "hyperty-runtime://a.ex/r", before, URL, 2), 0)
    try:
        body = json.loads(json.dumps(made(body)))
        change = read_body(Message(1, MessageType.UPDATE, URL, f"{URL}/changes", body), Change)
        check_path(change.attribute)
    except BadMessageError:
        return "refused"
    done = told(copy, ("change", change))
    if copy.state == "stale":
        return "read"
    if any(name == "show" for name, *_ in without_steps(done)):
        return value_digest(copy.data)
    return "ignored" if copy.state == "live" else copy.state


def _named(vector: dict[str, str]) -> str:
    try:
        return f"{domain_name(made(vector['domain']))}/{runtime_name(made(vector['name']))}"
    except BadUrlError:
        return "refused"


def _read(text: str) -> Any:
    read = decode_line(text.encode())
    if not isinstance(read, BadLine):
        return "a message"
    answer = read.answer or read.replacement
    ends = answer and [answer.id, answer.from_, answer.to, answer.code]
    return {"code": int(read.error.code), "answer": ends}


def main() -> None:
    """Write what a program makes of each vector."""
    vectors = json.loads(FILE.read_text())
    found = trio.run(outcomes, vectors)
    for name, results in found.items():
        for vector, result in zip(vectors[name], results, strict=True):
            vector["makes"] = result
    entries = [f' "{name}": {_entry(part)}' for name, part in vectors.items()]
    FILE.write_text("{\n" + ",\n".join(entries) + "\n}\n")


def _entry(part: Any) -> str:
    if not isinstance(part, list):
        return json.dumps(part)
    return "[\n" + ",\n".join(f"  {json.dumps(one)}" for one in part) + "\n ]"


if __name__ == "__main__":
    main()
