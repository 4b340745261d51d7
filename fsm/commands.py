"""The commands of `python -m fsm`: data on stdout, all else on stderr."""

import json
from pathlib import Path
from typing import Final, final

import click

from fsm.catalogue import MACHINES
from fsm.check import Finding
from fsm.check import check as find
from fsm.describe import as_json, as_text, summary_json, summary_text
from fsm.draw import Format, draw
from fsm.errors import LayoutError
from fsm.table import Table
from specs.jsonvalue import JsonObject

__all__ = ["cli"]

_USAGE: Final = 2
"""Exit status of a wrong command line."""


@final
class _UsageError(click.ClickException):
    """One sentence, and no usage text around it."""

    exit_code = _USAGE


def _machine(_ctx: click.Context, _param: click.Parameter, name: str) -> Table:
    if name not in MACHINES:
        raise _UsageError(f"no machine is named {name!r}: it is one of {', '.join(MACHINES)}")
    return MACHINES[name]


def _machines(
    ctx: click.Context, param: click.Parameter, names: tuple[str, ...]
) -> tuple[Table, ...]:
    return tuple(_machine(ctx, param, name) for name in names) or tuple(MACHINES.values())


_json_option = click.option("--json", "wants_json", is_flag=True, help="One JSON object per line.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Look at the declared state machines."""


@cli.command(name="list")
@_json_option
def list_machines(*, wants_json: bool) -> None:
    """List the machines."""
    tables = list(MACHINES.values())
    if wants_json:
        _print_json(*(summary_json(table) for table in tables))
    else:
        click.echo(summary_text(tables))


@cli.command()
@click.argument("machine", callback=_machine)
@_json_option
def show(machine: Table, *, wants_json: bool) -> None:
    """Show the table of MACHINE."""
    if wants_json:
        _print_json(as_json(machine))
    else:
        click.echo(as_text(machine))


@cli.command(name="draw")
@click.argument("machine", callback=_machine)
@click.option(
    "--format",
    "language",
    type=click.Choice([language.value for language in Format]),
    default=Format.MERMAID.value,
    show_default=True,
    help="Language of the drawing.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write instead of standard output.",
)
def draw_machine(machine: Table, language: str, output: Path | None) -> None:
    """Draw MACHINE."""
    try:
        drawing = draw(machine, Format(language))
    except LayoutError as exc:
        raise click.ClickException(str(exc)) from exc
    if output is None:
        click.echo(drawing, nl=False)
        return
    try:
        output.write_text(drawing, encoding="utf-8")
    except OSError as exc:
        raise click.ClickException(f"cannot write {output}: {exc.strerror}") from exc


@cli.command(name="check", short_help="Check MACHINES, or all, for dead ends and the like.")
@click.argument("machines", nargs=-1, callback=_machines)
@_json_option
@click.pass_context
def check_machines(ctx: click.Context, machines: tuple[Table, ...], *, wants_json: bool) -> None:
    """Check MACHINES, or all, for states nobody reaches or leaves, and the like."""
    found = [finding for table in machines for finding in find(table)]
    if wants_json:
        _print_json(*(_finding_json(finding) for finding in found))
        _print_json(
            {"schema": "protofly.check/1", "machines": len(machines), "findings": len(found)}
        )
    else:
        for finding in found:
            click.echo(f"{finding.machine}: {finding.rule}: {finding.subject}: {finding.detail}")
        click.echo(f"{len(machines)} machines checked, {len(found)} findings")
    ctx.exit(1 if found else 0)


def _finding_json(finding: Finding) -> JsonObject:
    return {
        "schema": "protofly.finding/1",
        "machine": finding.machine,
        "rule": finding.rule.value,
        "subject": finding.subject,
        "detail": finding.detail,
    }


def _print_json(*values: JsonObject) -> None:
    for value in values:
        click.echo(json.dumps(value, ensure_ascii=False))
