"""The command `python -m spark`: data on stdout, everything else on stderr."""

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final, NoReturn, TypeVar

import click

from fsm.commands.judge import enter
from fsm.judge.claims import fold as judged
from fsm.judge.claims.catalogue import BY_MACHINES, CLAIMS_JUDGED, NOT_JUDGED
from fsm.judge.process import MONITORED
from fsm.judge.trace_files import ManifestError, read_manifest
from spark.errors import SparkMissingError, TraceMissingError
from spark.findings import DIAGRAMS
from specs.claims import CATALOGUE, Claim
from specs.errors import ProtoflyError
from specs.jsonvalue import one_line

_HEAD: Final = """\
# Claims

What holds in every run of the protocol. This page is the output of `python -m spark claims`.

Class: S is judged on any prefix of a trace, L needs the end or a clock, X needs the traces of
several processes, hyper compares two runs. Records: the kind, then operations, machines or
tables; the tables and states that are known of each process (listeners, links, stubs, sessions,
owners of addresses) are not listed. Key: what the records have in common that one claim reads; a
runtime is one run of one process, also of a message node. The judges are `python -m fsm judge` and
`python -m spark validate`: they check the same claims by the same code. The monitor of a process
checks the claims on steps while it runs. With the option `--monitor` it also checks the claims
marked so, of its own records: those of answers for every tenth request.

| id | claim | class | place | records | key | checked by |
|---|---|---|---|---|---|---|
"""


def claims_page() -> str:
    """Return the page, in Markdown."""
    return _HEAD + "".join(f"| {' | '.join(_row(claim))} |\n" for claim in CATALOGUE)


def _row(claim: Claim) -> tuple[str, ...]:
    plain = claim.id, claim.text.replace("|", "\\|"), claim.reach.value
    machine = BY_MACHINES.get(claim.id)
    if machine is not None:
        where = "monitor, fsm judge, spark, fsm check --product"
        return (*plain, "any process", f"state {machine}", judged.GroupKey.ENTITY.value, where)
    judges = CLAIMS_JUDGED.get(claim.id)
    if judges is None:
        return (*plain, "", "", "", f"nobody: {NOT_JUDGED[claim.id]}")
    is_monitored = any(judge in MONITORED for judge in judges)
    where = "monitor with --monitor, fsm judge, spark" if is_monitored else "fsm judge, spark"
    places = _joined(judge.place.value for judge in judges)
    return (*plain, places, _records(judges), _keys(claim.id, judges), where)


def _records(judges: tuple[judged.Claim, ...]) -> str:
    """Return which records the judges need, in words."""
    needed: dict[tuple[str, bool], set[str]] = {}
    for route in (one for judge in judges for _, routes in judge.methods for one in routes):
        names = needed.setdefault((route.kind.value, route.is_at_bus), set())
        names |= route.names or {"all"}
    return _joined(
        f"{kind} {'all' if 'all' in names else ', '.join(sorted(names))}"
        f"{' at the bus' if is_at_bus else ''}"
        for (kind, is_at_bus), names in needed.items()
    )


def _keys(claim: str, judges: tuple[judged.Claim, ...]) -> str:
    across = (one for judge in judges for one in judge.across if claim in one.claims)
    return _joined([judged.GroupKey.PROCESS.value, *(one.key.value for one in across)])


def _joined(words: Iterator[str] | list[str]) -> str:
    return "; ".join(dict.fromkeys(words))


class Exit(IntEnum):
    """What the exit status says."""

    CONFORMANT = 0
    NOT_CONFORMANT = 1
    USAGE = 2
    NO_TRACE = 3


def _settings(
    context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> dict[str, str]:
    """Read K=V settings; the last of several with one key counts, and wins over other options.

    Raises:
        click.BadParameter: One is not of the form K=V.
    """
    settings: dict[str, str] = {**context.ensure_object(dict)}
    for setting in given:
        key, equals, value = setting.partition("=")
        if not (key and equals):
            raise click.BadParameter(f"{setting!r} is not of the form K=V")
        settings[key] = value
    return settings


_SETTING_OF: Final = {"master": "spark.master", "driver_memory": "spark.driver.memory"}


def _keep_setting(context: click.Context, option: click.Parameter, given: str | None) -> None:
    """Keep the value of an option as a setting, which `_settings` reads later."""
    if given is not None:
        context.ensure_object(dict)[_SETTING_OF[option.name or ""]] = given


_F = TypeVar("_F", bound=Callable[..., None])  # type: ignore[explicit-any] # any command
_kept = partial(click.option, is_eager=True, expose_value=False, callback=_keep_setting)
_master = _kept("--master", metavar="URL", help="Spark master [default: all cores here].")
_memory = _kept("--driver-memory", metavar="SIZE", help="Heap of the driver, as 2g.")
_conf = click.option(
    "--conf",
    "settings",
    metavar="K=V",
    multiple=True,
    callback=_settings,
    help="A Spark setting, which wins over all others; may be given several times.",
)


_untraced = click.option(
    "--untraced",
    metavar="NAME",
    multiple=True,
    help="An address or a domain of which no trace is expected; may be given several times.",
)


def _spark_options(command: _F) -> _F:  # type: ignore[explicit-any] # any command
    return _master(_memory(_conf(command)))


@contextmanager
def _exit_on_errors() -> Iterator[None]:
    try:
        yield
    except ManifestError as exc:
        _fail(exc, Exit.USAGE)
    except TraceMissingError as exc:
        _fail(exc, Exit.NO_TRACE)
    except ProtoflyError as exc:
        _fail(exc, Exit.NOT_CONFORMANT)


@click.group("spark", context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Judge traces of any size by all claims, with Spark."""


@main.command()
@click.argument("traces", metavar="TRACE...", nargs=-1, required=True)
@click.option(
    "--report",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write report.html, summary.json, violations.parquet and drawings there.",
)
@click.option(
    "--against",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Compare with the former report in DIR; needs --report.",
)
@click.option(
    "--diagrams",
    metavar="COUNT",
    type=click.IntRange(1, 1000),
    help=f"Violations of each claim that the report draws [default: {DIAGRAMS}]; needs --report.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, the verdict last.")
@click.option(
    "--claims",
    "scope",
    type=click.Choice(["all", "machines"]),
    default="all",
    show_default=True,
    help="Which to judge; those on machines alone take a small part of the time.",
)
@_spark_options
@click.option(
    "--allow-quarantine", is_flag=True, help="Lines that cannot be read leave the verdict alone."
)
@_untraced
@click.option(
    "--manifest",
    "place",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Participants of the run, as JSON; see docs/traces.md.",
)
def validate(  # noqa: PLR0913 - one for each option
    *,
    traces: tuple[str, ...],
    report: Path | None,
    against: Path | None,
    diagrams: int | None,
    as_json: bool,
    scope: str,
    settings: dict[str, str],
    allow_quarantine: bool,
    untraced: tuple[str, ...],
    place: Path | None,
) -> None:
    """Judge the traces at TRACE...: directories of runs, runs, nodes of a run, or files.

    All claims are judged that `python -m fsm judge` judges, with the same verdict, or only those
    on machines; then nothing is said of messages, answers and participants. Exits with 0
    if the traces are conformant, with 1 if they are not or are incomplete, with 3 if there is
    no trace.
    """
    if against is not None and report is None:
        raise click.UsageError("--against needs --report")
    if diagrams is not None and report is None:
        raise click.UsageError("--diagrams needs --report")
    if scope != "all" and place is not None:
        raise click.UsageError("--manifest needs --claims all")
    with _exit_on_errors():
        _check_there(traces)
        manifest = None if place is None else read_manifest(place)
        work = _work()
        asked = work.Question(
            traces=traces,
            is_quarantine_allowed=allow_quarantine,
            untraced=untraced,
            manifest=manifest,
            is_of_machines=scope == "machines",
        )
        outcome = work.run(
            work.Order(
                question=asked,
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


@main.command(name="convert")
@click.argument("traces", metavar="TRACE...", nargs=-1, required=True)
@click.option("--to", "target", metavar="DIR", required=True, help="A directory that is not there.")
@_spark_options
def convert_traces(
    *,
    traces: tuple[str, ...],
    target: str,
    settings: dict[str, str],
) -> None:
    """Write the traces at TRACE... as Parquet, a folder for each run and node.

    `validate` judges the result as it judges TRACE..., and faster. Lines that are no records are
    kept with their places. Exits with 0, with 1 if Spark fails or DIR is there, with 3 if there
    is no trace.
    """
    with _exit_on_errors():
        _check_there(traces)
        work = _work()
        bad = work.convert_traces(traces, target, settings)
    if bad:
        print(f"lines that are no records: {bad}", file=sys.stderr)


@main.command()
@click.argument("traces", metavar="TRACE...", nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(["otlp", "xes"]),
    required=True,
    help="otlp: OpenTelemetry spans of messages; xes: steps of entities (IEEE 1849).",
)
@click.option(
    "--to",
    "target",
    metavar="FILE",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where it is written.",
)
@_spark_options
def export(
    *,
    traces: tuple[str, ...],
    form: str,
    target: Path,
    settings: dict[str, str],
) -> None:
    """Write the traces at TRACE... for other tools.

    otlp: a message and its answers are a trace, each process they crossed is a span; one JSON
    object a line, as OpenTelemetry's file exporter writes it. xes: an entity is a trace, a step
    is an event, for process mining. Exits with 1 if Spark fails, with 3 if there is no trace.
    """
    with _exit_on_errors():
        _check_there(traces)
        work = _work()
        written = work.export(traces, form, target, settings)
    print(one_line(f"{form}: {written}"), file=sys.stderr)


@main.command()
@click.argument(
    "traces", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--to",
    metavar="DIR",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Keeps violations.jsonl and the progress; a watch that was interrupted goes on there.",
)
@click.option(
    "--until-idle",
    metavar="SECONDS",
    type=click.FloatRange(min=1),
    help="End after so long without a new record, and judge everything as `validate` does.",
)
@click.option("--json", "as_json", is_flag=True, help="Print violations as JSON.")
@_untraced
@_spark_options
def watch(
    *,
    traces: Path,
    to: Path,
    until_idle: float | None,
    as_json: bool,
    untraced: tuple[str, ...],
    settings: dict[str, str],
) -> None:
    """Judge traces while nodes write them to DIR.

    Prints each violation once, within seconds of its record, and the progress on stderr. Runs
    until it is interrupted; killed and started again, it goes on where it was. Parts packed by
    gzip are left to `validate`. Exits with 1 if a claim is broken, else with 0; with
    --until-idle, with 1 also if the traces are incomplete.
    """
    with _exit_on_errors():
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


@main.command()
def claims() -> None:
    """List all claims as a page: id, sentence, class, records and key, and where checked."""
    print(claims_page(), end="")


class _Progress:
    """Prints a line on stderr if it changed; on a terminal in the place of the one before."""

    def __init__(self) -> None:
        self._last = ""

    def print(self, line: str) -> None:
        if line != self._last:
            shown = one_line(line)
            text = f"\r\x1b[K{shown}" if sys.stderr.isatty() else f"{shown}\n"
            print(text, end="", file=sys.stderr, flush=True)
        self._last = line


_SECRET: Final = re.compile(r"((?:secret|password|token|key)[^=]*=).*", re.IGNORECASE)
"""A setting with a secret value; Spark hides those with such names as well."""

_LOGIN: Final = re.compile("(?<=://)[^/@]*@")


def _command() -> str:
    """Return what was called, without secrets, as a report may be given to others."""
    given = sys.argv[2:] if sys.argv[1:2] == ["spark"] else sys.argv[1:]  # `protofly spark`
    told = (_LOGIN.sub("...@", _SECRET.sub(r"\1...", argument)) for argument in given)
    return shlex.join(["python", "-m", "spark", *told])


def _check_there(traces: tuple[str, ...]) -> None:
    """Find out about a wrong local path before Spark takes its seconds to start."""
    for trace in traces:
        is_local = "://" not in trace and not trace.startswith("file:")
        if is_local and not set(trace) & set("*?[{") and not Path(trace).exists():
            raise TraceMissingError(trace, "there is nothing")


def _work(name: str = "spark.run") -> ModuleType:
    try:
        # Spark is an extra and takes a second to import: only judging commands need it.
        return import_module(name)
    except ImportError as exc:
        raise SparkMissingError(f"{exc}: run pip install 'protofly[spark]'") from exc


def _fail(error: ProtoflyError, code: Exit) -> NoReturn:
    print(f"Error: {one_line(str(error))}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    enter(main, "python -m spark")
