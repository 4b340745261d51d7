"""What the policy engine found, in words and as JSON."""

from collections.abc import Iterator
from typing import Final

import attrs

from fsm.policy.explain import Explanation, Finding, Seen
from fsm.policy.request import Value
from fsm.policy.terms import Result
from specs.jsonvalue import Json, JsonObject

__all__ = ["explanation_json", "explanation_lines"]

_HOLDS: Final = {True: "true", False: "false", None: "cannot be known"}


def explanation_lines(told: Explanation) -> Iterator[str]:
    """Tell which rule decided and why, one line after the other."""
    verdict = told.verdict
    if verdict.result is Result.NOT_APPLICABLE:
        yield f"{told.effective}: nothing applies, so the default holds"
    else:
        why = f": {verdict.why}" if verdict.why else ""
        yield f"{told.effective}, because {verdict.path} says {verdict.result}{why}"
    for name, why in told.missing.items():
        yield f"{name} cannot be had: {why}"
    for task in verdict.tasks:
        kind = "advice" if task.is_advice else "obligation"
        what = " ".join(part for part in (task.do, task.name, task.text) if part)
        yield f"{kind} {task.when}: {what}"
    for finding in told.findings:
        yield from _finding_lines(finding)


def _finding_lines(finding: Finding) -> Iterator[str]:
    indent = "  " * finding.path.count("/")
    other = "" if finding.is_addressed else " (for the other direction)"
    yield f"{indent}{finding.path}: {finding.result}{other}"
    for part, seen in (("target", finding.target), ("condition", finding.condition)):
        if seen is not None:
            yield from _seen_lines(seen, indent + "  ", part)


def _seen_lines(seen: Seen, indent: str, part: str = "") -> Iterator[str]:
    name = f"{part}: " if part else ""
    is_leaf = not seen.parts and seen.value is not None
    value = f" ({_plain(seen.value)!r})" if is_leaf and seen.value is not None else ""
    yield f"{indent}{name}{seen.text}: {_HOLDS[seen.outcome]}{value}"
    for one in seen.parts:
        yield from _seen_lines(one, indent + "  ")


def explanation_json(told: Explanation) -> JsonObject:
    """Return the same as an object; lists of roles are sorted."""
    verdict = told.verdict
    return {
        "decision": str(told.effective),
        "result": str(verdict.result),
        "policy": verdict.path or "default",
        "why": verdict.why,
        "missing": dict(told.missing),
        "tasks": [{**attrs.asdict(task), "when": str(task.when)} for task in verdict.tasks],
        "findings": [_finding_json(one) for one in told.findings],
    }


def _finding_json(finding: Finding) -> Json:
    return {
        "path": finding.path,
        "result": str(finding.result),
        "addressed": finding.is_addressed,
        "target": None if finding.target is None else _seen_json(finding.target),
        "condition": None if finding.condition is None else _seen_json(finding.condition),
    }


def _seen_json(seen: Seen) -> Json:
    return {
        "text": seen.text,
        "outcome": seen.outcome,
        "value": None if seen.value is None else _plain(seen.value),
        "parts": [_seen_json(one) for one in seen.parts],
    }


def _plain(value: Value) -> Json:
    if not isinstance(value, frozenset):
        return value
    listed: list[Json] = [*sorted(value)]
    return listed
