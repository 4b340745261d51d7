"""Fast check of the claims about state machines, by columns of many records at once.

All transitions of a batch are checked together. An entity with an undeclared, refused or misplaced
transition, or with a last state that is not final, is suspect: `fsm.judge.replay` checks all its
transitions one by one, and decides about violations. If a record is missing, dropped, doubled, out
of order or unreadable, or processes are mixed, the fast check is impossible (`UndecidedError`), and
`fsm.judge.verdict.judge_folder` checks the folder.

Between batches, the present state of each entity is kept, and the time of its last transition.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias, TypeVar

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from fsm.judge import replay
from fsm.judge.process import ProcessJudgement
from fsm.judge.trace_files import Gaps, Part, ProcessSummary
from fsm.judge.trace_line import Flaw, TraceLine
from fsm.machine_list import MACHINES
from spark.workers.columns import BLOCK, ROWS, Batch, UndecidedError, batches_of, records_about
from specs.trace import ABSENT, Kind, Op

_Codes: TypeAlias = npt.NDArray[np.int64]
_Times: TypeAlias = npt.NDArray[np.float64]
_Flags: TypeAlias = npt.NDArray[np.bool_]
_N = TypeVar("_N", np.int64, np.float64)

_WORD_BITS: Final = 12
_WORDS: Final = 1 << _WORD_BITS
"""Maximum number of different words (machines, states, triggers) in the trace of a process."""

_KEY_BITS: Final = 31
_ROW_BITS: Final = (ROWS - 1).bit_length()
_STAY_BITS: Final = 17
_STAY_ZERO: Final = 1 << 12
_NOWHERE: Final = -1
"""Number that stands for the state of an entity without a recorded transition."""


def screen_machines(parts: Sequence[Part], size: int = BLOCK) -> ProcessJudgement:
    """Check the state machines of a process by columns.

    Args:
        parts: The files of its folder.
        size: Bytes of lines that are read at a time.

    Raises:
        TraceFileError: A file cannot be read.
        UndecidedError: The process has to be judged record by record.
    """
    screen: _Screen | None = None
    for part in parts:
        is_empty = True
        for run, node, columns in batches_of(part, size):
            if len(columns):
                screen = screen or _Screen(run, node)
                screen.take((run, node, columns))
                is_empty = False
        if is_empty:
            raise UndecidedError(f"{part.name} has no records")
    if screen is None:
        raise UndecidedError("there is no file")
    return screen.end(parts)


class _Words:
    """Numbering of the words in a trace: names of state machines, states and triggers."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, word: str) -> int:
        """Return the number of a word; a new word gets the next number.

        Raises:
            UndecidedError: There are too many words.
        """
        place = self._places.setdefault(word, len(self.all))
        if place == len(self.all):
            if place == _WORDS:
                raise UndecidedError("there are too many words")
            self.all.append(word)
        return place

    def places(self, column: pa.DictionaryArray, rows: _Codes) -> _Codes:
        """Return the numbers of the words in some rows of a column."""
        codes, words = _codes(column, rows), column.dictionary
        is_there = np.zeros(len(words), np.bool_)
        is_there[codes] = True
        places = np.zeros(len(words), np.int64)
        for code in np.flatnonzero(is_there).tolist():
            places[code] = self.place(words[code].as_py())
        return places[codes]


def _codes(column: pa.DictionaryArray, rows: _Codes) -> _Codes:
    """Return the indices of a column into its dictionary."""
    if not len(rows):
        return np.zeros(0, np.int64)
    codes: _Codes = column.indices.fill_null(_NOWHERE).to_numpy()[rows].astype(np.int64)
    if codes.min() < 0:
        raise UndecidedError("a field is missing")
    return codes


def _equal(column: pa.DictionaryArray, word: str) -> _Flags:
    """Return, for each row of a column, whether its value is a given word."""
    is_it = np.array([each == word for each in column.dictionary.to_pylist()] + [False])
    codes = column.indices.fill_null(len(is_it) - 1).to_numpy()
    rows: _Flags = is_it[codes]
    return rows


class _Entities:
    """The entities of one state machine: their present states, and which of them are suspect.

    Attributes:
        suspects: Keys of the entities that have to be replayed.
    """

    def __init__(self, machine: str, words: _Words) -> None:
        self._is_declared = machine in MACHINES
        self._words = words
        self._absent = words.place(ABSENT)
        self._rests = np.zeros(_WORDS, np.bool_)
        if self._is_declared:
            self._rests[[words.place(state.value) for state in MACHINES[machine].may_end]] = True
        self._places: dict[str, int] = {}
        self._states = np.full(1, _NOWHERE, np.int64)
        self._since = np.zeros(1, np.float64)
        self._stays: Counter[int] = Counter()
        self.suspects: set[str] = set()

    def __len__(self) -> int:
        return len(self._places)

    def add_suspect(self, key: str) -> None:
        """Mark an entity as suspect, after an undeclared step."""
        self._codes_of([key])
        self.suspects.add(key)

    def _codes_of(self, keys: Sequence[str]) -> _Codes:
        known = self._places
        places = [known.setdefault(key, len(known)) for key in keys]
        more = len(known) - len(self._states)
        if more > 0:
            more += len(known)
            self._states = np.append(self._states, np.full(more, _NOWHERE, np.int64))
            self._since = np.append(self._since, np.zeros(more, np.float64))
        return np.array(places, np.int64)

    def take(self, keys: Sequence[str], heads: _Codes, steps: "_Steps") -> None:
        """Process transitions, which are grouped by entity.

        Args:
            keys: Keys of the entities.
            heads: Index of the first transition of each entity.
            steps: The transitions.
        """
        places = self._codes_of(keys)
        before = _previous(steps.new, heads, self._states[places])
        since = _previous(steps.t, heads, self._since[places])
        is_new = steps.old == self._absent
        is_first = before == _NOWHERE
        is_next = (steps.old == before) | (is_new & self._rests[before])
        is_right = np.where(is_first, is_new, is_next) & steps.is_declared
        wrong = np.searchsorted(heads, np.flatnonzero(~is_right), side="right") - 1
        self.suspects.update(keys[place] for place in set(wrong.tolist()))
        self._count(before[~is_first], (steps.t - since)[~is_first])
        tails = np.append(heads[1:], len(steps.new)) - 1
        self._states[places] = steps.new[tails]
        self._since[places] = steps.t[tails]

    def _count(self, states: _Codes, times: _Times) -> None:
        codes, counts = np.unique((states << _STAY_BITS) + _stays(times), return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            self._stays[code] += count

    def stays(self) -> Iterator[tuple[str, int, int]]:
        """Yield how long entities stayed in states: state, class of duration, count."""
        for code, count in self._stays.items():
            state, stay = divmod(code, 1 << _STAY_BITS)
            yield self._words.all[state], stay - _STAY_ZERO, count

    def end(self) -> None:
        """Mark the entities as suspect that are in no final state."""
        if not self._is_declared:
            return
        states = self._states[: len(self._places)]
        restless = np.flatnonzero((states != _NOWHERE) & ~self._rests[states])
        if len(restless):
            keys = [*self._places]
            self.suspects.update(keys[place] for place in restless.tolist())


@attrs.frozen(eq=False)
class _Steps:
    """Columns of transitions, with words as numbers.

    Attributes:
        is_declared: Whether the state machine declares each transition.
    """

    old: _Codes
    new: _Codes
    t: _Times
    is_declared: _Flags

    def at(self, rows: _Codes) -> "_Steps":
        """Return the transitions at some rows."""
        return _Steps(self.old[rows], self.new[rows], self.t[rows], self.is_declared[rows])


class _Screen:
    """Checks the batches of a process, and determines the entities that are suspect."""

    def __init__(self, run: str, node: str) -> None:
        self._process = run, node
        self._gaps = Gaps(run, node)
        self._words = _Words()
        self._used: Counter[tuple[str, str, str, str]] = Counter()
        self._machines: dict[int, _Entities] = {}
        self._last: tuple[int, str] = (0, "")

    def take(self, batch: Batch) -> None:
        """Process the next records.

        Raises:
            UndecidedError: The columns do not decide.
        """
        *process, columns = batch
        if tuple(process) != self._process:
            raise UndecidedError("there are records of several processes")
        self._number(columns)
        is_state = _equal(columns.column("k"), Kind.STATE)
        op = columns.column("op")
        self._step(columns, np.flatnonzero(is_state & _equal(op, Op.STEP)))
        self._refuse(columns, np.flatnonzero(is_state & _equal(op, Op.REFUSED)))

    def _number(self, columns: pa.RecordBatch) -> None:
        numbers, kinds, (last, _) = columns.column("ln"), columns.column("k"), self._last
        if numbers.null_count or kinds.null_count or columns.column("t").null_count:
            raise UndecidedError("a field is missing")
        lns = numbers.to_numpy()
        if lns[0] != last + 1 or (np.diff(lns) != 1).any():
            raise UndecidedError("the numbers of the records are not 1, 2, 3, ...")
        if _equal(kinds, Kind.DROPPED).any():
            raise UndecidedError("records were dropped")
        if not last:
            self._gaps.take(self._record(1, kinds[0].as_py()))
        self._last = int(lns[-1]), kinds[-1].as_py()

    def _record(self, ln: int, kind: str) -> TraceLine:
        return TraceLine(*self._process, ln, kind)

    def _step(self, columns: pa.RecordBatch, rows: _Codes) -> None:
        if not len(rows):
            return
        machine, old, cause, new = (
            self._words.places(columns.column(name), rows)
            for name in ("machine", "old", "cause", "new")
        )
        key = columns.column("key")
        codes = ((machine << _WORD_BITS | old) << _WORD_BITS | cause) << _WORD_BITS | new
        steps = _Steps(old, new, columns.column("t").to_numpy()[rows], self._count_declared(codes))
        in_order = (machine << _KEY_BITS | _codes(key, rows)) << _ROW_BITS | np.arange(len(rows))
        in_order.sort()
        steps = steps.at(in_order & ROWS - 1)
        at = in_order >> _ROW_BITS
        heads = np.flatnonzero(np.append(True, at[1:] != at[:-1]))
        entities = at[heads]
        keys = key.dictionary.take(pa.array(entities & (1 << _KEY_BITS) - 1)).to_pylist()
        machines, since = np.unique(entities >> _KEY_BITS, return_index=True)
        bounds = [*since.tolist(), len(heads)]
        for place, first, end in zip(machines.tolist(), bounds[:-1], bounds[1:], strict=True):
            begin, until = heads[first], heads[end] if end < len(heads) else len(rows)
            own = steps.at(np.arange(begin, until))
            self._of(place).take(keys[first:end], heads[first:end] - begin, own)

    def _count_declared(self, codes: _Codes) -> _Flags:
        """Count transitions by kind, and return which of them are declared."""
        distinct, counts = np.unique(codes, return_counts=True)
        illegal = []
        for code, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            machine, old, cause, new = (
                self._words.all[code >> shift & _WORDS - 1]
                for shift in range(3 * _WORD_BITS, -1, -_WORD_BITS)
            )
            self._used[machine, old, cause, new] += count
            table = MACHINES.get(machine)
            if table is None or new not in table.targets(old, cause):
                illegal.append(code)
        return np.isin(codes, illegal, invert=True) if illegal else np.ones(len(codes), np.bool_)

    def _refuse(self, columns: pa.RecordBatch, rows: _Codes) -> None:
        machines = self._words.places(columns.column("machine"), rows)
        key = columns.column("key")
        for place, code in zip(machines.tolist(), _codes(key, rows).tolist(), strict=True):
            self._of(place).add_suspect(key.dictionary[code].as_py())

    def _of(self, machine: int) -> _Entities:
        entities = self._machines.get(machine)
        if entities is None:
            name = self._words.all[machine]
            entities = self._machines[machine] = _Entities(name, self._words)
        return entities

    def end(self, parts: Sequence[Part]) -> ProcessJudgement:
        """Judge the process after its last record.

        Args:
            parts: The files, which are read again if entities have to be replayed.

        Raises:
            TraceFileError: A file cannot be read.
        """
        last, kind = self._last
        if last > 1:
            self._gaps.pass_over(last - 2)
            self._gaps.take(self._record(last, kind))
        node = self._gaps.judgement()
        machines = {self._words.all[place]: machine for place, machine in self._machines.items()}
        if kind == Kind.END:
            for machine in machines.values():
                machine.end()
        suspects = {name: machine.suspects for name, machine in machines.items()}
        is_whole = not node.flaws - {Flaw.NO_START}
        return ProcessJudgement(
            node=node,
            summary=ProcessSummary(node.run, node.node, is_whole=is_whole),
            missing=tuple(self._gaps.missing()),
            entities=_replay(node, parts, suspects),
            entity_counts={name: len(machine) for name, machine in machines.items()},
            used=self._used,
            stays={
                (name, state, stay): count
                for name, machine in machines.items()
                for state, stay, count in machine.stays()
            },
        )


def _replay(
    node: replay.NodeJudgement, parts: Sequence[Part], suspects: Mapping[str, AbstractSet[str]]
) -> tuple[replay.EntityJudgement, ...]:
    """Check suspect entities by all their transitions, one by one."""
    machines = replay.Machines(node.run, node.node, MACHINES)
    keys = frozenset[str]().union(*suspects.values())
    for part in parts if keys else ():
        for record in records_about(part, keys):
            is_told = record.is_step or record.is_refused
            if is_told and record.key in suspects.get(record.machine or "", ()):
                machines.take_step(record)
    return machines.end(node)


def _previous(values: npt.NDArray[_N], heads: _Codes, firsts: npt.NDArray[_N]) -> npt.NDArray[_N]:
    """Return, for each transition, the value of the previous transition of its entity.

    Args:
        values: Values of the transitions.
        heads: Index of the first transition of each entity.
        firsts: Values before these first transitions.
    """
    before = np.empty_like(values)
    before[1:] = values[:-1]
    before[heads] = firsts
    return before


_NEAR: Final = 1e-6


def _stays(times: _Times) -> _Codes:
    """Return the class of duration (for statistics) of each time, numbered from 0."""
    exact = np.log(np.maximum(times, replay.SHORTEST)) * replay.STEPS_OF_A_STAY
    if not np.isfinite(exact).all():
        raise UndecidedError("a time is no number")
    stays = np.rint(exact)
    # This logarithm and that of `stay_of` may differ in the last digit.
    for place in np.flatnonzero(np.abs(np.abs(exact - stays) - 0.5) < _NEAR).tolist():
        stays[place] = replay.stay_of(float(times[place]))
    classes: _Codes = stays.astype(np.int64) + _STAY_ZERO
    return classes
