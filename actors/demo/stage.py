"""The demonstration from start to end."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, final

import attrs

from actors.cli.command_error import CommandError, ExitCode
from actors.demo.children import Cast, open_cast
from actors.demo.director import Director
from actors.demo.line import What
from actors.demo.show import Show
from actors.demo.verdict import CONFORMANT, judge
from specs.jsonvalue import JsonObject

__all__ = ["Play", "perform"]

DOMAIN: Final = "a.example"

_PYTHON: Final = (sys.executable, "-m")

_ENVELOPE: Final = frozenset({"schema", "who", "what", "text", "beat"})
"""Fields of a line that are no figures."""


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
    director = Director(show)
    before = _runs(play)
    try:
        with TemporaryDirectory(prefix="protofly-registry-") as registry:
            async with open_cast(director) as cast:
                figures = await _acts(play, cast, Path(registry) / "registry.sqlite")
        _check(director)
    finally:
        director.release()
    runs = sorted(_runs(play) - before)
    verdict = await judge(runs, play.traces / "report", director)
    code = ExitCode.OK if verdict.get("verdict") == CONFORMANT else ExitCode.FAILED
    return code, {"figures": figures, "verdict": verdict, "traces": str(play.traces)}


def _runs(play: Play) -> set[Path]:
    """Return the runs that are traced so far, of this demonstration and of others."""
    return set(play.traces.glob("run=*"))


async def _acts(play: Play, cast: Cast, registry: Path) -> JsonObject:
    trace = ("--trace", str(play.traces))
    domain = ("--domain", DOMAIN)
    kept = ("--registry", str(registry))
    await cast.start("node", (*_PYTHON, "actors.demo.message_node", *domain, *kept, *trace))
    url = str((await cast.expect("node", What.READY)).fields["url"])

    common = (*domain, "--node", url, "--p2p", play.kinds, *trace)
    await cast.start("bob", (*_PYTHON, "actors.demo.bob", *common))
    bob = str((await cast.expect("bob", What.READY)).fields["url"])

    count = ("--requests", str(play.requests))
    await cast.start("alice", (*_PYTHON, "actors.demo.alice", *common, "--to", bob, *count))
    figures = await cast.expect("alice", What.FIGURES)
    await cast.expect("alice", What.DONE)
    await cast.ended("alice")
    await cast.stop("bob")
    await cast.stop("node")
    return {k: v for k, v in figures.fields.items() if k not in _ENVELOPE}


def _check(director: Director) -> None:
    """Everything before the verdict must have been seen.

    Raises:
        CommandError: Something was not.
    """
    missing = director.missing()
    if missing is not None:
        who, beat = missing
        raise CommandError(
            f"the demonstration failed: {who} never showed {beat!r}, or not when it should; "
            "run it again with --trace DIR and look there",
            ExitCode.FAILED,
        )
