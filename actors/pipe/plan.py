"""The plan and code of a sandbox as both ends of its pipe know them, its login and its spawner."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeAlias, assert_never, final

import attrs
import orjson
import trio

from actors.pipe.errors import PipeError
from specs.jsonvalue import Json, JsonObject
from specs.limits.transfer import SANDBOX_TRANSFER_BYTES
from transports.link import Link

Spawn: TypeAlias = Callable[[str], AbstractAsyncContextManager[Link]]
"""Opens a sandbox and yields the host's end of its pipe; the argument is what logs call it.

When the context is left, nothing of the sandbox runs any more, for any of its actions.

Raises:
    SandboxError: There is none to be had; raised on entering.
"""

TokenSource: TypeAlias = Callable[[], Awaitable[str | None]]
"""Returns a token that opens one session; None: there is nothing to show."""


async def nothing() -> str | None:
    """Show nothing: for nodes that require no login."""
    await trio.lowlevel.checkpoint()
    return None


@final
@attrs.frozen
class NodeStubContents:
    """Our own stub to a message node is in it."""


@final
@attrs.frozen
class PackageContents:
    """A stub that came as a package is in it; its archive follows the plan, in parts.

    Attributes:
        entry_point: What makes the stub, as `module:function`.
    """

    entry_point: str
    options: JsonObject = attrs.field(factory=dict)


@final
@attrs.frozen
class HypertyContents:
    """A hyperty of the application is in it.

    Attributes:
        where: Its class, as `module:Class`.
    """

    where: str


@final
@attrs.frozen
class HypertyPackageContents:
    """A hyperty that came as a package is in it; its archive follows the plan, in parts.

    Attributes:
        entry_point: Its class, as `module:Class`.
        configuration: What it is to know.
    """

    entry_point: str
    configuration: JsonObject = attrs.field(factory=dict)


Contents: TypeAlias = NodeStubContents | PackageContents | HypertyContents | HypertyPackageContents

PACKAGED: Final = (PackageContents, HypertyPackageContents)
"""Contents whose archive follows the plan."""


@final
@attrs.frozen
class SandboxPlan:
    """One component in a sandbox.

    Attributes:
        runtime: Whose session a stub opens: a runtime, or a node.
        domain: The domain a stub's link leads to; that of a hyperty.
        endpoints: The only places it may dial, as `transports.urls` writes them.
        session: Token of a session that an earlier stub had, to come back to.
        hops: Whether the host wants records of messages.
        largest_body: Bytes that a body of a hyperty may have, in chunks.
    """

    url: str
    runtime: str
    domain: str
    contents: Contents = NodeStubContents()
    endpoints: tuple[str, ...] = ()
    session: str | None = attrs.field(default=None, repr=False)
    ids: int = 0
    hops: bool = False
    largest_body: int = SANDBOX_TRANSFER_BYTES


def write_plan(plan: SandboxPlan) -> JsonObject:
    """Write a plan as fields of a message of the pipe."""
    return {
        "url": plan.url,
        "runtime": plan.runtime,
        "domain": plan.domain,
        "contents": _write_contents(plan.contents),
        "endpoints": list(plan.endpoints),
        "session": plan.session,
        "ids": plan.ids,
        "hops": plan.hops,
        "largestBody": plan.largest_body,
    }


def _write_contents(contents: Contents) -> JsonObject:
    match contents:
        case NodeStubContents():
            return {"is": "node-stub"}
        case PackageContents(entry_point, options):
            return {"is": "package", "entry": entry_point, "options": options}
        case HypertyContents(where):
            return {"is": "program", "where": where}
        case HypertyPackageContents(entry_point, configuration):
            return {"is": "hyperty", "entry": entry_point, "options": configuration}
        case _:
            assert_never(contents)


def read_plan(fields: JsonObject) -> SandboxPlan:
    """Read a plan from the fields of a message of the pipe.

    Raises:
        PipeError: It is no plan.
    """
    ids, hops, largest_body = (fields.get(name) for name in ("ids", "hops", "largestBody"))
    if not isinstance(ids, int) or not isinstance(hops, bool) or not isinstance(largest_body, int):
        raise PipeError("a plan without ids, hops or the size of the largest body")
    session = fields.get("session")
    return SandboxPlan(
        url=_text(fields, "url"),
        runtime=_text(fields, "runtime"),
        domain=_text(fields, "domain"),
        contents=_contents(fields.get("contents")),
        endpoints=_texts(fields, "endpoints"),
        session=session if isinstance(session, str) else None,
        ids=ids,
        hops=hops,
        largest_body=largest_body,
    )


def _contents(fields: Json) -> Contents:
    if not isinstance(fields, dict):
        raise PipeError("a plan without contents")
    match fields:
        case {"is": "node-stub"}:
            return NodeStubContents()
        case {"is": "package", "options": dict() as options}:
            return PackageContents(_text(fields, "entry"), options)
        case {"is": "hyperty", "options": dict() as options}:
            return HypertyPackageContents(_text(fields, "entry"), options)
        case {"is": "program"}:
            return HypertyContents(_text(fields, "where"))
        case _:
            raise PipeError("a plan with unknown contents")


def _text(fields: JsonObject, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise PipeError(f"a plan without {name}")
    return value


def _texts(fields: JsonObject, name: str) -> tuple[str, ...]:
    value = fields.get(name)
    if not isinstance(value, list):
        raise PipeError(f"a plan without {name}")
    texts = tuple(one for one in value if isinstance(one, str))
    if len(texts) != len(value):
        raise PipeError(f"a plan with {name} that are none")
    return texts


# ---- code


@final
@attrs.frozen
class SandboxCode:
    """What one sandbox process may import besides Python's standard library.

    Attributes:
        own: Modules of ours, or `module:name`, to import before confinement.
        readable: Files and folders of installed distributions.
        places: The folders in which these are installed.
        archive: A zip archive of sources; empty if there are none.
    """

    own: tuple[str, ...]
    readable: tuple[str, ...]
    places: tuple[str, ...]
    archive: bytes = attrs.field(default=b"", repr=False)


def write_code(code: SandboxCode, host: int) -> bytes:
    """Write the text that a sandbox process reads before its plan.

    Args:
        code: What it may import.
        host: The process that must outlive it.
    """
    head: JsonObject = {
        "host": host,
        "own": list(code.own),
        "readable": list(code.readable),
        "places": list(code.places),
    }
    return orjson.dumps(head) + b"\n" + code.archive


def read_code(text: bytes) -> tuple[SandboxCode, int]:
    """Read the code of a process, and what its host is.

    Raises:
        PipeError: It is none.
    """
    line, _, archive = text.partition(b"\n")
    head: Json = orjson.loads(line)
    if not isinstance(head, dict) or not isinstance(host := head.get("host"), int):
        raise PipeError("code without a host")
    own, readable, places = (_texts(head, name) for name in ("own", "readable", "places"))
    return SandboxCode(own, readable, places, archive), host
