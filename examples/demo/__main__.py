"""Everything at work, in three processes or on a page.

python -m examples.demo
"""

import json
import shutil
import signal
import sys
import tempfile
import textwrap
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import click
import trio

import actors
from examples.demo.page import open_web_demo
from examples.demo.play import DemoError, Play
from examples.demo.story import Line, Story

_COLOURS = {"node": "yellow", "alice": "cyan", "bob": "magenta", "demo": "green"}
_INDENT = 10
_NARROWEST = 20
_REQUESTS = 1000
_KINDS = ("unix", "websocket", "tcp")


def show(line: Line, act: int) -> None:
    """Print a line for a person: coloured, and wrapped, on a terminal."""
    text = "".join(char if char.isprintable() else "?" for char in line.text)
    if line.style == "act":
        if sys.stdout.isatty():
            click.echo()
        click.secho(f"{act}  {text}", bold=True, underline=True)
        return
    width = max(shutil.get_terminal_size().columns - _INDENT, _NARROWEST)
    lines = textwrap.wrap(text, width, break_on_hyphens=False) if sys.stdout.isatty() else [text]
    who = click.style(f"{line.who:<6}", fg=_COLOURS[line.who])
    colour = "green" if line.style == "verdict" else None
    # None, not False: that would end what is set beside it.
    is_bold, is_dim = line.style in {"note", "verdict"} or None, line.style == "detail" or None
    for number, part in enumerate(lines):
        styled = click.style(part, fg=colour, bold=is_bold, dim=is_dim)
        click.echo(f"   {' ' * 6 if number else who} {styled}")


def show_json(line: Line, act: int) -> None:
    """Print a line as an object."""
    fields = {"who": line.who, "what": line.style, "event": line.event, "text": line.text}
    click.echo(json.dumps({"schema": "protofly.demo/1", "act": act, **fields}))


@click.command()
@click.option("--p2p", type=click.Choice(_KINDS), help="What the link between the runtimes uses.")
@click.option(
    "--trace",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for traces and report [default: a new temporary directory].",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, the figures last.")
@click.option(
    "--requests",
    type=click.IntRange(10, 1_000_000),
    help="Requests to measure by the node, and by the link [default: 1000].",
)
@click.option("--web", is_flag=True, help="Serve a page instead, until Ctrl-C.")
@click.option("--http", metavar="HOST:PORT", help="Address of the page [default: a free port].")
def main(
    *,
    p2p: str | None,
    trace: Path | None,
    as_json: bool,
    requests: int | None,
    web: bool,
    http: str | None,
) -> None:
    """Show a message node and two runtimes as three processes.

    They register, talk by the node, set up a link and talk by it; the link is cut
    and comes back; then the traces of all three are judged, steps and messages. Exits
    with 0 only if every step happened and both are conformant.

    With --web it prints the address of a page. Two windows of a browser and a runtime in
    Python chat there, share a to-do list, and show how their links go live, are cut and mend.
    """
    others = {"--http": http} if not web else {"--p2p": p2p, "--requests": requests}
    for name, value in others.items():
        if value:
            why = "does not apply to" if web else "applies only to"
            raise click.UsageError(f"{name} {why} the page of --web")
    if web:
        sys.exit(run(partial(_serve, http or "127.0.0.1:0", trace), stopped=0))
    if find_spec("pyspark") is None:
        raise click.ClickException(
            "the demonstration ends with a judgement by Spark, which is not installed; "
            "install protofly with its extra 'spark'"
        )
    folder = trace or Path(tempfile.mkdtemp(prefix="protofly-demo-"))
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(f"{folder}: {error.strerror}", param_hint="--trace") from error
    kinds = tuple(actors.Kind(kind) for kind in ((p2p,) if p2p else _KINDS[:2]))
    story = Story(show_json if as_json else show)
    play = Play(kinds, requests or _REQUESTS, folder, story)
    sys.exit(run(partial(_perform, play, is_json=as_json)))


def run(work: Callable[[], Awaitable[int]], stopped: int = 128 + signal.SIGINT) -> int:
    """Run some work; return its exit status, or that of a run that is stopped by a signal."""
    status = stopped

    async def until_signal() -> None:
        nonlocal status
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:

                async def heed() -> None:
                    async for _ in signals:
                        nursery.cancel_scope.cancel()

                nursery.start_soon(heed)
                status = await work()
                nursery.cancel_scope.cancel()

    try:
        trio.run(until_signal)
    except* (DemoError, actors.ProtoflyError) as errors:
        click.echo(f"Error: the demonstration failed: {_first(errors)}", err=True)
        status = 1
    return status


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _perform(play: Play, *, is_json: bool) -> int:
    result = await play.perform()
    is_good = result["verdict"]["verdict"] == "conformant"
    if is_json:
        click.echo(json.dumps({"schema": "protofly.demo-result/1", "ok": is_good, **result}))
    return 0 if is_good else 1


async def _serve(place: str, trace: Path | None) -> NoReturn:
    async with open_web_demo(place, trace) as url:
        click.echo("Open this page in two windows of a browser; Ctrl-C ends it:\n")
        click.echo(f"  {url}\n")
        await trio.sleep_forever()


if __name__ == "__main__":
    main()
