"""From paths to findings: the only place that asks Spark for results."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, final

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from fsm.judge.trace_line import CLAIMS, Flaw, Verdict
from fsm.machine_list import MACHINES
from fsm.table import Table
from spark.claims import find_violations, with_records_before
from spark.findings import (
    BadLine,
    Broken,
    Dwell,
    Findings,
    MachineUse,
    NodeFindings,
    Quarantine,
    Row,
    Told,
    judge_node,
    judge_run,
)
from spark.load import parse, quarantine, read_lines, records
from spark.nodes import holes, judge_nodes
from spark.schemas import NODE, QUARANTINE, VIOLATION
from spark.stories import count_entities, count_steps, tell_stories, time_in_states
from spark.tables import small_frame, tables_of

__all__ = ["validate"]

_SHOWN: Final = 20
"""Quarantined lines shown; all of them are in the report's files."""


@final
@attrs.frozen
class _Judged:
    """The DataFrames of one validation.

    Attributes:
        nodes: Rows of NODE, collected.
    """

    bad_lines: DataFrame
    stories: DataFrame
    violations: DataFrame
    nodes: Sequence[SparkRow]


def validate(
    session: SparkSession,
    paths: Sequence[str],
    allowed: Quarantine = Quarantine.COUNTS,
    report: Path | None = None,
) -> Findings:
    """Judge the traces at `paths` by all claims.

    Args:
        session: A running Spark.
        paths: Directories of runs, runs, nodes of a run or files; whatever Spark reads.
        allowed: Whether lines that are no records make the verdict incomplete.
        report: Directory for `violations.parquet` and `quarantine`; None: not wanted.

    Raises:
        TraceMissingError: There is no trace at a path.
    """
    source = read_lines(session, paths)
    parsed = _kept(parse(source.lines))
    told, bad = records(parsed), quarantine(parsed)
    judged_nodes = judge_nodes(parsed).collect()
    nodes = small_frame(session, [row.asDict() for row in judged_nodes], NODE)
    stories = _kept(tell_stories(told, nodes, tables_of(session, MACHINES.values())))
    broken = _kept(find_violations(stories, holes(told, nodes)))
    violations = _kept(with_records_before(broken, stories))
    judged = _Judged(bad, stories, violations, judged_nodes)
    if report is not None:
        _write(judged, report)
    return _findings(judged, source.nodes, allowed)


def _kept(frame: DataFrame) -> DataFrame:
    """Compute once, and forget how: later plans stay short, which halves small runs."""
    return frame.localCheckpoint()


def _write(judged: _Judged, report: Path) -> None:
    violations = judged.violations.select(*VIOLATION.fieldNames())
    violations.write.mode("overwrite").parquet(str(report / "violations.parquet"))
    bad = judged.bad_lines.select(*QUARANTINE.fieldNames()).coalesce(1)
    bad.write.mode("overwrite").json(str(report / "quarantine"))


def _findings(judged: _Judged, named: Iterable[tuple[str, str]], allowed: Quarantine) -> Findings:
    by = ("claim", "run", "node", "machine")
    counts = judged.violations.groupBy(*by).agg(F.count("*").alias("times")).collect()
    quarantined = judged.bad_lines.count()
    nodes = _nodes(judged.nodes, _sum(counts, "run", "node"), named, allowed)
    machines = _machines(judged.stories, _sum(counts, "machine"))
    by_claim = _sum(counts, "claim")
    violations = sum(by_claim.values())
    return Findings(
        verdict=judge_run(nodes, violations, quarantined, allowed),
        events=sum(node.records for node in nodes),
        entities=sum(machine.entities for machine in machines),
        violations=violations,
        quarantined=quarantined,
        by_claim={claim.value: by_claim[claim.value,] for claim in CLAIMS},
        nodes=nodes,
        machines=machines,
        first=_first(judged.violations) if violations else [],
        bad_lines=_bad_lines(judged.bad_lines) if quarantined else [],
    )


def _sum(counts: Iterable[SparkRow], *names: str) -> Counter[tuple[str, ...]]:
    total: Counter[tuple[str, ...]] = Counter()
    for row in counts:
        total[tuple(row[name] for name in names)] += row["times"]
    return total


def _nodes(
    rows: Iterable[SparkRow],
    violations: Mapping[tuple[str, ...], int],
    named: Iterable[tuple[str, str]],
    allowed: Quarantine,
) -> list[NodeFindings]:
    found = [
        NodeFindings(
            run=row["run"],
            node=row["node"],
            verdict=Verdict.INCOMPLETE,
            records=row["records"],
            missing=row["missing"],
            doubled=row["doubled"],
            quarantined=row["quarantined"],
            violations=violations.get((row["run"], row["node"]), 0),
            flaws=frozenset(Flaw(flaw) for flaw in row["flaws"]),
        )
        for row in rows
    ]
    told = {(run, node.node) for node in found for run in (node.run, "")}
    found += [_silent(*writer) for writer in named if writer not in told]
    judged = [attrs.evolve(node, verdict=judge_node(node, allowed)) for node in found]
    return sorted(judged, key=lambda node: (node.node, node.run))


def _silent(run: str, name: str) -> NodeFindings:
    """A node that has a file but not one record."""
    flaws = frozenset({Flaw.NO_START, Flaw.NO_END})
    nothing = {"records": 0, "missing": 0, "doubled": 0, "quarantined": 0, "violations": 0}
    return NodeFindings(run=run, node=name, verdict=Verdict.INCOMPLETE, flaws=flaws, **nothing)


def _machines(stories: DataFrame, violations: Mapping[tuple[str, ...], int]) -> list[MachineUse]:
    steps = count_steps(stories).collect()
    entities = {row["machine"]: row["entities"] for row in count_entities(stories).collect()}
    dwells = time_in_states(stories).collect()
    undeclared = sorted(set(entities) - set(MACHINES))
    made: Counter[tuple[str, Row]] = Counter()
    for row in steps:
        made[row["machine"], Row(row["old"], row["cause"], row["new"])] += row["steps"]
    return [
        MachineUse(
            machine=name,
            steps=sum(times for (machine, _), times in made.items() if machine == name),
            entities=entities.get(name, 0),
            violations=violations.get((name,), 0),
            used={row: made[name, row] for row in _rows(MACHINES.get(name))},
            dwells=_dwells(dwells, name, MACHINES.get(name)),
        )
        for name in [*MACHINES, *undeclared]
    ]


def _rows(table: Table | None) -> list[Row]:
    rows = () if table is None else table.rows
    return [Row(row.old, row.trigger.value, row.target.value) for row in rows]


def _dwells(rows: Iterable[SparkRow], machine: str, table: Table | None) -> list[Dwell]:
    found = {
        row["state"]: Dwell(row["state"], row["stays"], row["median"], row["p95"], row["longest"])
        for row in rows
        if row["machine"] == machine
    }
    declared = [] if table is None else [state.value for state in table.states]
    return [found[state] for state in declared if state in found]


def _first(violations: DataFrame) -> list[Broken]:
    record = F.struct(*violations.columns)
    earliest = F.min_by(record, F.struct("t", "node", "ln")).alias("first")
    rows = violations.groupBy("claim").agg(earliest).select("first.*").orderBy("rank").collect()
    return [_broken(row) for row in rows]


def _broken(row: SparkRow) -> Broken:
    texts = ("claim", "run", "node", "machine", "key", "actor", "expected", "why")
    return Broken(
        **{name: row[name] for name in texts},
        record=_told(row),
        before=[_told(earlier) for earlier in row["before"]],
    )


def _told(row: SparkRow) -> Told:
    return Told(row["ln"], row["t"], row["old"], row["cause"], row["new"])


def _bad_lines(bad: DataFrame) -> list[BadLine]:
    rows = bad.orderBy("file", "line").limit(_SHOWN).collect()
    return [BadLine(row["file"], row["line"], row["reason"], row["text"]) for row in rows]
