"""What a watch found, on a disk: each violation once, after any interruption.

`violations.jsonl` grows by one line for each violation. `progress.json` says up to which round,
and up to which byte of that file, all is written. What stands behind that byte is of a round that
was not finished; it is cut off, and the round is done again by Spark from its checkpoint.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias, final

import attrs

from fsm.judge.trace_line import Verdict
from spark.errors import WatchStateError
from spark.findings import Broken
from spark.report.files import violation_object

__all__ = ["Ledger", "Progress", "Seen"]

SCHEMA: Final = "protofly.watch/1"

_Id: TypeAlias = tuple[str | int | None, ...]
_IDENTITY: Final = ("claim", "run", "node", "ln", "about", "expected", "machine")


@final
@attrs.frozen(kw_only=True)
class Seen:
    """A process, as far as it was judged.

    Attributes:
        unjudged: Why its records are no longer judged, as half a sentence; empty: they are.
    """

    folder: str
    run: str
    node: str
    records: int
    is_running: bool
    unjudged: str


@final
@attrs.define(kw_only=True)
class Progress:
    """How far a watch came.

    Attributes:
        traces: The directory that is watched.
        round: Number of the last round; -1: none yet.
        length: Bytes of `violations.jsonl` up to that round.
        bad: Lines that are no records.
        processes: By folder, run and node.
    """

    traces: str
    round: int = -1
    length: int = 0
    bad: int = 0
    processes: dict[tuple[str, str, str], Seen] = attrs.field(factory=dict)

    @property
    def records(self) -> int:
        """How many records were judged."""
        return sum(one.records for one in self.processes.values())

    @property
    def running(self) -> int:
        """How many processes did not end yet."""
        return sum(one.is_running for one in self.processes.values())

    @property
    def unjudged(self) -> list[Seen]:
        """Processes whose records are no longer judged."""
        return [one for one in self.processes.values() if one.unjudged]


@final
class Ledger:
    """Keeps what was found.

    Attributes:
        progress: How far the watch came.
    """

    def __init__(self, directory: Path, traces: str) -> None:
        """Go on with what is there.

        Args:
            directory: Where the files are; made if it does not exist.
            traces: The directory that is watched.

        Raises:
            WatchStateError: The directory cannot be used, or is of another watch.
        """
        self._file = directory / "violations.jsonl"
        self._place = directory / "progress.json"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self.progress = self._read(traces)
            self._known = set(self._cut_off())
        except (OSError, ValueError, TypeError, KeyError) as exc:
            raise WatchStateError(str(directory), str(exc)) from exc
        if self.progress.traces != traces:
            raise WatchStateError(str(directory), f"it is of a watch of {self.progress.traces}")

    @property
    def violations(self) -> int:
        """How many claims are broken so far."""
        return len(self._known)

    @property
    def verdict(self) -> Verdict:
        """The verdict so far. What the ends of processes decide together is open to the end."""
        if self._known:
            return Verdict.VIOLATIONS
        is_damaged = self.progress.bad or self.progress.unjudged
        return Verdict.INCOMPLETE if is_damaged else Verdict.OPEN

    def add(
        self,
        number: int,
        violations: Iterable[Broken],
        processes: Iterable[Seen] = (),
        bad: int = 0,
    ) -> list[Broken]:
        """Write down a round; one that was written down before changes nothing.

        Args:
            number: Of the round.
            violations: Claims that are broken.
            processes: Those that recorded something.
            bad: New lines that are no records.

        Returns:
            The violations that were not known.
        """
        progress = self.progress
        if number <= progress.round:
            return []
        new = {_identity(one): one for one in violations if _identity(one) not in self._known}
        objects = map(violation_object, new.values())
        text = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in objects)
        with self._file.open("ab") as file:
            file.truncate(progress.length)
            progress.length += file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        self._known.update(new)
        progress.round, progress.bad = number, progress.bad + bad
        for one in processes:
            progress.processes[one.folder, one.run, one.node] = one
        self._write()
        return [*new.values()]

    def _read(self, traces: str) -> Progress:
        if not self._place.exists():
            return Progress(traces=traces)
        kept = json.loads(self._place.read_bytes())
        processes = [Seen(**one) for one in kept.pop("processes")]
        del kept["schema"], kept["verdict"]
        by_name = {(one.folder, one.run, one.node): one for one in processes}
        return Progress(**kept, processes=by_name)

    def _write(self) -> None:
        kept = attrs.asdict(self.progress, recurse=False)
        kept["verdict"] = self.verdict.value
        kept["processes"] = [attrs.asdict(one) for one in self.progress.processes.values()]
        new = self._place.with_suffix(".new")
        with new.open("w", encoding="utf-8") as file:
            json.dump({"schema": SCHEMA, **kept}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._place)

    def _cut_off(self) -> Iterator[_Id]:
        """Drop what an unfinished round wrote; yield which violations are left."""
        self._file.touch()
        os.truncate(self._file, self.progress.length)
        with self._file.open("rb") as file:
            for line in file:
                known = json.loads(line)
                yield tuple(known.get(name) for name in _IDENTITY)


def _identity(broken: Broken) -> _Id:
    machine = None if broken.step is None else broken.step.machine
    return (
        broken.claim, broken.run, broken.node, broken.ln, broken.about, broken.expected, machine
    )  # fmt: skip
