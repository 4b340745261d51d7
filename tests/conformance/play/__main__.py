"""Play the scenarios in FILE against message nodes and runtimes in this process.

FILE contains JSON Lines as docs/scenarios.md describes them. Nodes and runtimes run on links in
memory under a virtual clock. Prints for each scenario that it passed, or the first step that
differs, with what was expected and what was seen. Exits with 0 if all passed, with 1 if one
differs, with 2 if a file cannot be read or contains an unknown word, or if no
scenario has the name of an option `--scenario`.
`python -m tests.conformance.record` makes such a file from the trace of a run.
"""

import sys
from difflib import get_close_matches
from pathlib import Path

import click
import trio
import trio.testing

from tests.conformance.play.player import play
from tests.conformance.play.route import Observer
from tests.conformance.play.script import Scenario, ScriptError, read_script
from tests.conformance.play.traces import write_traces


@click.command(help=__doc__)
@click.argument("files", nargs=-1, required=True, type=Path)
@click.option("--scenario", "names", multiple=True, help="Play only this scenario; repeatable.")
@click.option("--trace", type=click.Path(path_type=Path), help="Write traces to this directory.")
def main(files: tuple[Path, ...], names: tuple[str, ...], trace: Path | None) -> None:
    try:
        scenarios = [scenario for file in files for scenario in read_script(file)]
    except ScriptError as error:
        raise click.UsageError(str(error)) from error
    known = [scenario.name for scenario in scenarios]
    for name in names:
        if name not in known:
            (near,) = get_close_matches(name, known, n=1, cutoff=0.0)
            raise click.BadParameter(
                f"no scenario is named {name!r}; the nearest is {near!r}", param_hint="--scenario"
            )
    passed = [passes(one, trace) for one in scenarios if not names or one.name in names]
    sys.exit(not all(passed))


def passes(scenario: Scenario, trace: Path | None = None) -> bool:
    """Play a scenario; print how it went and return whether it passed.

    Args:
        trace: Directory for the traces of its processes.
    """
    clock, observer = trio.testing.MockClock(autojump_threshold=0), Observer()
    difference = trio.run(play, scenario, observer, clock=clock)
    if trace is not None:
        write_traces(observer, trace, scenario.name)
    if difference is None:
        click.echo(f"{scenario.name} passed, {len(scenario.steps)} steps")
        return True
    click.echo(f"{scenario.name} differs at step {difference.number}")
    click.echo(f"  expected: {difference.expected}")
    for one in difference.seen or ("nothing like it",):
        click.echo(f"  seen:     {one}")
    return False


if __name__ == "__main__":
    main()
