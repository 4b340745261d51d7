"""What must hold at the end of a run, judged by what runtimes saw and by their traces."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from specs.reply_code import Code

_LONG: Final = 1000
"""Milliseconds in which nearly all requests have to be answered while nodes restart."""


@attrs.frozen
class Seen:
    """What all runtimes have seen.

    Attributes:
        open: Tasks that have not ended.
        codes: By request, the code of its answer; 0: there is none so far.
        took: Milliseconds until each answer.
        asked: By request, how often a hyperty got it.
        things: By URL, the value of each object at its reporter.
        copies: By runtime, what it has of each object.
    """

    open: int
    codes: dict[str, int]
    took: list[int]
    asked: Counter[str]
    things: dict[str, object]
    copies: dict[str, dict[str, object]]


def seen_of(reports: Sequence[dict]) -> Seen:
    """Join what the processes with runtimes have reported."""
    seen = Seen(sum(one["open"] for one in reports), {}, [], Counter(), {}, {})
    for one in (one for report in reports for one in report["seen"]):
        seen.codes.update(one["codes"])
        seen.took.extend(one["took"])
        seen.asked.update(one["asked"])
        seen.things.update(one["things"])
        seen.copies.update(one["copies"])
    return seen


def differences(seen: Seen) -> Iterator[str]:
    """Say what is not settled: requests without answers, and copies that are not as the object."""
    if seen.open:
        yield f"{seen.open} requests are not over"
    for runtime, copies in seen.copies.items():
        for url, value in copies.items():
            if value != seen.things[url]:
                yield f"{runtime} has {value} of {url}, which is {seen.things[url]}"
    lost = [one for one in _accepted(seen) if not seen.asked[one]]
    if lost:
        yield f"{len(lost)} durable requests that were accepted have not come: {lost[0]}"


def _accepted(seen: Seen) -> Iterator[str]:
    for number, code in seen.codes.items():
        if number.startswith("d/") and code == Code.ACCEPTED:
            yield number


def broken(seen: Seen) -> Iterator[str]:
    """Say what must not be, at whatever time: requests that came twice, or not and are answered."""
    for number, times in seen.asked.items():
        if times > 1:
            yield f"request {number} came {times} times"
    for number, code in seen.codes.items():
        if code == Code.OK and not seen.asked[number]:
            yield f"request {number} was answered and had not come"


def unanswered(seen: Seen) -> Iterator[str]:
    """Name what an orderly restart of nodes may not cause: refusals, and slow answers."""
    refused = Counter(code for code in seen.codes.values() if code not in {Code.OK, Code.ACCEPTED})
    for code, times in refused.items():
        yield f"{times} requests were answered with {code}"
    if lasted(seen, 99) >= _LONG:
        yield f"one request of a hundred took {lasted(seen, 99)} ms or more"


def lasted(seen: Seen, percent: float) -> int:
    """Return the milliseconds within which so many of a hundred requests were answered."""
    times = sorted(seen.took)
    return times[min(len(times) - 1, int(len(times) * percent / 100))] if times else 0


def unexplained(findings, killed: Sequence[Path], runs: dict[str, Path]) -> Iterator[str]:
    """Say what judges found, except that the traces of killed nodes end early.

    Args:
        findings: What Spark found.
        killed: Directories of the traces of lives that were killed.
        runs: By run, the directory of its trace.
    """
    for claim, times in findings.by_claim.items():
        if times:
            yield f"claim {claim} is broken {times} times"
    for one in findings.first:
        yield f"  {one.claim} at {one.node}, record {one.ln}: {one.about}: expected {one.expected}"
    excused = {run for run, place in runs.items() if place in killed}
    for node in findings.nodes:
        if node.flaws and node.run not in excused:
            yield f"the trace of {node.node} lacks records: {', '.join(sorted(node.flaws))}"
    for gap in findings.gaps:
        if gap.run not in excused:
            yield f"trace of {gap.node}, record {gap.ln}: {gap.reason}"
