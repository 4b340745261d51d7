"""`python -m actors demo`: everything at work, in three processes or on a page."""

import signal
import tempfile
from collections.abc import AsyncIterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click
import trio
from click.core import ParameterSource

from actors.cli.command_error import CommandError, ExitCode
from actors.cli.config_file import config_option
from actors.cli.echo import echo
from actors.cli.failure import run
from actors.cli.lifetime import serve
from actors.cli.options import Count, check_place, monitor_option
from actors.cli.output import say, say_ready
from actors.demo.stage import Play, choose_show, perform, show_json
from actors.demo.web import DOMAIN, open_web_demo
from transports.link import DIRECT, Kind

__all__ = ["command"]

_KINDS: Final = f"{Kind.UNIX},{Kind.WEBSOCKET}"


@click.command("demo")
@click.option(
    "--p2p",
    type=click.Choice([str(kind) for kind in DIRECT]),
    help=f"What the link between the runtimes uses [default: the better of {_KINDS}].",
)
@click.option(
    "--trace",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for traces and report [default: a new temporary directory].",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, the figures last.")
@click.option(
    "--requests",
    type=Count(10, 1_000_000),
    default=1000,
    show_default=True,
    help="Requests to measure by the node, and by the link.",
)
@click.option("--web", is_flag=True, help="Serve a page instead, until Ctrl-C.")
@click.option(
    "--http",
    metavar="HOST:PORT",
    default="127.0.0.1:0",
    show_default=True,
    callback=check_place,
    help="Address of the page; port 0 picks a free one.",
)
@monitor_option
@config_option
def command(
    *,
    p2p: str | None,
    trace: Path | None,
    as_json: bool,
    requests: int,
    web: bool,
    http: str,
    monitor: bool,
) -> int:
    """Show a message node and two runtimes as three processes.

    They register, talk by the node, set up a link and talk by it; the link is cut
    and comes back; then the traces of all three are judged, steps and messages. Exits
    with 0 only if every step happened and both are conformant.

    With --web it prints the address of a page. Two windows of a browser and a runtime in
    Python chat there, share a to-do list, and show how their links go live, are cut and mend.
    """
    _check_applicable(click.get_current_context(), web=web)
    if web:
        announce = _say_page if as_json else _show_page
        return run(partial(serve, partial(open_web_demo, http, trace), announce))
    _check_judge()
    traces = _directory(trace)
    play = Play(kinds=p2p or _KINDS, requests=requests, traces=traces, monitor=monitor)
    show = show_json if as_json else choose_show()

    async def work() -> ExitCode:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_interrupt, signals)
                code, result = await perform(play, show)
                nursery.cancel_scope.cancel()
        if as_json:
            say("demo-result", ok=code is ExitCode.OK, **result)
        return code

    return run(work)


def _check_applicable(context: click.Context, *, web: bool) -> None:
    """Refuse options of the other demonstration: they would have no effect."""
    for name in ("p2p", "requests", "monitor") if web else ("http",):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            why = "does not apply to" if web else "applies only to"
            raise click.UsageError(f"--{name} {why} the page of --web")


def _say_page(url: str) -> None:
    say_ready("demo", DOMAIN, url=url)


def _show_page(url: str) -> None:
    echo("Open this page in two windows of a browser; Ctrl-C ends it:", "", f"  {url}", "")


def _check_judge() -> None:
    if find_spec("pyspark") is None:
        raise CommandError(
            "the demonstration ends with a judgement by Spark, which is not installed; "
            "install protofly with its extra 'spark'"
        )


def _directory(trace: Path | None) -> Path:
    if trace is None:
        return Path(tempfile.mkdtemp(prefix="protofly-demo-"))
    trace.mkdir(0o700, parents=True, exist_ok=True)
    return trace


async def _interrupt(signals: AsyncIterator[int]) -> None:
    async for _ in signals:
        raise CommandError("interrupted", ExitCode.INTERRUPTED)
