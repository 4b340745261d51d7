"""Plant defects in a copy of the code, and run the tests that find them.

`python -m tests.defects bus --name NAME` tries one defect of `bus.toml`; without a name all,
without a concern those of all concerns. An entry without a test, or `--wide`, has all tests of the
concern run, and the table names the first that finds it: so a new entry gets its test. A survivor
needs a test, or its code is not needed. The exit status is 1 if a defect survived.
"""

import sys

import click

from tests.defects import planting


@click.command(help=__doc__)
@click.argument("concern", required=False)
@click.option("--name", "names", multiple=True, help="Try this defect only; may be repeated.")
@click.option("--wide", is_flag=True, help="Run all tests of the concern.")
@click.option("--workers", default=0, help="Processes that run tests; 0: none beside pytest's own.")
def main(concern: str | None, names: tuple[str, ...], workers: int, *, wide: bool) -> None:
    concerns = planting.read_concerns()
    survived = 0
    with planting.source_copy() as copy:
        for one in [concern] if concern else concerns:
            for defect in concerns[one].defects:
                if names and defect.name not in names:
                    continue
                tests = defect.found_by
                if wide or not tests:
                    tests = concerns[one].tests
                with planting.changed(copy / defect.file, defect.planted()):
                    outcome = planting.run_tests(copy, "--timeout=60", f"-n{workers}", *tests)
                survived += outcome.verdict in {"SURVIVED", "NO TESTS RAN"}
                click.echo(f"{one:10} {defect.name:44} {outcome.verdict:12} {outcome.test}")
    sys.exit(bool(survived))


if __name__ == "__main__":
    main()
