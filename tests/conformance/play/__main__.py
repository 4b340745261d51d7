"""`python -m tests.conformance.play FILE`: scenario files against the real actors."""

from collections.abc import Callable, Sequence
from pathlib import Path

import click
import trio.testing

from actors.cli.config_file import enter
from actors.cli.failure import run, say
from actors.cli.group import CommandError, ExitCode, echo
from actors.cli.options import argument, define_command, option
from tests.conformance.play.player import Outcome, play
from tests.conformance.play.script.reader import ScriptError, read_script
from tests.conformance.play.script.steps import Scenario


@define_command("play", has_log=True)
def command(
    *,
    files: tuple[Path, ...] = argument("FILE...", nargs=-1, required=True),
    wanted: tuple[str, ...] = option(
        "Play only this scenario; repeatable.", "NAME", flag="--scenario"
    ),
    is_only_checked: bool = option(
        "Only read the files, and report unknown words.", flag="--check"
    ),
    as_json: bool = option("Print one JSON object per scenario.", flag="--json"),
) -> int:
    """Play the scenarios in FILE against message nodes and runtimes in this process.

    FILE contains JSON Lines as docs/scenarios.md describes them: what is given, done and
    broken, and the steps that must be seen. Nodes and runtimes run on links in memory under
    a virtual clock. Prints for each scenario that it passed, or the first step that
    differs, with what was expected and what was seen.

    Exits with 0 if all passed, with 1 if one differs, with 3 if a file cannot be read or
    contains an unknown word.
    """
    scenarios = _chosen(_read(files), wanted)
    if is_only_checked:
        for scenario in scenarios:
            echo(f"{scenario.name} can be played, {len(scenario.steps)} steps")
        return ExitCode.OK
    show = _print_json if as_json else _print_text
    outcomes = [_play(scenario, show) for scenario in scenarios]
    return ExitCode.OK if all(one.is_pass for one in outcomes) else ExitCode.FAILED


def _read(files: Sequence[Path]) -> list[Scenario]:
    try:
        return [scenario for file in files for scenario in read_script(file)]
    except ScriptError as error:
        raise CommandError(str(error)) from error


def _chosen(scenarios: Sequence[Scenario], wanted: Sequence[str]) -> list[Scenario]:
    names = [one.name for one in scenarios]
    for name in wanted:
        if name not in names:
            known = ", ".join(names)
            raise click.BadParameter(f"there is no {name!r}, only {known}", param_hint="--scenario")
    return [one for one in scenarios if not wanted or one.name in wanted]


def _play(scenario: Scenario, show: Callable[[Outcome], None]) -> Outcome:
    outcomes: list[Outcome] = []

    async def work() -> ExitCode:
        outcomes.append(await play(scenario))
        return ExitCode.OK

    run(work, clock=trio.testing.MockClock(autojump_threshold=0))
    show(outcomes[0])
    return outcomes[0]


def _print_text(outcome: Outcome) -> None:
    difference = outcome.difference
    if difference is None:
        echo(f"{outcome.scenario} passed, {outcome.steps} steps")
        return
    where = f" at step {difference.number}" if difference.number else ""
    echo(f"{outcome.scenario} differs{where}")
    echo(f"  expected: {difference.expected}")
    for one in difference.seen or ("nothing like it",):
        echo(f"  seen:     {one}")


def _print_json(outcome: Outcome) -> None:
    difference = outcome.difference
    fields = (
        {}
        if difference is None
        else {
            "step": difference.number,
            "expected": difference.expected,
            "seen": difference.seen,
        }
    )
    result = "passed" if outcome.is_pass else "differs"
    say("scenario", scenario=outcome.scenario, steps=outcome.steps, result=result, **fields)


if __name__ == "__main__":
    enter(command)
