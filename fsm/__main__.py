"""`python -m fsm`: its commands write data to stdout, all else to stderr."""

from pathlib import Path

import click

from fsm.commands import judge
from fsm.commands.check import check_machines
from fsm.drawing.document import as_json, as_text, page, summary_json, summary_text
from fsm.drawing.draw import Format, draw, javascript
from fsm.machine_list import MACHINES
from fsm.table import LayoutError, Table

_output_option = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write instead of standard output.",
)


@click.group("fsm", context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Look at the declared state machines, and judge runs by them."""


@cli.command(name="list")
@judge.json_option
def list_machines(*, wants_json: bool) -> None:
    """List the machines."""
    tables = list(MACHINES.values())
    if wants_json:
        judge.print_json(*(summary_json(table) for table in tables))
    else:
        judge.echo(summary_text(tables))


@cli.command()
@click.argument("machine", callback=judge.machine_named)
@judge.json_option
def show(machine: Table, *, wants_json: bool) -> None:
    """Show the table of MACHINE."""
    if wants_json:
        judge.print_json(as_json(machine))
    else:
        judge.echo(as_text(machine))


@cli.command(name="draw")
@click.argument("machines", metavar="[MACHINE]...", nargs=-1)
@click.option(
    "--format",
    "language",
    type=click.Choice([language.value for language in Format]),
    default=Format.MERMAID.value,
    show_default=True,
    help="Language of the drawing.",
)
@_output_option
def draw_machine(machines: tuple[str, ...], language: str, output: Path | None) -> None:
    """Draw a MACHINE; with --format js several, or all if none is named."""
    tables = judge.machines_named(machines)
    if language != Format.JS.value and len(machines) != 1:
        raise judge.UsageError(
            f"one machine is drawn as {language}; name one of {', '.join(MACHINES)}"
        )
    try:
        drawing = javascript(tables) if len(tables) > 1 else draw(tables[0], Format(language))
    except LayoutError as exc:
        raise click.ClickException(str(exc)) from exc
    _write(drawing, output)


@cli.command()
@_output_option
def document(output: Path | None) -> None:
    """Write the page of all machines, as Markdown."""
    _write(page(list(MACHINES.values())), output)


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
