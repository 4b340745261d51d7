"""Speed of judging machines by columns, as Spark's workers do, and by peers in one process.

The peers replay the same histories: `fsm judge` step by step, the library `transitions`, and
PM4Py's token replay. PM4Py is a program of its own here: it is started with a log and a net as
files, and answers with a file. Nothing of it is imported. `bench.machines` has Spark's own speed.
"""

import os
import re
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from xml.sax.saxutils import quoteattr

import click

from bench.growth import write_columns
from bench.machines import LAST, REPLAYED, by_columns, by_fsm, many, median_rate, write_process
from bench.verdict import Verdict as Told
from fsm.engine import by_trigger, machine_of
from fsm.machine_list import MACHINES
from fsm.table import Table
from spark.load import read_source
from spark.report.export import write_xes
from spark.session import open_session
from specs.trace import ABSENT

_MACHINE: Final = MACHINES["session"]
_MINED: Final = 100_000
"""Records at most for PM4Py, which needs much memory."""

_FITS: Final = re.compile(r"'percentage_of_fitting_traces': 100(\.0)?\b")
_HEAD: Final = (
    '<?xml version="1.0"?>\n<pnml><net id="net"'
    ' type="http://www.pnml.org/version-2009/grammar/pnmlcoremodel"><page id="page">'
)
_END: Final = "</page>{}</net></pnml>\n"


@click.command()
@click.option("--records", default=1_000_000)
@click.option("--pm4py", metavar="PYTHON", help="An interpreter that has PM4Py.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(*, records: int, pm4py: str | None, as_json: bool) -> None:
    """Measure records per second of processor time."""
    rates: dict[str, float] = {}
    with TemporaryDirectory() as directory:
        columns, lines = Path(directory, "columns"), Path(directory, "lines")
        count = write_columns(columns, "many", records)
        ours = median_rate(3, count, by_columns, columns, time.process_time)
        few = min(records, REPLAYED)
        replayed = write_process(lines, "n", many(few))
        rates["fsm judge"] = median_rate(1, replayed, by_fsm, lines, time.process_time)
        rates["transitions, steps only"] = _by_transitions(few)
        if pm4py is not None:
            rates["PM4Py, token replay"] = _by_pm4py(pm4py, Path(directory), min(records, _MINED))
    peer = rates["fsm judge"]
    Told(
        bench="peers",
        what="records/s of machine claims by columns / by fsm judge, each in one process",
        ours=ours,
        peer=peer,
        ratio=ours / peer,
        reach=None,
        not_measured=() if pm4py else ("PM4Py: --pm4py names no interpreter that has it",),
        figures={
            "records": count,
            "load average": os.getloadavg()[0],
            "records/s": {"columns": ours, **rates},
            "columns in times of": {name: ours / rate for name, rate in rates.items()},
        },
    ).tell(as_json=as_json)


def _by_transitions(records: int) -> float:
    """Return how many steps a second the library's own triggers make of the same machine."""
    take = by_trigger(machine_of(_MACHINE))
    triggers = {one.value: one for one in _MACHINE.triggers}
    states: dict[int, str] = {}
    begun = time.process_time()
    for entity, (old, cause, _) in many(records):
        state = take(states.get(entity, old), triggers[cause], frozenset())
        if state is None:
            raise click.ClickException(f"no {cause} from {old}")
        states[entity] = state
    return records / (time.process_time() - begun)


def net_of(table: Table, last: str) -> str:
    """Return a machine as a Petri net in PNML: a place per state, a transition per row.

    Args:
        table: The machine.
        last: The state in which histories end.
    """
    return "\n".join(_net(table, last))


def _net(table: Table, last: str) -> Iterator[str]:
    yield _HEAD
    for state in (ABSENT, *(one.value for one in table.states)):
        marking = "<initialMarking><text>1</text></initialMarking>" if state == ABSENT else ""
        yield f"<place id={quoteattr(state)}>{_named(state)}{marking}</place>"
    for number, row in enumerate(table.rows):
        old = ABSENT if row.source is None else row.source.value
        yield f'<transition id="t{number}">{_named(row.trigger.value)}</transition>'
        for source, target in ((old, f"t{number}"), (f"t{number}", row.target.value)):
            ends = f"source={quoteattr(source)} target={quoteattr(target)}"
            yield f"<arc id={quoteattr(f'{source} {target}')} {ends}/>"
    place = f"<place idref={quoteattr(last)}><text>1</text></place>"
    yield _END.format(f"<finalmarkings><marking>{place}</marking></finalmarkings>")


def _named(text: str) -> str:
    return f"<name><text>{text}</text></name>"


def _by_pm4py(python: str, directory: Path, records: int) -> float:
    """Return how many steps PM4Py replays a second of its processor time, its start included.

    Args:
        python: An interpreter that has PM4Py.
        directory: Where its files may be.
        records: About how many it is given.

    Raises:
        click.ClickException: The program failed, or the log does not fit for it.
    """
    few, log = directory / "few", directory / "log.xes"
    write_process(few, "n", many(records))
    with open_session({"spark.master": "local[2]"}) as session:
        steps = write_xes(read_source(session, [str(few)]).records, log, pieces=1)
    told, model = log.with_suffix(".txt"), log.with_suffix(".pnml")
    model.write_text(net_of(_MACHINE, LAST[-1]))
    begun = _seconds()
    command = [python, "-m", "pm4py.cli", "FitnessTBR", str(log), str(model), str(told)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  the user's own interpreter
    taken = _seconds() - begun
    if not told.is_file():
        raise click.ClickException(f"{python} has no PM4Py that replays: {done.stderr[-500:]}")
    if not _FITS.search(told.read_text()):
        raise click.ClickException(f"PM4Py says that the log does not fit: {told.read_text()}")
    return steps / taken


def _seconds() -> float:
    """Return the processor time of the processes that this one started and saw end."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
