"""The demonstration from start to end."""

import sys
from pathlib import Path
from typing import Final, final

import attrs

from actors.commands.exit_code import ExitCode
from actors.demo.children import Cast, open_cast
from actors.demo.line import Line, What
from actors.demo.show import Show
from actors.demo.verdict import CONFORMANT, judge
from specs.jsonvalue import JsonObject

__all__ = ["Play", "perform"]

DOMAIN: Final = "a.example"

_PYTHON: Final = (sys.executable, "-m")


@final
@attrs.frozen(kw_only=True)
class Play:
    """What is to be shown.

    Attributes:
        kinds: Transports the link may use, best first, as on the command line.
        requests: How many are measured on each way.
        traces: Where the traces and the report go.
    """

    kinds: str
    requests: int
    traces: Path


async def perform(play: Play, show: Show) -> tuple[ExitCode, JsonObject]:
    """Act all parts; return how it ended, and every figure.

    Raises:
        CommandError: A child ended before its time, or did not do what it should.
    """
    async with open_cast(show) as cast:
        figures = await _acts(play, cast)
    verdict = await judge(play.traces, play.traces / "report", show)
    code = ExitCode.OK if verdict.get("verdict") == CONFORMANT else ExitCode.FAILED
    return code, {"figures": figures, "verdict": verdict, "traces": str(play.traces)}


async def _acts(play: Play, cast: Cast) -> JsonObject:
    trace = ("--trace", str(play.traces))
    registry = ("--registry", str(play.traces / "registry.sqlite"))
    node = (*_PYTHON, "actors", "node", "--domain", DOMAIN, *registry, *trace)
    await cast.start("node", node)
    url = str((await cast.expect("node", What.READY)).fields["url"])

    common = ("--domain", DOMAIN, "--node", url, "--p2p", play.kinds, *trace)
    await cast.start("bob", (*_PYTHON, "actors.demo.bob", *common))
    bob = str((await cast.expect("bob", What.READY)).fields["url"])

    count = ("--requests", str(play.requests))
    await cast.start("alice", (*_PYTHON, "actors.demo.alice", *common, "--to", bob, *count))
    figures = await cast.expect("alice", What.FIGURES)
    await cast.expect("alice", What.DONE)
    await cast.ended("alice")
    await cast.stop("bob")
    await cast.stop("node")
    cast.show(Line("demo", What.NOTE, "all three processes ended in good order", {}))
    return {k: v for k, v in figures.fields.items() if k not in {"schema", "who", "what", "text"}}
