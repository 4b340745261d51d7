"""Export of traces for other tools: OpenTelemetry spans, and XES (IEEE 1849) for process mining.

Spans are OTLP/JSON as file exporters write it. A line is one `ExportTraceServiceRequest`. A
message and its answers are a trace of OpenTelemetry. Each process that they crossed has a span,
with an event for every record; its resource is the process. The root is the span of the process
that sent the message, and the parent of the others. All ids are derived from names: a repeated
export gives the same ids.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from specs.jsonvalue import Json, JsonObject
from specs.spans import SpanStatus, kind_of, place_of, status_of
from specs.trace import Kind, Op, trace_folder

_FIELDS: Final = (
    "run", "node", "ln", "wall_ns", "actor", "op", "type", "mid", "from", "to", "code", "link",
)  # fmt: skip


def write_otlp(records: DataFrame, target: Path, pieces: int) -> int:
    """Write the OpenTelemetry spans of all messages, one piece of the trace after the other.

    Args:
        records: The records of `spark.load.read_source`.
        target: The file.
        pieces: Number of pieces of messages.

    Returns:
        The number of written spans.
    """
    messages = records.where((F.col("k") == Kind.MSG.value) & F.col("mid").isNotNull())
    fields = messages.select(F.coalesce("ref", "mid").alias("request"), "ref", *_FIELDS)
    order = ("request", "run", "node", "ln")
    rows = (
        fields.repartitionByRange(pieces, "request").sortWithinPartitions(*order).toLocalIterator()
    )
    count = 0
    with target.open("w", encoding="utf-8") as file:
        for request, story in groupby(rows, key=lambda row: row["request"]):
            spans = list(_spans(request, story))
            json.dump({"resourceSpans": spans}, file, separators=(",", ":"))
            file.write("\n")
            count += len(spans)
    return count


def _spans(request: str, story: Iterable[Row]) -> Iterator[JsonObject]:
    """Yield the spans of a message, each with its process; the root first."""
    processes = [
        list(records) for _, records in groupby(story, key=lambda row: (row["run"], row["node"]))
    ]
    root = min(processes, key=_place)
    yield _of_process(request, root, None)
    for records in processes:
        if records is not root:
            yield _of_process(request, records, root)


def _place(records: Sequence[Row]) -> tuple[bool, bool, int]:
    """Return a key that sorts the processes of a message: the sender first, then by time."""
    ops = {(row["op"], row["ref"] is None) for row in records}
    is_asker = (Op.CALLBACK.value, False) in ops
    is_receiver = (Op.RCV.value, True) in ops
    return not is_asker, is_receiver, min(row["wall_ns"] for row in records)


def _of_process(request: str, records: Sequence[Row], root: Sequence[Row] | None) -> JsonObject:
    first = records[0]
    resource = {"service.name": first["node"], "service.instance.id": first["run"]}
    scope: JsonObject = {"name": "protofly"}
    span = _span(request, records, root)
    return {
        "resource": {"attributes": _attributes(resource)},
        "scopeSpans": [{"scope": scope, "spans": [span]}],
    }


def _span(request: str, records: Sequence[Row], root: Sequence[Row] | None) -> JsonObject:
    asked = next((row for row in records if row["ref"] is None), None)
    about = asked or records[0]
    times = [row["wall_ns"] for row in records]
    place = place_of(request, None if root is None else (about["run"], about["node"]))
    passed_on = any(row["op"] == Op.XMIT and row["ref"] is None for row in records)
    status = status_of(row["code"] for row in records if row["code"] is not None)
    span: JsonObject = {
        "traceId": place.trace,
        "spanId": place.span,
        "name": (asked and asked["type"]) or "response",
        "kind": int(kind_of(is_root=root is None, is_passed_on=passed_on)),
        "startTimeUnixNano": str(min(times)),
        "endTimeUnixNano": str(max(times)),
        "attributes": _attributes(
            {"protofly.mid": request, "protofly.from": about["from"], "protofly.to": about["to"]}
        ),
        "events": [_span_event(row) for row in records],
        "status": {} if status is SpanStatus.UNSET else {"code": int(status)},
    }
    return span | {"parentSpanId": place.parent} if place.parent else span


def _span_event(row: Row) -> JsonObject:
    facts = {
        "protofly.actor": row["actor"], "protofly.record": row["ln"], "protofly.code": row["code"],
        "protofly.link": row["link"],
    }  # fmt: skip
    return {
        "timeUnixNano": str(row["wall_ns"]),
        "name": f"{row['op']} {row['type']}",
        "attributes": _attributes(facts),
    }


def _attributes(facts: dict[str, str | int | None]) -> list[Json]:
    """Convert names and values to attributes of OTLP/JSON, where integers are written as text."""
    return [
        {"key": key, "value": {"stringValue": value} if isinstance(value, str)
                              else {"intValue": str(value)}}
        for key, value in facts.items()
        if value is not None
    ]  # fmt: skip


_ENTITY: Final = ("machine", "key", "run", "node")
_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_EXTENSIONS: Final = {
    "Concept": ("concept", "http://www.xes-standard.org/concept.xesext"),
    "Time": ("time", "http://www.xes-standard.org/time.xesext"),
    "Organizational": ("org", "http://www.xes-standard.org/org.xesext"),
}
_HEAD: Final = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<log xes.version="1849-2016" xes.features="" xmlns="http://www.xes-standard.org/">\n'
)


def write_xes(records: DataFrame, target: Path, pieces: int) -> int:
    """Write the state machine transitions of all entities as XES, piece by piece.

    Args:
        records: The records of `spark.load.read_source`.
        target: The file.
        pieces: Number of pieces of entities.

    Returns:
        The number of written transitions.
    """
    steps = records.where((F.col("k") == Kind.STATE.value) & (F.col("op") == Op.STEP.value))
    fields = steps.select(*_ENTITY, "ln", "wall_ns", "actor", "old", "cause", "new")
    cut = fields.repartitionByRange(pieces, *_ENTITY)
    rows = cut.sortWithinPartitions(*_ENTITY, "ln").toLocalIterator()
    count = 0
    with target.open("w", encoding="utf-8") as file:
        file.write(_HEAD)
        for name, (prefix, uri) in _EXTENSIONS.items():
            file.write(f'<extension name="{name}" prefix="{prefix}" uri="{uri}"/>\n')
        for entity, story in groupby(rows, key=lambda row: tuple(row[name] for name in _ENTITY)):
            file.write("<trace>\n")
            file.writelines(_entity(*entity))
            for row in story:
                file.writelines(_event(row))
                count += 1
            file.write("</trace>\n")
        file.write("</log>\n")
    return count


def _entity(machine: str, key: str, run: str, node: str) -> Iterator[str]:
    # The name tells the case from those of all processes, also with what XML does not take.
    parts = (machine, trace_folder(run, node), key)
    yield _attribute("string", "concept:name", " ".join(map(_spelt, parts)))
    yield _attribute("string", "machine", machine)
    yield _attribute("string", "run", run)
    yield _attribute("string", "node", node)


def _spelt(text: str) -> str:
    """Return a text with characters that XML permits; different texts have different results."""
    return _NO_XML.sub(lambda odd: f"%{ord(odd[0]):04X}", text.replace("%", "%25"))


def _event(row: Row) -> Iterator[str]:
    wall = datetime.fromtimestamp(row["wall_ns"] / 1e9, UTC)
    yield "<event>\n"
    yield _attribute("string", "concept:name", row["cause"])
    yield _attribute("date", "time:timestamp", wall.isoformat(timespec="microseconds"))
    yield _attribute("string", "org:resource", row["actor"])
    yield _attribute("string", "old", row["old"])
    yield _attribute("string", "new", row["new"])
    yield _attribute("int", "ln", str(row["ln"]))
    yield "</event>\n"


def _attribute(kind: str, key: str, value: str) -> str:
    text = _NO_XML.sub("\N{REPLACEMENT CHARACTER}", value)
    return f'<{kind} key="{key}" value={quoteattr(text)}/>\n'
