"""Command `python -m fsm judge`: judges traces of machines, messages, tables and links."""

import io
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, NoReturn, cast

import attrs
import click
from typing_extensions import Buffer, override

from fsm.commands.parameters import argument, define_command, option
from fsm.judge import trace_files
from fsm.judge.claims.catalogue import CLAIMS_JUDGED
from fsm.judge.claims.fold import Finding
from fsm.judge.crossings import clock_lines
from fsm.judge.process import ProcessJudgement
from fsm.judge.replay import Violation
from fsm.judge.trace_line import STEP_TEXTS, Claim, Verdict
from fsm.judge.verdict import RunJudgement, combine, judge_folders
from fsm.machine_list import MACHINES, table_named
from fsm.table import Table, UnknownMachineError
from specs.claims import CLAIMS
from specs.jsonvalue import JsonObject, one_line, visible

# Parts that the commands of `python -m fsm` share: machines by name, and JSON lines.

_USAGE: Final = 2
"""Exit status for a wrong command line."""


class UsageError(click.ClickException):
    """Error: the command line is wrong; the text is one sentence, without a usage text."""

    exit_code = _USAGE


JSON: Final = option(text="One JSON object per line.", flag="--json")
"""Option `--json`, for all commands whose output scripts may read."""


def machine_named(name: str) -> Table:
    """Return the machine with a name that was given on the command line."""
    try:
        return table_named(name)
    except UnknownMachineError as error:
        raise UsageError(str(error)) from error


def machines_named(names: tuple[str, ...]) -> tuple[Table, ...]:
    """Return the machines with some names, each once; all if no name is given."""
    return tuple(map(machine_named, dict.fromkeys(names))) or tuple(MACHINES.values())


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun, as in `1 finding` and `2 findings`.

    Args:
        number: The number.
        noun: The noun, in the singular.
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def echo(text: str, *, nl: bool = True, err: bool = False) -> None:
    """Print a text with control characters made visible; all output of commands uses this function.

    Args:
        text: The text; line breaks in it are kept.
        nl: Whether a line break follows.
        err: Whether it is printed to standard error.
    """
    click.echo(visible(text), nl=nl, err=err)


def print_json(*values: JsonObject) -> None:
    """Print one JSON object per line."""
    for value in values:
        echo(json.dumps(value, ensure_ascii=False))


def enter(command: click.Command, name: str) -> NoReturn:
    """Run a program with the arguments of this process and exit with its status.

    Args:
        command: The program.
        name: Its name in messages.
    """
    try:
        code = command.main(prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        vars(error)["message"] = one_line(error.message)  # values from outside
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


# Progress of long work, shown on standard error if that is a terminal.

_CLEAR: Final = "\r\x1b[2K"
"""Terminal sequence that clears the line of the progress bar."""


class Progress:
    """Progress bar of a long operation; does nothing without a terminal.

    Args:
        show: Displays the amounts of finished and of total work; None: nothing is displayed.
    """

    def __init__(self, show: Callable[[int, int], None] | None) -> None:
        self._show = show

    def set(self, finished: int, total: int) -> None:
        """Update the progress bar.

        Args:
            finished: Amount of finished work.
            total: Amount of total work, as far as is known.
        """
        if self._show is not None:
            self._show(finished, total)

    def clear(self) -> None:
        """Remove the progress bar for other output; the next `set` displays it again."""
        if self._show is not None and sys.stderr.isatty():
            click.echo(_CLEAR, nl=False, err=True)


@contextmanager
def progress_of(title: str, total: int = 1) -> Iterator[Progress]:
    """Display a progress bar while the context is open.

    Args:
        title: Name of the work.
        total: Amount of total work, as far as is known.

    Yields:
        The progress bar, to be told how much is done.
    """
    if not sys.stderr.isatty():
        yield Progress(None)
        return
    opened = click.progressbar(range(total), label=title, file=sys.stderr, show_percent=True)
    with opened as bar:

        def show(done: int, known: int) -> None:
            bar.length = max(known, 1)
            bar.update(done - bar.pos)

        yield Progress(show)


@contextmanager
def progress_of_reading(
    title: str, parts: Sequence[trace_files.LinesPart]
) -> Iterator[Sequence[trace_files.LinesPart]]:
    """Display how many bytes of the files were read, while the context is open.

    Args:
        title: Name of the work.
        parts: The files.

    Yields:
        The files, to be read instead. If a file is read again, because its records are out of
        order, its bytes are not counted again.
    """
    if not sys.stderr.isatty():
        yield parts
        return
    sizes = {part.name: _size(part.name) for part in parts}
    read = dict.fromkeys(sizes, 0)
    with progress_of(title, sum(sizes.values())) as progress:

        def came(name: str, count: int) -> None:
            read[name] = min(read[name] + count, sizes[name])
            progress.set(sum(read.values()), sum(sizes.values()))

        yield [attrs.evolve(part, opened=partial(_open_file, part.name, came)) for part in parts]


def _size(name: str) -> int:
    try:
        return Path(name).stat().st_size
    except OSError:  # the reader reports that
        return 0


def _open_file(name: str, came: Callable[[str, int], None]) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(_Counted(name, came), _BLOCK))


_BLOCK: Final = 1 << 16
"""Number of bytes that are read from a file at once."""


class _Counted(io.FileIO):
    """File that counts the bytes that are read from it."""

    def __init__(self, name: str, came: Callable[[str, int], None]) -> None:
        super().__init__(name)
        self._came = partial(came, name)

    @override
    def readinto(self, buffer: Buffer, /) -> int | None:
        count: int | None = super().readinto(buffer)
        self._came(count or 0)
        return count


_JUDGED: Final = len(CLAIMS_JUDGED) + len(STEP_TEXTS)

_NO_TRACE: Final = 3
"""Exit status for a path without a trace; Spark's command uses the same."""


class _NoTraceError(click.ClickException):
    """Error: a path has no trace; the text is one sentence."""

    exit_code = _NO_TRACE


UNTRACED: Final = option(
    "NAME", text="An address or a domain of which no trace is expected; may be given several times."
)

MANIFEST: Final = option(
    "FILE",
    text="Participants of the run, as JSON; see docs/traces.md.",
    flag="--manifest",
    type=click.Path(path_type=Path),
)


@define_command("judge", short_help="Judge TRACE...: machines, messages, tables and links.")
def judge_traces(
    *,
    traces: tuple[Path, ...] = argument(
        "TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path)
    ),
    untraced: tuple[str, ...] = UNTRACED,
    place: Path | None = MANIFEST,
    wants_json: bool = JSON,
) -> None:
    """Judge the traces at TRACE...: directories of runs, runs, nodes of a run, or files.

    Name the traces of all participants: many claims need both ends, and a participant
    without a trace makes the verdict incomplete. Exits with 0 if the traces are
    conformant, with 1 if they are not or are incomplete, with 3 if there is no trace.
    """
    try:
        manifest = None if place is None else trace_files.read_manifest(place)
        with progress_of_reading("traces", trace_files.parts_in(traces)) as parts:
            folders = judge_folders(trace_files.folders_of(parts))
    except trace_files.TraceFileError as exc:
        raise _NoTraceError(one_line(str(exc))) from exc
    except trace_files.ManifestError as exc:
        raise UsageError(one_line(str(exc))) from exc
    readings = [folder.reading for folder in folders]
    records, bad = sum(reading.count for reading in readings), sum(len(r.bad) for r in readings)
    processes = sorted((process for folder in folders for process in folder.processes), key=_name)
    judged = combine(processes, bad, untraced, manifest)
    flaws = list(_flaws(judged, readings))
    verdict = judged.verdict
    if flaws and verdict is Verdict.CONFORMANT:
        verdict = Verdict.INCOMPLETE
    if wants_json:
        print_json(*_as_json(judged, records, bad, flaws, verdict))
    else:
        for line in _as_text(judged, records, flaws, verdict):
            echo(one_line(line))
    click.get_current_context().exit(0 if verdict is Verdict.CONFORMANT else 1)


def _name(judged: ProcessJudgement) -> tuple[str, str]:
    return judged.node.run, judged.node.node


def _flaws(judged: RunJudgement, readings: Sequence[trace_files.Reading]) -> Iterator[JsonObject]:
    """Yield the missing records and traces, each with file and line."""
    for item in judged.missing:
        flaw: JsonObject = {
            "run": item.run,
            "node": item.node,
            "ln": item.ln,
            "reason": item.reason,
        }
        places = (reading.place(item.run, item.node, item.ln) for reading in readings)
        if (place := next((each for each in places if each is not None), None)) is not None:
            flaw |= {"file": place[0], "line": place[1]}
        yield flaw
    for bad in (bad for reading in readings for bad in reading.bad):
        reason = f"the line cannot be read: {bad.reason}"
        yield {"file": bad.file, "line": bad.line, "reason": reason}
    for (run, node), file in trace_files.silent(readings).items():
        yield {"run": run, "node": node, "file": file, "reason": "no record is in this trace"}


def _flaw_line(flaw: JsonObject) -> str:
    """Return a missing record or trace as one line: file, process, and description."""
    where = ":".join(str(flaw[name]) for name in ("file", "line") if name in flaw)
    owner = f"trace of {flaw['node']}: " if flaw.get("node") else ""
    return f"incomplete: {where + ': ' if where else ''}{owner}{flaw['reason']}"


def _as_text(
    judged: RunJudgement, records: int, flaws: list[JsonObject], verdict: Verdict
) -> Iterator[str]:
    for claim, first in _firsts(judged.findings).items():
        times = count_noun(judged.by_claim[claim], "time")
        yield f"{claim} broken {times}: {CLAIMS[claim].text}"
        where = " and ".join(first.nodes)
        yield f"  first at {where}, record {first.ln}: {first.about}: expected {first.expected}"
    for broken, number in _first_steps(judged):
        times = count_noun(number, "time")
        text = STEP_TEXTS[broken.claim]
        yield f"{broken.claim} broken {times} by machine {broken.entity.machine}: {text}"
        where, key = broken.entity.node, broken.entity.key
        yield f"  first at {where}, record {broken.ln}: {key}: expected {broken.expected}"
    yield from map(_flaw_line, flaws)
    yield from clock_lines(judged.skews)
    count = count_noun(records, "record")
    judges = count_noun(_JUDGED, "claim")
    broken_claims = len(judged.by_claim) + len({step.claim for step in judged.machines.violations})
    yield f"{verdict.value}: {count}, {judges} judged, {broken_claims} broken"


def _as_json(
    judged: RunJudgement, records: int, bad: int, flaws: list[JsonObject], verdict: Verdict
) -> Iterator[JsonObject]:
    for first in _firsts(judged.findings).values():
        claim = CLAIMS[first.claim]
        yield {
            "schema": "protofly.broken-claim/1",
            "claim": claim.name,
            "id": claim.id,
            "text": claim.text,
            "times": judged.by_claim[first.claim],
            "run": first.run,
            "nodes": list(first.nodes),
            "ln": first.ln,
            "about": first.about,
            "expected": first.expected,
        }
    for step, times in _first_steps(judged):
        yield {
            "schema": "protofly.broken-claim/1",
            "claim": step.claim.value,
            "id": step.claim.value,
            "text": STEP_TEXTS[step.claim],
            "times": times,
            "run": step.entity.run,
            "nodes": [step.entity.node],
            "ln": step.ln,
            "about": step.entity.key,
            "machine": step.entity.machine,
            "expected": step.expected,
        }
    for flaw in flaws:
        yield {"schema": "protofly.flaw/1", **flaw}
    for (run, node), skew in sorted(judged.skews.items()):
        yield {"schema": "protofly.skew/1", "run": run, "node": node, **attrs.asdict(skew)}
    yield {
        "schema": "protofly.judgement/1",
        "verdict": verdict.value,
        "records": records,
        "quarantined": bad,
        "claims": _JUDGED,
        "findings": len(judged.findings),
        "steps_broken": len(judged.machines.violations),
        "flaws": {
            node.node: [flaw.value for flaw in sorted(node.flaws)]
            for node in judged.machines.nodes
            if node.flaws
        },
        "missing": len(flaws),
    }


def _firsts(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    """Return the first finding of each claim, in the order of the claims."""
    firsts: dict[str, Finding] = {}
    for finding in findings:
        firsts.setdefault(finding.claim, finding)
    return firsts


def _first_steps(judged: RunJudgement) -> list[tuple[Violation, int]]:
    """Return the first violation of each claim for each machine, and their number."""
    firsts: dict[tuple[str, Claim], Violation] = {}
    times: Counter[tuple[str, Claim]] = Counter()
    for broken in judged.machines.violations:
        kind = broken.entity.machine, broken.claim
        firsts.setdefault(kind, broken)
        times[kind] += 1
    return [(first, times[kind]) for kind, first in firsts.items()]
