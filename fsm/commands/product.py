"""Command `python -m fsm check --product`: explores compositions and reports the faults."""

import gc
import re
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Final

import attrs
import click

from fsm.commands.judge import Progress, UsageError, count_noun, echo, print_json, progress_of
from fsm.commands.parameters import FOLDER, fields, option
from fsm.explore.composition import Bounds, Composition
from fsm.explore.compositions.catalogue import COMPOSITIONS
from fsm.explore.evidence import scenario_of, sequence_diagram, trace_of
from fsm.explore.explorer import MAX_STATES, Exploration, Fault, Finding, explore
from specs.errors import SpecError
from specs.jsonvalue import JsonObject

_PROCESSES: Final = 2
"""Number of compositions that are explored in parallel."""

_MOST: Final = 1000
"""Largest permitted bound; numbers up to this are prepared in advance."""

_REST: Final = 60.0
"""Seconds for which a scenario of a deadlock continues."""


@attrs.frozen
class Wanted:
    """Options of an exploration: limits of each composition, and the form of the report.

    Attributes:
        losses: Messages lost in one run. None: the composition's own number; so for the next two.
        duplicates: Messages delivered twice.
        channel: Outstanding messages at a time.
        max_states: States of a composition after which the exploration stops.
        output: Directory for a diagram, a trace and a scenario of each finding's run.
        wants_json: Whether the report is one JSON object per line.
    """

    losses: int | None = None
    duplicates: int | None = None
    channel: int | None = None
    max_states: int = MAX_STATES
    output: Path | None = None
    wants_json: bool = False


WANTED: Final = fields(
    Wanted,
    is_made=True,
    losses=option(type=click.IntRange(0, _MOST)),
    duplicates=option(type=click.IntRange(0, _MOST)),
    channel=option(type=click.IntRange(1, _MOST)),
    max_states=option(type=click.IntRange(1), show_default=True),
    output=option(type=FOLDER, short="-o"),
    wants_json=None,
)
"""Options of an exploration, except `wants_json`."""


def check_product(names: tuple[str, ...], wanted: Wanted) -> int:
    """Explore compositions, all if no name is given; return how many have faults.

    Raises:
        click.ClickException: A name is wrong, or the directory cannot be written.
    """
    plans = [_plan(name) for name in dict.fromkeys(names)] or list(COMPOSITIONS.values())
    if len(plans) == 1:
        with progress_of(f"states of {plans[0].name}") as progress:
            return sum(not _check(plan, wanted, progress) for plan in plans)
    failed = 0
    count = len(plans)
    with ProcessPoolExecutor(_PROCESSES) as pool, progress_of("compositions", count) as progress:
        reports = pool.map(partial(_report, wanted), [plan.name for plan in plans])
        for done, (text, holds) in enumerate(reports, 1):
            progress.clear()
            echo(text, nl=False)
            failed += not holds
            progress.set(done, count)
    return failed


def _report(wanted: Wanted, name: str) -> tuple[str, bool]:
    """Return the report on one composition, and whether it has no faults."""
    with redirect_stdout(StringIO()) as output:
        holds = _check(COMPOSITIONS[name], wanted)
    return output.getvalue(), holds


def _plan(name: str) -> Composition:
    if name not in COMPOSITIONS:
        known = ", ".join(COMPOSITIONS)
        raise UsageError(f"no composition is named {name!r}: it is one of {known}")
    return COMPOSITIONS[name]


def _check(plan: Composition, wanted: Wanted, progress: Progress | None = None) -> bool:
    """Explore one composition and report the findings; return False if there are any."""
    started = time.perf_counter()
    advance = None if progress is None else progress.set
    try:
        given = {
            name: bound
            for name in attrs.fields_dict(Bounds)
            if (bound := getattr(wanted, name)) is not None
        }
        composition = attrs.evolve(plan, bounds=attrs.evolve(plan.bounds, **given))
        # The exploration makes a million tuples of numbers that are never garbage.
        gc.disable()
        result = explore(composition, wanted.max_states, advance=advance)
    except SpecError as exc:
        raise UsageError(str(exc)) from exc
    finally:
        gc.enable()
    seconds = time.perf_counter() - started
    if progress is not None:
        progress.set(result.states, result.states)
        progress.clear()
    if wanted.wants_json:
        print_json(*_json(plan, result, seconds))
    else:
        for text in _words(plan, result, seconds):
            echo(text)
    if wanted.output is not None:
        _write_all(wanted.output, plan, result)
    return result.holds


# --- the output --------------------------------------------------------------------------


def _verdict(result: Exploration) -> str:
    if result.findings:
        return count_noun(len(result.findings), "finding")
    return "holds" if result.is_complete else "not finished"


def _held_back_text(result: Exploration) -> str:
    return f" ({result.held_back} steps waited for space)" if result.held_back else ""


def _words(plan: Composition, result: Exploration, seconds: float) -> Iterator[str]:
    yield (
        f"{plan.name}: {result.states} states, {result.transitions} transitions, "
        f"depth {result.depth}, {seconds:.1f} s: {_verdict(result)}{_held_back_text(result)}"
    )
    if not result.is_complete:
        yield (
            f"  {plan.name} has more than {result.states} states, so this proves nothing: "
            "allow more with --max-states, or less to go wrong"
        )
    for count, finding in enumerate(result.findings, start=1):
        yield f"  {count}. {finding.fault}: {_subject(finding)}, in {finding.times} states"
        for number, step in enumerate(finding.run.steps, start=1):
            yield f"     {number:2} {step.words}"
        yield from _last(finding)


def _subject(finding: Finding) -> str:
    return finding.subject or "it comes to rest, or goes on for ever, where it may not"


def _last(finding: Finding) -> Iterator[str]:
    run = finding.run
    if run.refused is not None:
        yield f"      ! {run.refused.words}"
    for channel, held in run.under_way.items():
        yield f"        unread in {channel}: {', '.join(map(str, held))}"


def _json(plan: Composition, result: Exploration, seconds: float) -> Iterator[JsonObject]:
    for finding in result.findings:
        yield {
            "schema": "protofly.product-finding/1",
            "composition": plan.name,
            "fault": finding.fault.value,
            "subject": finding.subject,
            "times": finding.times,
            "run": [step.words for step in finding.run.steps],
            "refused": None if finding.run.refused is None else finding.run.refused.words,
            "last": [
                f"{place}: {step.machine} {step.key} {step.new}"
                for place, step in finding.run.last()
            ],
        }
    yield {
        "schema": "protofly.product/1",
        "composition": plan.name,
        "states": result.states,
        "transitions": result.transitions,
        "depth": result.depth,
        "held_back": result.held_back,
        "reactions": result.reactions,
        "seconds": round(seconds, 3),
        "verdict": _verdict(result),
    }


# --- what is written ----------------------------------------------------------------------


def _write_all(directory: Path, plan: Composition, result: Exploration) -> None:
    try:
        for count, finding in enumerate(result.findings, start=1):
            _write(directory / f"{plan.name}-{count}-{finding.fault}", result, finding)
    except OSError as exc:
        why = f"cannot write {directory}: {exc.strerror}; name another directory with --output"
        raise click.ClickException(why) from exc


def _write(directory: Path, result: Exploration, finding: Finding) -> None:
    """Write a run that leads to a fault as diagram, trace and scenario."""
    whole, run = result.composition, finding.run
    title = f"{whole.name}: {finding.fault} {finding.subject}".rstrip()
    name = "CX-" + re.sub("[^A-Za-z0-9]+", "-", f"{whole.name}-{finding.fault}")
    directory.mkdir(parents=True, exist_ok=True)
    diagram = sequence_diagram(whole, run, title)
    (directory / "sequence.mmd").write_text(diagram, encoding="utf-8")
    rest = _REST if finding.fault is Fault.DEADLOCK else 0.0
    scenario = scenario_of(whole, run, name, rest)
    (directory / "scenario.jsonl").write_text(scenario, encoding="utf-8")
    for node, lines in trace_of(whole, run).items():
        place = directory / "trace" / f"node={node}"
        place.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{line}\n" for line in lines)
        (place / "part-00000.jsonl").write_text(text, encoding="utf-8")
