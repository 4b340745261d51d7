"""The gaps of traces: records, answers, and the traces of others that took part.

A verdict is `conformant` only if the traces are complete. A process that took part
without a trace is known by what the others recorded of it:

* a runtime by the stubs in the `via` of messages (ours stamp what they carry, upstream's
  do not, so that no trace is expected of an upstream peer), and by direct links to it;
* a message node by the numbered messages that a runtime's stub exchanged with it (a stub
  that speaks an unknown protocol, in a sandbox, numbers nothing);
* one of several nodes of a domain by its id, which the others knew as a member of their group.

Of a runtime that was killed there is a trace without an end; it has taken part with one. A
process that began anew has a trace of each run: that one of them is missing is known by a link
over which messages came of which none was sent in any run.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, final

import attrs

from fsm.group.kinds import GroupTable
from fsm.judge.claims.records import is_p2p_end, is_p2p_link, split
from fsm.judge.crossings import KEPT, LINKS, Crossing
from fsm.judge.replay import Numbers
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import RUNTIME_SCHEME, domain_of, message_node, runtime_of, scheme_of
from specs.trace import Kind, Op

_CROSSED: Final = frozenset({Op.XMIT, Op.RCV})


@final
@attrs.frozen(slots=True, order=True)
class Missing:
    """Something that the traces lack.

    Attributes:
        run: Of the trace that lacks it, or that mentions what has no trace.
        node: The same.
        ln: The record before it, or that mentions it; 0: none.
        reason: What is missing, as half a sentence.
        is_end: Whether it is the end of a trace: a process that still runs has none.
    """

    run: str
    node: str
    ln: int
    reason: str
    is_end: bool = False


@final
class Gaps:
    """Finds where the trace of one process has its flaws.

    Attributes:
        numbers: What the numbers of its records say.
    """

    def __init__(self, run: str, node: str) -> None:
        self.numbers = Numbers(run, node)
        self._run = run
        self._node = node
        self._first: TraceLine | None = None
        self._last: TraceLine | None = None
        self._found: list[Missing] = []
        self._doubled: list[TraceLine] = []

    def take(self, record: TraceLine) -> bool:
        """Take the next record; say whether any before it are missing, or which it is is unclear.

        A record that is there twice, the same each time, is one. Of two with the same number it
        is not known which one the process wrote.
        """
        before = self.numbers.last
        is_behind_hole = self.numbers.take(record)
        if self._first is None:
            self._first = record
            if record.k != Kind.START:
                self._lacks(record, "it does not begin with its start")
        if is_behind_hole:
            self._lacks(record, f"{_numbers(before + 1, record.ln - 1)} missing before this one")
        elif record.ln <= before:
            return self._is_other(record)
        if record.k == "dropped":
            self._lacks(record, "records were dropped: the disk was slower than the process")
        self._last = record
        return is_behind_hole

    def _is_other(self, record: TraceLine) -> bool:
        if record != self._last:
            self._lacks(record, f"two records have the number {record.ln}")
            self.numbers.doubt()
            return True
        if self._doubled and record.ln > self._doubled[-1].ln + 1:
            self._note_doubled()
        self._doubled.append(record)
        return False

    def _note_doubled(self) -> None:
        if self._doubled:
            first, last = self._doubled[0], self._doubled[-1]
            self._lacks(first, f"{_numbers(first.ln, last.ln)} there twice")
            self._doubled.clear()

    def missing(self) -> Iterator[Missing]:
        """Yield the flaws; there are no more records."""
        self._note_doubled()
        yield from self._found
        last = self._last
        if last is not None and last.k != Kind.END:
            reason = "it has no end: the process crashed, was killed, or still runs"
            yield Missing(self._run, self._node, last.ln, reason, is_end=True)

    def unanswered(self, requests: Iterable[TraceLine]) -> Iterator[Missing]:
        """Yield requests without a final answer as what is missing."""
        for asked in requests:
            reason = f"the final answer to {asked.mid} is not recorded, nor that there was none"
            yield Missing(self._run, self._node, asked.ln, reason)

    def _lacks(self, record: TraceLine, reason: str) -> None:
        self._found.append(Missing(self._run, self._node, record.ln, reason))


def _numbers(first: int, last: int) -> str:
    return f"record {first} is" if first == last else f"records {first}-{last} are"


@final
@attrs.frozen
class Mention:
    """A participant that is mentioned.

    Attributes:
        run: In the trace of which process.
        ln: The record that mentions it first.
        what: As what, as part of a sentence.
    """

    who: str
    run: str
    node: str
    ln: int
    what: str


@final
@attrs.frozen
class Took:
    """The participants in the records of one process.

    Attributes:
        itself: Addresses of the process.
        others: Participants that it mentions, each once.
    """

    itself: frozenset[str]
    others: tuple[Mention, ...]


@final
class Participants:
    """Finds the participants in the records of one process.

    Attributes:
        stubs: The message node that each stub leads to.
    """

    def __init__(self) -> None:
        self._itself: set[str] = set()
        self._found: dict[str, tuple[TraceLine, str]] = {}
        self._vias: set[str | None] = {None}
        self.stubs: dict[str, str] = {}
        self._crossed: dict[str, TraceLine] = {}

    def take(self, record: TraceLine) -> None:
        """Take the next record."""
        kind = record.k
        if kind == "msg":
            if record.via not in self._vias:
                self._take_via(record)
            if record.stub is not None and record.stub not in self._crossed:
                self._take_crossing(record, record.stub)
        elif kind == "table":
            self._take_row(record)
        elif kind in {"link", "session"}:
            self._take_end(record)

    def _take_via(self, record: TraceLine) -> None:
        self._vias.add(record.via)
        for who in _stamped(split(record.via)):
            self._found.setdefault(who, (record, "whose stub carried a message"))

    def _take_crossing(self, record: TraceLine, stub: str) -> None:
        if record.op in _CROSSED and record.seq is not None:
            self._crossed[stub] = record

    def _take_row(self, record: TraceLine) -> None:
        if record.table == GroupTable.MEMBERS and record.key is not None:
            self._take_member(record, record.key)
        stub = (record.val or "").split(" ")[0] if record.table == "stubs" else ""
        if stub and not is_p2p_end(stub):
            self.stubs[stub] = message_node(record.key or "")

    def _take_member(self, record: TraceLine, node: str) -> None:
        if record.version is not None:
            self._itself.add(node)
        else:
            self._found.setdefault(node, (record, "a member of the same group as the node"))

    def _take_end(self, record: TraceLine) -> None:
        if record.a:
            self._itself.add(record.a)
        if is_p2p_link(record) and record.b is not None:
            self._found.setdefault(record.b, (record, "which a direct link led to"))

    def end(self, home: str | None) -> Took:
        """Report the participants; there are no more records."""
        found = self._found
        for stub, record in self._crossed.items():
            node = self.stubs.get(stub)
            if node is not None and (node not in found or found[node][0].ln > record.ln):
                found[node] = (record, "which exchanged messages")
        itself = self._itself if home is None else {*self._itself, home}
        mentions = (
            Mention(who, record.run, record.node, record.ln, what)
            for who, (record, what) in found.items()
        )
        return Took(frozenset(itself), tuple(mentions))


def _stamped(via: Iterable[str]) -> Iterator[str]:
    for stub in via:
        if scheme_of(stub) == RUNTIME_SCHEME:
            yield runtime_of(stub)


def absent(took: Sequence[Took], untraced: Collection[str] = ()) -> Iterator[Missing]:
    """Yield participants without a trace.

    Args:
        took: Of each process, in their order.
        untraced: Addresses or domains of participants that are known to keep no trace.
    """
    traced = {who for one in took for who in one.itself}
    mentions: dict[str, Mention] = {}
    for mention in (mention for one in took for mention in one.others):
        mentions.setdefault(mention.who, mention)
    for who, mention in sorted(mentions.items()):
        if who not in traced and not {who, domain_of(who)} & set(untraced):
            reason = f"there is no trace of {who}, {mention.what} here"
            yield Missing(mention.run, mention.node, mention.ln, reason)


@final
@attrs.frozen
class Trail:
    """The records of one process that others are compared with.

    Attributes:
        itself: Addresses of the process.
        is_whole: Whether it ended orderly and no record is missing.
        crossings: Some messages that went between it and others.
    """

    run: str
    node: str
    itself: frozenset[str]
    is_whole: bool
    crossings: Sequence[Crossing]


def unsent(trails: Sequence[Trail]) -> dict[str, Missing]:
    """Return whose traces lack a run: what it sent was received, and is in no trace.

    A participant without any trace is another matter (`absent`), and so is one whose trace is
    known to lack records.

    Args:
        trails: Of each process, in their order.
    """
    sent = {one.key for trail in trails for one in trail.crossings if one.is_sent}
    kept = _kept(trails)
    links: dict[tuple[str, str, str, str], list[Crossing]] = {}
    for trail in trails:
        for one in trail.crossings:
            is_judged = one.sender in kept and one.rank < kept[one.sender]
            if is_judged and one.sender not in trail.itself:
                at = one.sender, trail.run, trail.node, one.link
                links.setdefault(at, []).append(one)
    found: dict[str, Missing] = {}
    for (sender, run, node, _), came in links.items():
        if sender not in found and not any(one.key in sent for one in came):
            first = min(one.ln for one in came)
            reason = f"no trace of {sender} has sent what came from it: that of a run is missing"
            found[sender] = Missing(run, node, first, reason)
    return found


def _kept(trails: Sequence[Trail]) -> dict[str, int]:
    """Return up to which rank each participant kept all it sent, if its traces are whole."""
    limits: dict[str, int] = {}
    for trail in trails:
        limit = _limit(trail.crossings) if trail.is_whole else 0
        for who in trail.itself:
            limits[who] = min(limit, limits.get(who, limit))
    return limits


def _limit(crossings: Sequence[Crossing]) -> int:
    ranks: dict[str, set[int]] = {}
    for one in crossings:
        if one.is_sent:
            ranks.setdefault(one.link, set()).add(one.rank)
    full = [max(several) for several in ranks.values() if len(several) == KEPT]
    return 0 if 2 * len(ranks) >= LINKS else min(full, default=1 << 32)
