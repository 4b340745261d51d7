"""The trace of all nodes and runtimes of a test, in order, and its judgement."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final, final

import trio
from typing_extensions import override

from actors.kit.trace import Tracer
from actors.testing.complaint import complaint
from fsm.judge.trace_line import TraceLine, line_of
from fsm.judge.verdict import judge_run
from fsm.machine_list import MACHINES
from specs.trace import SCHEMA, Fact, Kind, Stamp

__all__ = ["Recorder"]

_RUN: Final = "test"


@final
class Recorder:
    """Keeps the trace of each process in memory; a process is a node or a runtime.

    `protofly_domain` records all its processes. A test that opens nodes and runtimes itself
    passes `trace=` a tracer of `process` to each of them.
    """

    def __init__(self) -> None:
        self._lines: Final[list[TraceLine]] = []
        self._open: Final[set[str]] = set()
        self._names: Final[set[str]] = set()

    @property
    def lines(self) -> tuple[TraceLine, ...]:
        """The trace records so far, in the order in which they were written."""
        return tuple(self._lines)

    @contextmanager
    def process(self, name: str) -> Iterator[Tracer]:
        """Record one process while the context is open.

        The trace ends with an END record if the block is left without an error.

        Args:
            name: Name of the node or runtime in the trace, different for each run of one.

        Yields:
            The tracer to pass as `trace=`.

        Raises:
            ValueError: The name was used before.
        """
        if name in self._names:
            raise ValueError(f"two processes are named {name!r}: name each run of one differently")
        self._names.add(name)
        self._open.add(name)
        pen = _Pen(name, self._lines)
        pen.record("trace", Fact(k=Kind.START, val=SCHEMA, machine="|".join(sorted(MACHINES))))
        try:
            yield pen
            pen.record("trace", Fact(k=Kind.END))
        finally:
            self._open.discard(name)

    def assert_conformant(self, *, untraced: Collection[str] = ()) -> None:
        """Judge the trace so far: every state machine, and every claim about messages.

        Call it after all processes have left: a message that never came is found only then.

        Args:
            untraced: Addresses or domains of participants that are not recorded.

        Raises:
            AssertionError: A claim is violated, or the trace is incomplete. The text has the first
                violation of each claim, with the records before it.
        """
        __tracebackhide__ = True
        said = complaint(
            self._lines, judge_run(self._lines, untraced=untraced), frozenset(self._open)
        )
        if said:
            raise AssertionError(said)


@final
class _Pen(Tracer):
    """Writes the trace records of one process."""

    hops = True

    def __init__(self, name: str, lines: list[TraceLine]) -> None:
        self._name = name
        self._lines = lines
        self._last = 0

    @override
    def record(self, actor: str, fact: Fact) -> None:
        self._last += 1
        now = trio.current_time()
        stamp = Stamp(
            run=_RUN,
            node=self._name,
            ln=self._last,
            wall_ns=int(now * 1e9),
            mono_ns=int(now * 1e9),
            t=now,
            actor=actor,
        )
        self._lines.append(line_of(stamp, fact))
