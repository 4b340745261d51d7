"""Command `python -m fsm check`: reports faults of the declared state machines."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from fsm import static_check
from fsm.commands.judge import JSON, UsageError, count_noun, echo, machines_named, print_json
from fsm.commands.parameters import argument, define_command, option
from fsm.commands.product import WANTED, Wanted, check_product
from fsm.machine_list import MACHINES
from fsm.table import CensusError, Table
from specs.jsonvalue import JsonObject

_CONFIGURATION: Final = 3
"""Exit status if a file cannot be used."""

_OF_COMPOSITIONS: Final = ("--losses", "--duplicates", "--channel", "--max-states", "--output")
"""Options that apply to compositions only."""


class _FileError(click.ClickException):
    """Error: a file cannot be used; the text is one sentence."""

    exit_code = _CONFIGURATION


@define_command("check", short_help="Check MACHINES, or all, for dead ends and the like.")
def check_machines(
    *,
    names: tuple[str, ...] = argument("[MACHINES]...", nargs=-1),
    census: Path | None = option(flag="--steps"),
    wants_json: bool = JSON,
    product: bool = option(),
    wanted: Wanted = WANTED,
) -> None:
    """Check MACHINES, or all, for unreachable states, dead ends and the like.

    With --product, the names are of compositions of the cores that run these machines: every
    state that one can reach is looked at, while messages are lost and repeated.

    Args:
        census: Census of the steps that a run of the tests took: each row must be in it.
        product: Explore compositions of real cores instead.
    """
    ctx = click.get_current_context()
    if product:
        _refuse(ctx, "--steps", "without --product: only machines are held against steps")
        ctx.exit(1 if check_product(names, wanted) else 0)
    for flag in _OF_COMPOSITIONS:
        _refuse(ctx, flag, "with --product: machines by themselves send no messages")
    machines = machines_named(names)
    findings = [finding for table in machines for finding in static_check.check(table)]
    findings += _check_firing(machines)
    if census is not None:
        findings += _check_steps(machines, _read(census))
    if wants_json:
        print_json(*(_finding_json(finding) for finding in findings))
        print_json(
            {"schema": "protofly.check/1", "machines": len(machines), "findings": len(findings)}
        )
    else:
        for finding in findings:
            echo(f"{finding.machine}: {finding.rule}: {finding.subject}: {finding.detail}")
        checked = count_noun(len(machines), "machine")
        echo(f"{checked} checked, {count_noun(len(findings), 'finding')}")
    ctx.exit(1 if findings else 0)


def _refuse(ctx: click.Context, flag: str, why: str) -> None:
    """Raise an error if an option was given that would have no effect."""
    for param in ctx.command.params:
        source = ctx.get_parameter_source(param.name or "")
        if flag in param.opts and source is ParameterSource.COMMANDLINE:
            raise UsageError(f"{flag} goes {why}")


def _check_firing(machines: Sequence[Table]) -> Iterator[static_check.Finding]:
    missing = [package for package in static_check.MACHINE_USERS if not _sources(package)]
    if missing:
        echo(
            f"the sources of {' and '.join(missing)} are not installed here: "
            "whether every trigger is fired was not checked",
            err=True,
        )
        return
    paths = (path for package in static_check.MACHINE_USERS for path in _sources(package))
    names = frozenset[str]().union(
        *(static_check.mentions(path.read_text("utf-8")) for path in paths)
    )
    for table in machines:
        yield from static_check.check_fired(table, names)


def _sources(package: str) -> list[Path]:
    # Located, not imported: actors are above this package.
    spec = find_spec(package)
    folders = (spec and spec.submodule_search_locations) or ()
    return [path for folder in folders for path in sorted(Path(folder).rglob("*.py"))]


def _read(census: Path) -> frozenset[static_check.TakenStep]:
    try:
        return static_check.read_census(census.read_text("utf-8").splitlines())
    except OSError as exc:
        raise _FileError(f"cannot read {census}: {exc.strerror}; `make test` writes it") from exc
    except (CensusError, UnicodeDecodeError) as exc:
        raise _FileError(f"{census} is no census of steps: {exc}; `make test` writes it") from exc


def _check_steps(
    machines: Sequence[Table], steps: frozenset[static_check.TakenStep]
) -> Iterator[static_check.Finding]:
    for table in machines:
        yield from static_check.check_taken(table, sorted(steps))
    yield from static_check.check_unknown(MACHINES, sorted(steps))


def _finding_json(finding: static_check.Finding) -> JsonObject:
    return {
        "schema": "protofly.finding/1",
        "machine": finding.machine,
        "rule": finding.rule.value,
        "subject": finding.subject,
        "detail": finding.detail,
    }
