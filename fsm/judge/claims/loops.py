"""Folds of circles: what a message has crossed, and where it may not go again (I-L1..I-L5)."""

from collections import Counter
from typing import final

from fsm.judge.claims.fold import Fold, Process, msg, on
from fsm.judge.claims.records import split
from fsm.judge.trace_line import TraceLine
from specs.limits.protocol import HOP_LIMIT
from specs.trace import Op

__all__ = ["AppendOnly", "HopBound", "NoEcho", "NoReentry", "ViaIsASet"]


@final
class ViaIsASet(Fold, claims=("I-L1",)):
    """No stub stands twice in what an admitted message has crossed (I-L1)."""

    @on(msg(Op.ADMIT))
    def admitted(self, record: TraceLine) -> None:
        via = _via(record)
        if len(set(via)) != len(via):
            self.broken(record, "each stub once in via")


@final
class NoReentry(Fold, claims=("I-L2",)):
    """A stub sends nothing that it had carried before: it stamps, once, at the end (I-L2)."""

    @on(msg(Op.XMIT))
    def sent(self, record: TraceLine) -> None:
        if record.stub in _via(record)[:-1]:
            self.broken(record, f"{record.stub} not to have carried it before")


@final
class AppendOnly(Fold, claims=("I-L3",)):
    """At each crossing via is as it was, and the stub behind it (I-L3)."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._came: dict[str, set[tuple[str, ...]]] = {}

    @on(msg(Op.RCV, Op.SUBMIT, Op.SYNTH))
    def came(self, record: TraceLine) -> None:
        self._came.setdefault(record.mid or "", set()).add(_via(record))

    @on(msg(Op.XMIT))
    def sent(self, record: TraceLine) -> None:
        if record.stub is None:
            return
        via, known = _via(record), self._came.get(record.mid or "")
        if via[-1:] != (record.stub,):
            self.broken(record, f"{record.stub} at the end of via")
        elif known is not None and via[:-1] not in known:
            self.broken(record, "via as it came, and one stub more")


@final
class HopBound(Fold, claims=("I-L4",)):
    """Neither via nor the sendings of one message exceed the limit (I-L4).

    Sendings are counted by link; a message that comes again may be sent again.
    """

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._came: Counter[str | None] = Counter()
        self._sent: Counter[tuple[str | None, ...]] = Counter()

    @on(msg(Op.RCV, Op.SUBMIT))
    def came(self, record: TraceLine) -> None:
        self._came[record.mid] += 1

    @on(msg(Op.ADMIT, Op.XMIT))
    def crossed(self, record: TraceLine) -> None:
        if len(_via(record)) > HOP_LIMIT:
            self.broken(record, f"at most {HOP_LIMIT} stubs in via")

    @on(msg(Op.XMIT))
    def sent(self, record: TraceLine) -> None:
        route = (record.mid, record.to, record.link)
        self._sent[route] += 1
        if self._sent[route] > HOP_LIMIT * max(1, self._came[record.mid]):
            self.broken(record, f"at most {HOP_LIMIT} sendings over one link")


@final
class NoEcho(Fold, claims=("I-L5",)):
    """A message does not go back on the link it came by, except children to their author (I-L5)."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._came: set[tuple[str, str]] = set()

    @on(msg(Op.RCV))
    def came(self, record: TraceLine) -> None:
        self._came.add((record.link or "", record.mid or ""))

    @on(msg(Op.XMIT))
    def sent(self, record: TraceLine) -> None:
        at = (record.link or "", record.mid or "")
        if at in self._came and "/children/" not in (record.to or ""):
            self.broken(record, "it not to go back by the link it came from")


def _via(record: TraceLine) -> tuple[str, ...]:
    return tuple(split(record.via)) if record.via else ()
