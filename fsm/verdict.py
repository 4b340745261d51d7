"""One verdict of a whole run: its machines (`fsm.replay`) and its messages (`fsm.claims`)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import final

import attrs

from fsm import claims, replay
from fsm.claims import Finding
from fsm.trace_line import TraceLine, Verdict

__all__ = ["RunJudgement", "judge_run"]


@final
@attrs.frozen(slots=True)
class RunJudgement:
    """What is judged of a run.

    Attributes:
        verdict: `violations` if a machine or a claim is broken; else `incomplete` if the
            trace does not tell all; else `conformant`.
        machines: What is judged of the machines, and which traces have flaws.
        findings: Which claims are broken, by what.
    """

    verdict: Verdict
    machines: replay.Judgement
    findings: tuple[Finding, ...]

    @property
    def by_claim(self) -> Mapping[str, int]:
        """How often each claim is broken; those that are kept are left out."""
        return Counter(finding.claim for finding in self.findings)


def judge_run(records: Iterable[TraceLine], quarantined: int = 0) -> RunJudgement:
    """Judge the traces of all processes of a run.

    Args:
        records: In any order.
        quarantined: How many lines could not be read.
    """
    told = list(records)
    machines, findings = replay.judge(told, quarantined), claims.judge(told)
    verdict = Verdict.VIOLATIONS if findings else machines.verdict
    return RunJudgement(verdict, machines, findings)
