"""Two runs compared: what changed since a former report."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from spark.errors import FormerReportError
from specs.jsonvalue import Json, JsonObject

__all__ = ["changes", "read_summary"]

_FIGURES: Final = ("verdict", "events", "entities", "violations", "quarantined")


def read_summary(directory: Path) -> JsonObject:
    """Read the summary of a former report.

    Raises:
        FormerReportError: There is none.
    """
    path = directory / "summary.json"
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise FormerReportError(str(path)) from exc
    if not isinstance(summary, dict):
        raise FormerReportError(str(path))
    return summary


def changes(former: JsonObject, summary: JsonObject) -> list[tuple[str, str, str]]:
    """Return what differs, as name, former value, value now.

    Args:
        former: Summary of the former report.
        summary: Summary of this one.
    """
    before, now = dict(_flat(former)), dict(_flat(summary))
    names = dict.fromkeys([*before, *now])
    told = ((name, before.get(name, "-"), now.get(name, "-")) for name in names)
    return [one for one in told if one[1] != one[2]]


def _flat(summary: JsonObject) -> Iterator[tuple[str, str]]:
    for name in _FIGURES:
        yield name, str(summary.get(name, "-"))
    for claim, broken in _object(summary.get("by_claim")).items():
        yield f"violations of {claim}", str(broken)
    traffic = _object(summary.get("traffic"))
    yield "part of messages by a direct link", _number(traffic.get("share"))
    for way, requests in _object(summary.get("request_s")).items():
        yield f"median request, {way}, seconds", _number(_object(requests).get("median"))
    machines = summary.get("machines")
    for entry in machines if isinstance(machines, list) else ():
        machine = _object(entry)
        of = machine.get("machine")
        yield f"steps of {of}", str(machine.get("steps"))
        for state, dwell in _object(machine.get("dwell_s")).items():
            median = _number(_object(dwell).get("median"))
            yield f"median dwell in {state} of {of}, seconds", median


def _number(value: Json) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}
