"""One verdict of all runs together.

Machines are judged by `fsm.judge.replay`, messages by `fsm.judge.claims`; what the traces do not
tell, `fsm.judge.missing` finds.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import final

import attrs

from fsm.judge import claims, replay
from fsm.judge.claims import Finding
from fsm.judge.claims.told import read_trace
from fsm.judge.missing import Missing, missing
from fsm.judge.trace_line import TraceLine, Verdict

__all__ = ["RunJudgement", "judge_run"]


@final
@attrs.frozen(slots=True)
class RunJudgement:
    """What is judged of a run.

    Attributes:
        verdict: `violations` if a machine or a claim is broken; else `incomplete` if the
            traces do not tell all; else `conformant`.
        machines: What is judged of the machines, and which traces have flaws.
        findings: Which claims are broken, by what.
        missing: What the traces do not tell.
    """

    verdict: Verdict
    machines: replay.Judgement
    findings: tuple[Finding, ...]
    missing: tuple[Missing, ...] = ()

    @property
    def by_claim(self) -> Mapping[str, int]:
        """How often each claim is broken; those that are kept are left out."""
        return Counter(finding.claim for finding in self.findings)


def judge_run(
    records: Iterable[TraceLine], quarantined: int = 0, untraced: Collection[str] = ()
) -> RunJudgement:
    """Judge the traces of all processes that took part, of all their runs.

    Args:
        records: In any order.
        quarantined: How many lines could not be read.
        untraced: Addresses or domains of participants that are known to keep no trace.
    """
    told = list(records)
    machines, findings = replay.judge(told, quarantined), claims.judge(told)
    lacking = missing(read_trace(told), untraced)
    verdict = Verdict.VIOLATIONS if findings else machines.verdict
    if lacking and verdict is Verdict.CONFORMANT:
        verdict = Verdict.INCOMPLETE
    return RunJudgement(verdict, machines, findings, lacking)
