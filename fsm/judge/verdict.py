"""Verdict on all runs together, combined from the judgements of single processes.

Each process is judged alone (`fsm.judge.process`): its machines, its claims, and the records that
are missing in its trace. Claims that need several processes are judged by the evidence that each
process provides.
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
    """Verdict on the traces of all processes, with all violations and missing records.

    Attributes:
        verdict: `violations` if a machine or a claim is broken; else `incomplete` if the
            traces are incomplete; else `conformant`.
        machines: The judgement of the machines; it also says which traces have flaws.
        findings: The violations of claims.
        missing: The records and traces that are missing.
        skews: The differences of clocks, by run and node, as far as they are known.
    """

    verdict: Verdict
    machines: replay.Judgement
    findings: tuple[Finding, ...]
    missing: tuple[trace_files.Missing, ...] = ()
    skews: Mapping[tuple[str, str], Skew] = MappingProxyType({})

    @property
    def by_claim(self) -> Mapping[str, int]:
        """Number of violations of each violated claim."""
        return Counter(finding.claim for finding in self.findings)


def judge(
    records: Iterable[TraceLine],
    quarantined: int = 0,
    machines: Mapping[str, Table] = MACHINES,
) -> replay.Judgement:
    """Judge only the state machine transitions of a trace, without other claims.

    Args:
        records: Records of any number of nodes, in any order.
        quarantined: Number of lines that could not be read.
        machines: The tables to judge by.
    """
    nodes: list[replay.NodeJudgement] = []
    entities: list[replay.EntityJudgement] = []
    in_order = sorted(records, key=order_of)
    for (run, node), lines in groupby(in_order, key=lambda line: (line.run, line.node)):
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
        records: Records in any order.
        quarantined: Number of lines that could not be read.
        untraced: Addresses or domains of participants that are known to keep no trace.
        manifest: The participants; None: unknown.
    """
    in_order = sorted(records, key=order_of)
    processes = judge_processes(lambda: in_order, is_sorted=True)
    return combine(processes, quarantined, untraced, manifest)


@attrs.frozen
class FolderJudgement:
    """Judgements of the processes whose trace files are in one folder.

    Attributes:
        reading: The files, with the bad lines that were found in them.
        processes: The judgement of each process by itself, sorted by name.
    """

    reading: trace_files.Reading
    processes: Sequence[process.ProcessJudgement]


def judge_folders(folders: Iterable[Sequence[trace_files.Part]]) -> list[FolderJudgement]:
    """Judge the processes of several folders, each folder once.

    Folders with records of the same process, for example copies, are judged as one folder.

    Args:
        folders: The files of each folder.

    Raises:
        TraceFileError: A file cannot be read.
    """
    parts = [tuple(folder) for folder in folders]
    judged = [judge_folder(files) for files in parts]
    writers = [[(each.node.run, each.node.node) for each in folder.processes] for folder in judged]
    for indices in find_shared(writers):
        files = [file for index in sorted(indices) for file in parts[index]]
        judged[min(indices)] = judge_folder(files)
        for index in indices - {min(indices)}:
            judged[index] = judge_folder(())
    return judged


def judge_folder(parts: Iterable[trace_files.Part]) -> FolderJudgement:
    """Judge the processes whose records are in some files.

    The records are judged while they are read. If the records of a process are not in order, or say
    late that it is a runtime, the files are read again, in order.

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
    """Return groups of folders, by index, that have records of the same process.

    Args:
        writers: Run and node of each process that a folder has records of, folder by folder.
    """
    groups = {index: {index} for index in range(len(writers))}
    group_of = [*groups]
    first: dict[tuple[str, str], int] = {}
    for index, names in enumerate(writers):
        for name in names:
            other_group, own_group = group_of[first.setdefault(name, index)], group_of[index]
            if other_group != own_group:
                for member in groups[own_group]:
                    group_of[member] = other_group
                groups[other_group] |= groups.pop(own_group)
    return [indices for indices in groups.values() if len(indices) > 1]


def judge_processes(
    records: Callable[[], Iterable[TraceLine]], *, is_sorted: bool
) -> list[process.ProcessJudgement]:
    """Judge each process alone and return the judgements, sorted by name.

    Args:
        records: Returns the records; called again if a record says late that its process is a
            runtime.
        is_sorted: Whether the records are sorted process by process. If not, the records of one
            process must still come in order.

    Raises:
        DisorderError: The records of a process do not come in order.
    """
    homes: dict[tuple[str, str], str] = {}
    while True:
        judges: dict[tuple[str, str], process.ProcessJudge] = {}
        try:
            for record in records():
                name = record.run, record.node
                judge = judges.get(name)
                if judge is None:
                    judge = process.ProcessJudge(*name, homes.get(name), is_sorted=is_sorted)
                    judges[name] = judge
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
    """Combine the judgements of single processes into the judgement of all runs.

    Args:
        processes: The judgements, sorted by the names of the processes.
        quarantined: Number of lines that are no records.
        untraced: Participants that are known to keep no trace.
        manifest: The participants; None: unknown.
    """
    summaries = [each.summary for each in processes]
    entities = [entity for each in processes for entity in each.entities]
    machines = replay.judgement_of([each.node for each in processes], entities, quarantined)
    lost = trace_files.unsent(summaries)
    evidence = (item for each in processes for item in each.evidence)
    across = process.judge_across(evidence, whole_processes(summaries) - set(lost))
    findings = in_order([*(finding for each in processes for finding in each.findings), *across])
    lacking = [gap for each in processes for gap in (*each.missing, *each.unanswered)]
    lacking += lost.values()
    lacking += trace_files.untraced_participants(summaries, untraced, manifest)
    verdict = Verdict.VIOLATIONS if findings else machines.verdict
    if lacking and verdict is Verdict.CONFORMANT:
        verdict = Verdict.INCOMPLETE
    clocks = skews({(summary.run, summary.node): summary.crossings for summary in summaries})
    return RunJudgement(verdict, machines, findings, tuple(lacking), clocks)


def whole_processes(processes: Sequence[trace_files.ProcessSummary]) -> AbstractSet[str | None]:
    """Return the processes whose traces, over all their runs, are complete.

    None stands for all message nodes together. Nodes are listed by their addresses, too, and the
    nodes of groups by their ids.
    """
    return _names(processes) - _names([each for each in processes if not each.is_whole])


def _names(processes: Sequence[trace_files.ProcessSummary]) -> set[str | None]:
    names: set[str | None] = {each.home for each in processes}
    names.update(each.member for each in processes if each.member)
    itself = (who for each in processes for who in each.itself)
    return names.union(filter(is_node, itself))


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings sorted by claim, in the order of the catalogue, then by record."""
    return tuple(sorted(findings, key=lambda finding: (_RANK[finding.claim], finding)))


_RANK: Final = {claim: rank for rank, claim in enumerate(CLAIMS)}
