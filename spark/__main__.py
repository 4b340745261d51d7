"""The command `python -m spark`: data on stdout, everything else on stderr."""

import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final, NoReturn

import click

from fsm.commands import judge
from fsm.commands.parameters import (
    FOLDER,
    HELP_OPTIONS,
    Make,
    argument,
    define_command,
    group,
    option,
)
from fsm.judge.claims import fold as judged
from fsm.judge.claims.catalogue import BY_MACHINES, CLAIMS_JUDGED, NOT_JUDGED
from fsm.judge.trace_files import ManifestError, read_manifest
from spark.errors import SparkMissingError, TraceMissingError
from spark.findings import DIAGRAMS
from specs.claims import CATALOGUE, Claim
from specs.errors import ProtoflyError
from specs.jsonvalue import one_line

_HEAD: Final = """\
# Claims

A *claim* is a property that every run has. This page is the output of `python -m spark claims`.

| column | meaning |
|---|---|
| name | what the [report](traces.md#reports), `summary.json` and messages of `spark` call it |
| class | S (safety), L (liveness), X (across), hyper, or two of them: see below |
| place | the processes that the claim applies to |
| records | the judged [records](traces.md#records): kind, then operations, machines or tables |
| key | what the records judged together have in common; a runtime is one run of one process |
| checked by | `fsm judge`, `spark` by the same code, its own [monitor](traces.md#monitor) |

The class says what shows that a claim is broken: S: any beginning of a trace; L: its end or a time;
X: traces of several processes; hyper: two runs. Claims *with bodies* are judged only in traces
with [bodies](traces.md#record).

| id | name | claim | class | place | records | key | checked by |
|---|---|---|---|---|---|---|---|
"""


def claims_page() -> str:
    """Return the documentation page of all claims, in Markdown."""
    return _HEAD + "".join(f"| {' | '.join(_row(claim))} |\n" for claim in CATALOGUE)


def _row(claim: Claim) -> tuple[str, ...]:
    plain = claim.id, claim.name, claim.text.replace("|", "\\|"), claim.reach.value
    machine = BY_MACHINES.get(claim.id)
    if machine is not None:
        where = "monitor, fsm judge, spark, fsm check --product"
        return (*plain, "any process", f"state {machine}", judged.GroupKey.ENTITY.value, where)
    judges = CLAIMS_JUDGED.get(claim.id)
    if judges is None:
        return (*plain, "", "", "", f"nobody: {NOT_JUDGED[claim.id]}")
    is_monitored = any(judge.is_forgetful for judge in judges)
    where = "monitor with --monitor, fsm judge, spark" if is_monitored else "fsm judge, spark"
    if any(route.has_body for judge in judges for _, routes in judge.methods for route in routes):
        where += ", with bodies"
    places = _join(judge.place.value for judge in judges)
    return (*plain, places, _records(judges), _keys(claim.id, judges), where)


def _records(judges: tuple[judged.Claim, ...]) -> str:
    """Return a phrase for people about the kinds of records that the judges of a claim need."""
    needed: dict[tuple[str, bool], set[str]] = {}
    for route in (each for claim in judges for _, routes in claim.methods for each in routes):
        names = needed.setdefault((route.kind.value, route.is_at_bus), set())
        names |= route.names or {"all"}
    return _join(
        f"{kind} {'all' if 'all' in names else ', '.join(sorted(names))}"
        f"{' at the bus' if is_at_bus else ''}"
        for (kind, is_at_bus), names in needed.items()
    )


def _keys(claim: str, judges: tuple[judged.Claim, ...]) -> str:
    across = (each for judge in judges for each in judge.across if claim in each.claims)
    return _join([judged.GroupKey.PROCESS.value, *(each.key.value for each in across)])


def _join(words: Iterator[str] | list[str]) -> str:
    return "; ".join(dict.fromkeys(words))


class Exit(IntEnum):
    """The exit statuses of the command."""

    CONFORMANT = 0
    NOT_CONFORMANT = 1
    USAGE = 2
    NO_TRACE = 3


def _read_setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise click.BadParameter(f"{text!r} is not of the form K=V")
    return key, value


def _settings(
    *,
    master: str | None = option("URL"),
    driver_memory: str | None = option("SIZE"),
    settings: dict[str, str] = option("K=V", flag="--conf", read=_read_setting),
) -> dict[str, str]:
    """Return the settings of Spark; the last of several with one key counts.

    Args:
        master: Spark master [default: all cores here].
        driver_memory: Heap of the driver, such as 2g.
        settings: A Spark setting, which wins over all others; may be given several times.
    """
    own = {"spark.master": master, "spark.driver.memory": driver_memory}
    return {key: value for key, value in own.items() if value is not None} | settings


_SETTINGS: Final = group(_settings)


@click.group("spark", context_settings=HELP_OPTIONS)
def main() -> None:
    """Judge traces of any size by all claims, with Spark."""


def _run(values: Mapping[str, object], make: Make) -> object:
    try:
        return make(values)
    except ManifestError as exc:
        _fail(exc, Exit.USAGE)
    except TraceMissingError as exc:
        _fail(exc, Exit.NO_TRACE)
    except ProtoflyError as exc:
        _fail(exc, Exit.NOT_CONFORMANT)


_define: Final = partial(define_command, of=main, run=_run)


@_define("validate")
def validate(  # noqa: PLR0913 - one for each option
    *,
    traces: tuple[str, ...] = argument("TRACE...", nargs=-1, required=True),
    report: Path | None = option(type=FOLDER),
    against: Path | None = option(type=FOLDER),
    diagrams: int | None = option(
        "COUNT",
        type=click.IntRange(1, 1000),
        text=f"Violations of each claim that the report draws [default: {DIAGRAMS}]; needs "
        "--report.",
    ),
    as_json: bool = option(flag="--json"),
    scope: str = option(
        flag="--claims", type=click.Choice(["all", "machines"]), default="all", show_default=True
    ),
    settings: dict[str, str] = _SETTINGS,
    allow_quarantine: bool = option(),
    untraced: tuple[str, ...] = judge.UNTRACED,
    place: Path | None = judge.MANIFEST,
) -> None:
    """Judge the traces at TRACE...: directories of runs, runs, nodes of a run, or files.

    All claims are judged that `python -m fsm judge` judges, with the same verdict, or only those
    on machines; then nothing is said of messages, answers and participants. Exits with 0
    if the traces are conformant, with 1 if they are not or are incomplete, with 3 if there is
    no trace.

    Args:
        report: Write report.html, summary.json, violations.parquet and drawings there.
        against: Compare with the former report in DIR; needs --report.
        as_json: Print JSON, the verdict last.
        scope: Which claims to judge; those on machines alone take a small part of the time.
        allow_quarantine: Lines that cannot be read do not change the verdict.
    """
    if against is not None and report is None:
        raise click.UsageError("--against needs --report")
    if diagrams is not None and report is None:
        raise click.UsageError("--diagrams needs --report")
    if scope != "all" and place is not None:
        raise click.UsageError("--manifest needs --claims all")
    _check_paths(traces)
    manifest = None if place is None else read_manifest(place)
    work = _work()
    question = work.Question(
        traces=traces,
        is_quarantine_allowed=allow_quarantine,
        untraced=untraced,
        manifest=manifest,
        is_of_machines=scope == "machines",
    )
    outcome = work.run(
        work.Order(
            question=question,
            report=report,
            settings=settings,
            against=against,
            command=_command(),
            diagrams=diagrams or DIAGRAMS,
        )
    )
    for line in outcome.as_json() if as_json else outcome.as_text():
        print(one_line(line))
    sys.exit(Exit.CONFORMANT if outcome.is_conformant else Exit.NOT_CONFORMANT)


@_define("convert")
def convert_traces(
    *,
    traces: tuple[str, ...] = argument("TRACE...", nargs=-1, required=True),
    target: str = option("DIR", flag="--to"),
    settings: dict[str, str] = _SETTINGS,
) -> None:
    """Write the traces at TRACE... as Parquet, a folder for each run and node.

    `validate` judges the result as it judges TRACE..., and faster. Lines that are no records are
    kept with their places. Exits with 0, with 1 if Spark fails or DIR is there, with 3 if there
    is no trace.

    Args:
        target: Directory to write; it must not exist.
    """
    _check_paths(traces)
    work = _work()
    bad = work.convert_traces(traces, target, settings)
    if bad:
        print(f"lines that are no records: {bad}", file=sys.stderr)


@_define("export")
def export(
    *,
    traces: tuple[str, ...] = argument("TRACE...", nargs=-1, required=True),
    form: str = option(flag="--format", type=click.Choice(["otlp", "xes"]), required=True),
    target: Path = option(flag="--to"),
    settings: dict[str, str] = _SETTINGS,
) -> None:
    """Write the traces at TRACE... for other tools.

    otlp: a message and its answers are a trace, each process they crossed is a span; one JSON
    object a line, as OpenTelemetry's file exporter writes it. xes: an entity is a trace, a step
    is an event, for process mining. Exits with 1 if Spark fails, with 3 if there is no trace.

    Args:
        form: otlp: OpenTelemetry spans of messages; xes: steps of entities (IEEE 1849).
        target: Where it is written.
    """
    _check_paths(traces)
    work = _work()
    written = work.export(traces, form, target, settings)
    print(one_line(f"{form}: {written}"), file=sys.stderr)


@_define("watch")
def watch(
    *,
    traces: Path = argument("DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)),
    to: Path = option(type=FOLDER),
    until_idle: float | None = option("SECONDS", type=click.FloatRange(min=1)),
    as_json: bool = option(flag="--json"),
    untraced: tuple[str, ...] = judge.UNTRACED,
    settings: dict[str, str] = _SETTINGS,
) -> None:
    """Judge traces while nodes write them to DIR.

    Prints each violation once, within seconds of its record, and the progress on stderr. Runs
    until it is interrupted; killed and started again, it goes on where it was. Parts packed by
    gzip are left to `validate`. Exits with 1 if a claim is broken, else with 0; with
    --until-idle, with 1 also if the traces are incomplete.

    Args:
        to: Keeps violations.jsonl and the progress; a watch that was interrupted goes on there.
        until_idle: End after so long without a new record, and judge everything as `validate` does.
        as_json: Print violations as JSON.
    """
    work = _work("spark.watch")
    outcome = work.watch(
        traces,
        to,
        lambda line: print(one_line(line), flush=True),
        _Progress().print,
        as_json=as_json,
        until_idle=until_idle,
        untraced=untraced,
        settings=settings,
    )
    for line in outcome.as_json() if as_json else outcome.as_text():
        print(one_line(line))
    sys.exit(Exit.CONFORMANT if outcome.is_kept else Exit.NOT_CONFORMANT)


@_define("claims")
def claims() -> None:
    """List all claims as a page: id, sentence, class, records and key, and where checked."""
    print(claims_page(), end="")


class _Progress:
    """Printer of progress lines on stderr; on a terminal, a line replaces the previous one."""

    def __init__(self) -> None:
        self._last = ""

    def print(self, line: str) -> None:
        if line != self._last:
            clean_line = one_line(line)
            text = f"\r\x1b[K{clean_line}" if sys.stderr.isatty() else f"{clean_line}\n"
            print(text, end="", file=sys.stderr, flush=True)
        self._last = line


_SECRET: Final = re.compile(r"((?:secret|password|token|key)[^=]*=).*", re.IGNORECASE)
"""A setting with a secret value; Spark hides settings of such names, too."""

_LOGIN: Final = re.compile("(?<=://)[^/@]*@")


def _command() -> str:
    """Return the command line without secrets, as a report may be given to others."""
    words = sys.argv[2:] if sys.argv[1:2] == ["spark"] else sys.argv[1:]  # `protofly spark`
    arguments = (_LOGIN.sub("...@", _SECRET.sub(r"\1...", argument)) for argument in words)
    return shlex.join(["python", "-m", "spark", *arguments])


def _check_paths(traces: tuple[str, ...]) -> None:
    """Check local paths before Spark starts, which takes seconds."""
    for trace in traces:
        is_local = "://" not in trace and not trace.startswith("file:")
        if is_local and not set(trace) & set("*?[{") and not Path(trace).exists():
            raise TraceMissingError(trace, "there is nothing")


def _work(name: str = "spark.run") -> ModuleType:
    try:
        # Spark is an extra and takes a second to import: only judging commands need it.
        return import_module(name)
    except ImportError as exc:
        raise SparkMissingError(f"{exc}: run pip install '.[spark]' in a checkout") from exc


def _fail(error: ProtoflyError, code: Exit) -> NoReturn:
    print(f"Error: {one_line(str(error))}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    judge.enter(main, "python -m spark")
