"""Texts about findings for people, for the report and the terminal, and histories of violations."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from fsm.judge.claims.catalogue import CLAIMS_JUDGED, NOT_JUDGED
from fsm.judge.crossings import clock_lines
from fsm.judge.trace_line import STEP_TEXTS, Flaw, Verdict
from spark.findings import Broken, Findings, MachineUse, NodeFindings
from spark.findings import Row as TableRow
from spark.load import small_frame
from spark.schemas import FACT, PLACED, STORY
from specs.claims import CLAIMS
from specs.jsonvalue import JsonObject, visible
from specs.trace import Kind

CLAIM: Final = {claim.value: text for claim, text in STEP_TEXTS.items()} | {
    CLAIMS[claim].name: CLAIMS[claim].text for claim in CLAIMS_JUDGED
}
"""The text of each claim, by its name."""

CLAIM_ID: Final = {claim.value: claim.value for claim in STEP_TEXTS} | {
    CLAIMS[claim].name: claim for claim in CLAIMS_JUDGED
}
"""The id of each claim, by its name; claims about transitions have the name as their id."""

BY_NOBODY: Final = tuple(CLAIMS[name] for name in NOT_JUDGED)
"""Claims that no trace can decide: not checked at all."""

VERDICT: Final = {
    Verdict.CONFORMANT: "Every record keeps every claim that was checked, and none is missing.",
    Verdict.OPEN: "No record so far breaks a claim; processes still write.",
    Verdict.VIOLATIONS: "At least one record breaks a claim that was checked.",
    Verdict.INCOMPLETE: "No record breaks a checked claim, but the traces are incomplete.",
}
"""The meaning of each verdict."""

_FLAW: Final = {
    Flaw.NO_START: "does not begin with its start",
    Flaw.NO_END: "has no end: the process was killed, or still runs",
    Flaw.DROPPED: "had to drop records",
}

_NANO: Final = 1e-9
_MINUTE: Final = 60.0
_SECOND: Final = 1.0


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1,200 steps`.

    Args:
        number: The number.
        noun: The noun, in the singular.
    """
    end = noun[-1]
    plural = noun[:-1] + "ies" if end == "y" else noun + ("es" if end == "s" else "s")
    return f"{number:,} {noun if number == 1 else plural}"


def duration(seconds: float) -> str:
    """Return a time in a suitable unit: `3.2 ms`, `1.50 s`, `2 min 5 s`."""
    if seconds < _SECOND:
        return f"{seconds * 1000:.1f} ms"
    if seconds < _MINUTE:
        return f"{seconds:.2f} s"
    return f"{seconds // _MINUTE:.0f} min {seconds % _MINUTE:.0f} s"


def row_name(row: TableRow) -> str:
    """Return a transition of a state machine as one line of text."""
    return f"{row.old} -> {row.new} ({row.cause})"


def node_line(node: NodeFindings) -> str:
    """Return a line about the trace of a node: its flaws, or its number of records."""
    if not node.records:
        return "has no record at all"
    flaws = [_FLAW[flaw] for flaw in Flaw if flaw in node.flaws and flaw in _FLAW]
    if node.missing:
        flaws.append(f"lacks {count(node.missing, 'record')}")
    if node.doubled:
        flaws.append(f"has {count(node.doubled, 'record')} twice")
    if node.quarantined:
        flaws.append(f"has {count(node.quarantined, 'line')} that cannot be read")
    if node.violations:
        flaws.append(f"has {count(node.violations, 'violation')}")
    return "; ".join(flaws) or "no record is missing"


def machine_line(machine: MachineUse) -> str:
    """Return a line about a state machine: its transitions, and those that never occurred."""
    used = f"{count(machine.steps, 'step')} of {count(machine.entities, 'entity')}"
    never = [row_name(row) for row in machine.never]
    if not machine.used:
        return f"{used}; it is not declared"
    if not never:
        return f"{used}; every declared transition was exercised"
    return f"{used}; never exercised: {', '.join(never)}"


def describe_checked(findings: Findings) -> list[str]:
    """Return which claims were checked, and which were not, as half sentences."""
    others = len(CLAIMS_JUDGED) - (len(findings.by_claim) - len(STEP_TEXTS))
    told = f"checked: {len(STEP_TEXTS)} claims on the steps of machines"
    if others:
        told += " only"
    else:
        told += f", {len(CLAIMS_JUDGED)} on messages, tables and links"
    left = [f"{others} claims on messages, tables and links"] if others else []
    left.append(f"{len(BY_NOBODY)} claims that no trace can decide")
    return [told, f"not checked: {', '.join(left)}"]


def summary(findings: Findings) -> list[str]:
    """Return findings as lines for a terminal, the verdict first."""
    found = findings
    figures = [
        count(found.events, "event"),
        count(found.entities, "entity"),
        count(found.violations, "violation"),
        count(found.quarantined, "line") + " quarantined",
    ]
    lines = [f"{found.verdict}: {', '.join(figures)}"]
    lines += describe_checked(findings)
    lines += [f"node {node.node}: {node.verdict}, {node_line(node)}" for node in found.nodes]
    lines += clock_lines(
        {(each.run, each.node): each.skew for each in found.nodes if each.skew is not None}
    )
    lines += [f"machine {machine.machine}: {machine_line(machine)}" for machine in found.machines]
    lines += [f"first {claim_label(broken.claim)}: {broken_line(broken)}" for broken in found.first]
    lines += [f"missing at record {gap.ln} of {gap.node}: {gap.reason}" for gap in found.gaps]
    lines += [f"quarantined {bad.file}:{bad.line}: {bad.reason}" for bad in found.bad_lines]
    return [visible(line) for line in lines]


def claim_label(name: str) -> str:
    """Return the id and the name of a claim: `I-T2 one final`; both may be the same."""
    return " ".join(dict.fromkeys((CLAIM_ID[name], name)))


def broken_line(broken: Broken) -> str:
    """Return a line about a violation: the record, and what was expected."""
    where, expected = f"record {broken.ln} of {broken.node}", f"expected {broken.expected}"
    step = broken.step
    if step is None:
        return f"{where}, {broken.about}: {expected}"
    made = f"{step.record.old} -> {step.record.new} by {step.record.cause}"
    return f"{where}, {step.machine} {step.key}: {made}, {expected}"


# The history of a violation: earlier records of the same message, key or link.

_LENGTH: Final = 11
"""Number of records of a history, including the violating one."""

_Place: TypeAlias = tuple[str, str, int]
_PLACE: Final = ("run", "node", "ln")
_OF: Final = tuple(f"of_{name}" for name in _PLACE)
_IN_ORDER: Final = ("wall_ns", *_PLACE)


Story: TypeAlias = Sequence[Row]
"""Records (rows with the fields of FACT) in the order of their times; the last is the violating
one."""


def event_words(event: Row) -> str:
    """Return a line of text for people about a record."""
    if event.k == Kind.STATE:
        return f"{event.machine}: {event.old or ''} -> {event.new or 'refused'} ({event.cause})"
    kind = None if event.k == Kind.MSG else event.k
    facts = (kind, event.op, event.type, event.code, event.link and f"by {event.link}")
    return " ".join(str(fact) for fact in facts if fact is not None)


def lanes(story: Story) -> Mapping[tuple[str, str], int]:
    """Return the numbers of the lifelines in a history's diagram, by process and component."""
    parties = dict.fromkeys((event.node, event.actor) for event in story)
    return {party: at for at, party in enumerate(parties)}


def letter(lane: int) -> str:
    """Return the letter that names a component's lifeline in a drawing, by its number."""
    return chr(ord("A") + lane)


def component_in(story: Story, event: Row) -> str:
    """Return the letter and process of the component that wrote a record of a history."""
    return f"{letter(lanes(story)[event.node, event.actor])} {event.node}"


def time_before(story: Story, event: Row) -> str:
    """Return a text for the time from a record of a history to the violating record."""
    seconds = max(story[-1].wall_ns - event.wall_ns, 0) * _NANO
    return "0.0 ms" if event is story[-1] else f"-{duration(seconds)}"


def anchor(title: str) -> str:
    """Return the HTML id of the section with a title."""
    return title.lower().replace(" ", "-")


def write_stories(good: DataFrame, violations: DataFrame, target: str) -> None:
    """Write the history of each violation: the last records about the same entity before it.

    Args:
        good: Records, with at least the fields of FACT.
        violations: Rows of VIOLATION.
        target: The directory that is written.
    """
    broken = violations.select("claim", *_PLACE).distinct()
    heads = broken.select(*_PLACE).distinct().withColumn("is_head", F.lit(True))  # noqa: FBT003
    records = good.select(*FACT.fieldNames()).join(heads, on=[*_PLACE], how="left")
    stories = _stories(records).join(broken, on=[*_PLACE], how="inner")
    of = (F.col(name).alias(told) for name, told in zip(_PLACE, _OF, strict=True))
    told = stories.select("claim", *of, F.posexplode("story").alias("before", "record"))
    rows = told.select("claim", *_OF, (F.col("before") + 1).cast("bigint").alias("at"), "record.*")
    rows.select(*STORY.fieldNames()).write.mode("overwrite").parquet(target)


def _stories(records: DataFrame) -> DataFrame:
    """Return run, node and number of each violating record, and the records before it."""
    topics = (
        _topic("message", F.col("mid")), _topic("message", F.col("ref")),
        _topic("key", F.coalesce("machine", F.lit("")), F.lit(" "), F.col("key")),
        _topic("link", F.col("link")),
    )  # fmt: skip
    itself = _topic("record", F.concat_ws(" ", *_PLACE))
    message, key, link = F.array_compact(F.array(*topics[:2])), *map(F.array, topics[2:])
    own = (
        F.when(F.size(message) > 0, message)
        .when(F.col("key").isNotNull(), key)
        .when(F.col("link").isNotNull(), link)
        .otherwise(F.array(itself))
    )
    told = records.withColumn("own", F.when(F.col("is_head"), own))
    wanted = told.where("is_head").select(F.explode("own").alias("topic")).distinct()
    every = F.array_compact(F.array(*topics, F.when(F.col("is_head"), itself)))
    belongs = told.withColumn("topic", F.explode(F.array_distinct(every)))
    of_topics = belongs.join(wanted, on="topic", how="left_semi")
    fields = dict.fromkeys([*_IN_ORDER, *FACT.fieldNames()])
    until = Window.partitionBy("topic").orderBy(*_IN_ORDER).rowsBetween(1 - _LENGTH, 0)
    latest = F.collect_list(F.struct(*fields)).over(until)
    heads = of_topics.withColumn("latest", latest).where("is_head and array_contains(own, topic)")
    together = F.array_distinct(F.flatten(F.collect_list("latest")))
    story = F.reverse(F.slice(F.sort_array(together, asc=False), 1, _LENGTH))
    return heads.groupBy(*_PLACE).agg(story.alias("story"))


def _topic(noun: str, *fields: Column) -> Column:
    return F.concat(F.lit(f"{noun} "), *fields)


def stories_of(
    session: SparkSession, written: str, violations: Sequence[Broken]
) -> Mapping[_Place, Story]:
    """Read the histories of some violations, by run, node and number of the violating record.

    Args:
        session: A running Spark.
        written: The directory that `write_stories` wrote.
        violations: The violations that are shown.
    """
    places: list[JsonObject] = [
        {"of_run": violation.run, "of_node": violation.node, "of_ln": violation.ln}
        for violation in violations
    ]
    wanted = F.broadcast(small_frame(session, places, PLACED).distinct())
    told = session.read.schema(STORY).parquet(written).join(wanted, on=[*_OF], how="left_semi")
    stories: defaultdict[_Place, dict[int, Row]] = defaultdict(dict)
    for row in told.drop("claim").distinct().collect():
        fields = row.asDict()
        run, node, ln, at = (fields.pop(name) for name in (*_OF, "at"))
        stories[run, node, ln][at] = Row(**fields)
    return {place: [story[at] for at in sorted(story)] for place, story in stories.items()}
