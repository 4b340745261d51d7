"""`python -m fsm`: its commands write data to stdout, all else to stderr."""

from pathlib import Path
from typing import Final

import click

from fsm.commands import judge
from fsm.commands.check import check_machines
from fsm.commands.parameters import HELP_OPTIONS, argument, define_command, option
from fsm.drawing.document import as_json, as_text, page, summary_json, summary_text
from fsm.drawing.draw import Format, draw, javascript
from fsm.machine_list import MACHINES
from fsm.table import LayoutError, Table

_OUTPUT: Final = option(
    text="File to write instead of standard output.", metavar="FILE", short="-o"
)

_SUFFIXES: Final = {"gv": Format.DOT, "mjs": Format.JS, "puml": Format.PLANTUML}
"""Suffixes of files with drawings that are not the name of their format."""


@click.group("fsm", context_settings=HELP_OPTIONS)
def cli() -> None:
    """Look at the declared state machines, and judge runs by them."""


@define_command("list", cli)
def list_machines(*, wants_json: bool = judge.JSON) -> None:
    """List the machines."""
    tables = list(MACHINES.values())
    if wants_json:
        judge.print_json(*(summary_json(table) for table in tables))
    else:
        judge.echo(summary_text(tables))


@define_command("show", cli)
def show(
    *, machine: Table = argument(read=judge.machine_named), wants_json: bool = judge.JSON
) -> None:
    """Show the table of MACHINE."""
    if wants_json:
        judge.print_json(as_json(machine))
    else:
        judge.echo(as_text(machine))


@define_command("draw", cli)
def draw_machine(
    *,
    machines: tuple[str, ...] = argument("[MACHINE]...", nargs=-1),
    language: Format | None = option(flag="--format"),
    output: Path | None = _OUTPUT,
) -> None:
    """Draw a MACHINE; with --format js several, or all if none is named.

    Args:
        language: Language of the drawing [default: by the suffix of FILE, else mermaid].
    """
    if language is None:
        language = _format_of(output)
    tables = judge.machines_named(machines)
    if language is not Format.JS and len(machines) != 1:
        raise judge.UsageError(
            f"one machine is drawn as {language}; name one of {', '.join(MACHINES)}"
        )
    try:
        drawing = javascript(tables) if len(tables) > 1 else draw(tables[0], language)
    except LayoutError as exc:
        raise click.ClickException(str(exc)) from exc
    _write(drawing, output)


@define_command("document", cli)
def document(*, output: Path | None = _OUTPUT) -> None:
    """Write the page of all machines, as Markdown."""
    _write(page(list(MACHINES.values())), output)


def _format_of(output: Path | None) -> Format:
    suffix = "" if output is None else output.suffix.removeprefix(".").lower()
    return Format(suffix) if suffix in list(Format) else _SUFFIXES.get(suffix, Format.MERMAID)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        judge.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as exc:
        why = f"cannot write {output}: {exc.strerror}; name another file with --output"
        raise click.ClickException(why) from exc


cli.add_command(check_machines)
cli.add_command(judge.judge_traces)

if __name__ == "__main__":
    judge.enter(cli, "python -m fsm")
