"""Traces of real runs, as judges read them: what a player saw, or what processes wrote."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from fsm.judge.trace_line import TraceLine, line_of, read_line
from specs.trace import BODIES, Fact, Kind, Op, Stamp
from tests.conformance.play.names import Names
from tests.conformance.play.player import perform
from tests.conformance.play.route import Observer, Seen
from tests.conformance.play.score import Score
from tests.conformance.play.script import Scenario
from tests.conformance.play.stage import open_stage


def lines_seen(items: Iterable[Seen], processes: Iterable[str]) -> Iterator[TraceLine]:
    """Each process's records: what it reported, between a start and an end."""
    numbers, time = Counter(), 0.0
    known = set(processes)
    for who in sorted(known):
        yield _line(numbers, who, Fact(k=Kind.START, kind=BODIES), time)
    for seen in items:
        time = seen.time
        if seen.who in known and not _is_outside(seen.fact):
            yield _line(numbers, seen.who, seen.fact, time, seen.actor)
    for who in sorted(known):
        yield _line(numbers, who, Fact(k=Kind.END), time)


def _is_outside(fact: Fact) -> bool:
    """Whether a peer says it whom the scenario needs and no process runs: it counts nothing."""
    return fact.op in {Op.XMIT, Op.RCV} and fact.stub is not None and fact.seq is None


def _line(
    numbers: Counter[str], who: str, fact: Fact, time: float, actor: str = "trace"
) -> TraceLine:
    numbers[who] += 1
    stamp = Stamp(run=who, node=who, ln=numbers[who], wall_ns=0, mono_ns=0, t=time, actor=actor)
    return line_of(stamp, fact)


def lines_under(directory: Path) -> list[TraceLine]:
    """Read what processes wrote; a last line that was cut off by their death is none."""
    lines = []
    for part in sorted(directory.rglob("part-*.jsonl")):
        whole, _, _ = part.read_bytes().rpartition(b"\n")
        lines += [read_line(line) for line in whole.splitlines()]
    return lines


async def lines_played(scenario: Scenario) -> list[TraceLine]:
    """Play a scenario, or as much of it as goes, to the end of all its processes."""
    observer, names = Observer(), Names()
    async with open_stage(scenario, observer, names) as stage:
        await perform(stage, Score(scenario, observer, names))
    return list(lines_seen(observer.items, observer.processes))
