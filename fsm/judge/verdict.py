"""One verdict of all runs together.

Each process is judged by itself (`fsm.judge.process`): its machines, its claims, and what is
missing in its trace. What needs several processes is judged by what they hand over.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby
from types import MappingProxyType
from typing import Final

import attrs

from fsm.judge import process, replay, trace_files
from fsm.judge.claims.fold import Finding
from fsm.judge.crossings import Skew, skews
from fsm.judge.replay import order_of
from fsm.judge.trace_line import TraceLine, Verdict
from fsm.machine_list import MACHINES
from fsm.table import Table
from specs.addresses.address import is_node
from specs.claims import CLAIMS


@attrs.frozen(slots=True)
class RunJudgement:
    """The judgement of a run.

    Attributes:
        verdict: `violations` if a machine or a claim is broken; else `incomplete` if the
            traces are incomplete; else `conformant`.
        machines: What is judged of the machines, and which traces have flaws.
        findings: Which claims are broken, by what.
        missing: What the traces lack.
        skews: How far apart the clocks are, by run and node, as far as it is known.
    """

    verdict: Verdict
    machines: replay.Judgement
    findings: tuple[Finding, ...]
    missing: tuple[trace_files.Missing, ...] = ()
    skews: Mapping[tuple[str, str], Skew] = MappingProxyType({})

    @property
    def by_claim(self) -> Mapping[str, int]:
        """Violations of each broken claim."""
        return Counter(finding.claim for finding in self.findings)


def judge(
    records: Iterable[TraceLine],
    quarantined: int = 0,
    machines: Mapping[str, Table] = MACHINES,
) -> replay.Judgement:
    """Judge the machines of a trace alone.

    Args:
        records: Of any number of nodes, in any order.
        quarantined: How many lines could not be read.
        machines: What to judge by.
    """
    nodes: list[replay.NodeJudgement] = []
    entities: list[replay.EntityJudgement] = []
    in_order = sorted(records, key=order_of)
    for (run, node), lines in groupby(in_order, key=lambda one: (one.run, one.node)):
        gaps, steps = trace_files.Gaps(run, node), replay.Machines(run, node, machines)
        for record in lines:
            gaps.take(record)
            steps.take(record)
        nodes.append(gaps.judgement())
        entities += steps.end(nodes[-1])
    return replay.judgement_of(nodes, entities, quarantined)


def judge_run(
    records: Iterable[TraceLine],
    quarantined: int = 0,
    untraced: Collection[str] = (),
    manifest: trace_files.Manifest | None = None,
) -> RunJudgement:
    """Judge the traces of all processes that took part, of all their runs.

    Args:
        records: In any order.
        quarantined: How many lines could not be read.
        untraced: Addresses or domains of participants that are known to keep no trace.
        manifest: The participants; None: unknown.
    """
    in_order = sorted(records, key=order_of)
    processes = judge_processes(lambda: in_order, is_sorted=True)
    return combine(processes, quarantined, untraced, manifest)


@attrs.frozen
class FolderJudgement:
    """The judgement of files in one folder, mostly those of one process.

    Attributes:
        reading: What was found in the files.
        processes: What is judged of each process by itself, in the order of their names.
    """

    reading: trace_files.Reading
    processes: Sequence[process.ProcessJudgement]


def judge_folders(folders: Iterable[Sequence[trace_files.Part]]) -> list[FolderJudgement]:
    """Judge the processes of several folders.

    Folders with records of the same process, for example copies, are judged as one folder.

    Args:
        folders: The files of each.

    Raises:
        TraceFileError: A file cannot be read.
    """
    parts = [tuple(folder) for folder in folders]
    judged = [judge_folder(files) for files in parts]
    writers = [[(each.node.run, each.node.node) for each in folder.processes] for folder in judged]
    for together in find_shared(writers):
        files = [file for at in sorted(together) for file in parts[at]]
        judged[min(together)] = judge_folder(files)
        for at in together - {min(together)}:
            judged[at] = judge_folder(())
    return judged


def judge_folder(parts: Iterable[trace_files.Part]) -> FolderJudgement:
    """Judge the processes whose records stand in some files.

    The records are folded while they are read. If those of a process are not in order, the files
    are read again, in order; also if a process says late what it is.

    Args:
        parts: The files.

    Raises:
        TraceFileError: A file cannot be read.
    """
    reading = trace_files.Reading(parts)
    try:
        processes = judge_processes(reading.records, is_sorted=False)
    except process.DisorderError:
        processes = judge_processes(reading.sorted, is_sorted=True)
    return FolderJudgement(reading, processes)


def find_shared(writers: Sequence[Iterable[tuple[str, str]]]) -> list[set[int]]:
    """Return which folders have records of the same process, as sets of their places.

    Args:
        writers: Run and node of each process that a folder has records of, folder by folder.
    """
    groups = {at: {at} for at in range(len(writers))}
    group_of = [*groups]
    first: dict[tuple[str, str], int] = {}
    for at, names in enumerate(writers):
        for name in names:
            other, own = group_of[first.setdefault(name, at)], group_of[at]
            if other != own:
                for member in groups[own]:
                    group_of[member] = other
                groups[other] |= groups.pop(own)
    return [places for places in groups.values() if len(places) > 1]


def judge_processes(
    records: Callable[[], Iterable[TraceLine]], *, is_sorted: bool
) -> list[process.ProcessJudgement]:
    """Judge each process by itself, in the order of their names.

    Args:
        records: Returns the records; called again if one says late that its process is a runtime.
        is_sorted: Whether the records come in their order, process by process. If not, those of
            one process have to.

    Raises:
        DisorderError: The records of a process do not come in order.
    """
    homes: dict[tuple[str, str], str] = {}
    while True:
        judges: dict[tuple[str, str], process.ProcessJudge] = {}
        try:
            for record in records():
                at = record.run, record.node
                judge = judges.get(at)
                if judge is None:
                    judge = process.ProcessJudge(*at, homes.get(at), is_sorted=is_sorted)
                    judges[at] = judge
                judge.take(record)
        except process.LateHomeError as late:
            homes[late.process] = late.home
        else:
            return [judge.end() for _, judge in sorted(judges.items())]


def combine(
    processes: Sequence[process.ProcessJudgement],
    quarantined: int = 0,
    untraced: Collection[str] = (),
    manifest: trace_files.Manifest | None = None,
) -> RunJudgement:
    """Judge processes together that were judged one by one.

    Args:
        processes: Their judgements, in the order of their names.
        quarantined: Number of lines that are no records.
        untraced: Participants that have no trace, and need none.
        manifest: The participants; None: unknown.
    """
    summaries = [each.summary for each in processes]
    entities = [entity for each in processes for entity in each.entities]
    machines = replay.judgement_of([each.node for each in processes], entities, quarantined)
    lost = trace_files.unsent(summaries)
    evidence = (item for each in processes for item in each.evidence)
    across = process.judge_across(evidence, processes_whole(summaries) - set(lost))
    findings = in_order([*(found for each in processes for found in each.findings), *across])
    lacking = [gap for each in processes for gap in (*each.missing, *each.unanswered)]
    lacking += lost.values()
    lacking += trace_files.untraced_participants(summaries, untraced, manifest)
    verdict = Verdict.VIOLATIONS if findings else machines.verdict
    if lacking and verdict is Verdict.CONFORMANT:
        verdict = Verdict.INCOMPLETE
    clocks = skews({(summary.run, summary.node): summary.crossings for summary in summaries})
    return RunJudgement(verdict, machines, findings, tuple(lacking), clocks)


def processes_whole(processes: Sequence[trace_files.ProcessSummary]) -> AbstractSet[str | None]:
    """Return the processes of whose lives, however often they began anew, nothing is missing.

    None stands for all message nodes together. Nodes are there by their addresses, too, and those
    of groups by their ids.
    """
    return _names(processes) - _names([each for each in processes if not each.is_whole])


def _names(processes: Sequence[trace_files.ProcessSummary]) -> set[str | None]:
    names: set[str | None] = {each.home for each in processes}
    names.update(each.member for each in processes if each.member)
    itself = (who for each in processes for who in each.itself)
    return names.union(filter(is_node, itself))


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings by claim, in the order of the catalogue, then by record."""
    return tuple(sorted(findings, key=lambda found: (_RANK[found.claim], found)))


_RANK: Final = {claim: rank for rank, claim in enumerate(CLAIMS)}
