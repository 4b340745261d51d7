"""Traces as XES (IEEE 1849), for process mining: a trace per entity, an event per step."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from specs.trace import Kind, Op

__all__ = ["write_xes"]

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
    """Write the steps of all entities, one piece in memory at a time.

    Args:
        records: What `spark.load.read_source` found.
        target: The file.
        pieces: Into how many pieces of entities the work is cut.

    Returns:
        How many steps were written.
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
    yield _attribute("string", "concept:name", f"{machine} {key}")
    yield _attribute("string", "machine", machine)
    yield _attribute("string", "run", run)
    yield _attribute("string", "node", node)


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
