"""Claims on admission, denied or undeliverable messages, and loops (I-B8..I-B12, I-L1..I-L5)."""

from collections.abc import Sequence
from typing import Final

from typing_extensions import override

from fsm.judge.claims import fold, records
from fsm.judge.trace_line import TraceLine
from specs.addresses.address import is_below, last_segment, runtime_of, status_of
from specs.child import parent_of
from specs.limits.protocol import HOP_LIMIT
from specs.trace import Kind, Op

_PERMIT: Final = "permit"
_LOCAL: Final = "local"
_P2P: Final = "p2p-stub"
_CHANGES: Final = "changes"


class AuthoriseFirst(fold.ProcessClaim, claims=("I-B8", "I-K4")):
    """No message is admitted before it is permitted or exempt from permission (I-B8, I-K4)."""

    _permitted: records.Lasting[str | None, None]
    _decisions: records.Recent[str | None, str | None]

    @fold.on(fold.others(Kind.AUTHZ))
    def take_decision(self, record: TraceLine) -> None:
        self._decisions[record.mid] = record.decision
        if record.decision == _PERMIT:
            self._permitted[record.mid or ""] = None

    @fold.on(fold.any_msg(Op.ADMIT))
    def take_admission(self, record: TraceLine) -> None:
        if record.mid not in self._permitted and not self._is_exempt(record):
            self.report_break(record, "permission before it is let in", claim="I-B8")
        if self._decisions.get(record.mid, _PERMIT) != _PERMIT:
            self.report_break(record, "permission", claim="I-K4")

    def _is_exempt(self, record: TraceLine) -> bool:
        """Return whether a message needs no permission: answer, own status or internal."""
        home = self.process.home
        if home is None:
            return False
        from_, to = record.from_ or "", record.to or ""
        is_own = is_below(from_, home)
        return records.is_answer(record) or (
            is_own and (to == status_of(from_) or is_below(to, home))
        )


class LetInFirst(fold.ProcessClaim, claims=("I-B8",), place=fold.Place.RUNTIME):
    """A message was admitted, or made by the runtime, before its delivery or routing (I-B8)."""

    _let_in: records.Lasting[str | None, None]
    _targets: records.Lasting[str | None, None]

    @fold.on(fold.others(Kind.RESOLVE, Op.BEGIN))
    def take_search(self, record: TraceLine) -> None:
        if record.to not in self._targets:
            self.report_break(record, "a message that may go there, before")

    @fold.on(fold.any_msg(Op.ADMIT, Op.SYNTH))
    def take_admission(self, record: TraceLine) -> None:
        if record.actor == records.BUS:
            self._let_in[record.mid or ""] = None
            self._targets[record.to or ""] = None

    @fold.on(fold.any_msg(Op.DELIVER))
    def take_delivery(self, record: TraceLine) -> None:
        if record.actor == records.BUS and record.mid not in self._let_in:
            self.report_break(record, "to be let in before it is delivered")


class PassedFirst(fold.ProcessClaim, claims=("I-B8",), place=fold.Place.NODE):
    """A message that came to a node over a link is admitted before it is passed on (I-B8)."""

    _came: records.Recent[str | None, None]

    @fold.on(fold.at_bus(Op.RCV))
    def take_arrival(self, record: TraceLine) -> None:
        self._came[record.mid] = None

    @fold.on(fold.at_bus(Op.ADMIT))
    def take_admission(self, record: TraceLine) -> None:
        self._came.pop(record.mid, None)

    @fold.on(fold.at_bus(Op.DELIVER, Op.PUBLISH, Op.XMIT))
    def take_passage(self, record: TraceLine) -> None:
        if record.mid in self._came:
            self.report_break(record, "to be let in before it goes on")


class DeniedIsDead(fold.ProcessClaim, claims=("I-B9",)):
    """A denied message is not delivered or sent, and its sender gets an answer (I-B9)."""

    _denied: records.Recent[tuple[str, str | None], str | None]
    _unanswered: dict[str | None, TraceLine]

    @fold.on(fold.msg(Op.DENY))
    def take_denial(self, record: TraceLine) -> None:
        self._denied[record.actor, record.mid] = record.digest
        if record.code and records.expects_answer(record):
            self._unanswered[record.mid] = record

    @fold.on(fold.msg(Op.ADMIT))
    def take_admission(self, record: TraceLine) -> None:
        if self._denied:
            self._denied.pop((record.actor, record.mid), None)

    @fold.on(fold.msg(Op.DELIVER, Op.XMIT, Op.PUBLISH))
    def take_departure(self, record: TraceLine) -> None:
        key = (record.actor, record.mid)
        if key in self._denied and self._denied[key] == record.digest:
            self.report_break(record, "a denied message to go nowhere")

    @fold.on(fold.msg())
    def take_answer(self, record: TraceLine) -> None:
        if self._unanswered and records.is_answer(record):
            self._unanswered.pop(record.ref, None)

    @override
    def end(self) -> None:
        for record in self._unanswered.values() if self.process.end is not None else ():
            self.report_break(record, "a refusal to be answered")


class SourceAuthenticity(fold.ProcessClaim, claims=("I-B10",), place=fold.Place.RUNTIME):
    """The component that submits a message owns the sender address of the message (I-B10).

    The bus records the owner of each address in a table row: the address, its owner, and the kind
    of owner. Messages that a node's stub submits were sent by components of other runtimes. A
    message that a peer sends over a link is from the peer's runtime, or from an address that a
    registry assigns to that runtime: the table has a row for each. Answers may come from addresses
    that several components listen to (C-81). The bus repeats an answer even if the address that
    gave it has been removed.
    """

    _granted: dict[str, set[str]]
    _removed: set[str]
    _stubs: set[str]
    _links: set[str]

    @fold.on(fold.rows("components"))
    def take_grant(self, record: TraceLine) -> None:
        if record.actor != records.BUS:
            return
        owner, address = record.val or "", record.key or ""
        if record.writer == _P2P:
            self._links.add(owner)
        elif record.writer != _LOCAL:
            self._stubs.add(owner)
        granted = self._granted.setdefault(owner, set())
        if record.op == Op.DEL:
            granted.discard(address)
            self._removed.add(address)
        else:
            granted.add(address)

    @fold.on(fold.any_msg(Op.ADMIT))
    def take_admission(self, record: TraceLine) -> None:
        if record.actor == records.BUS and not self._may(record):
            self.report_break(record, f"a sender that is {record.by}'s")

    def _may(self, record: TraceLine) -> bool:
        from_, by = record.from_ or "", record.by or ""
        owner = self._owner(by)
        if owner is None:
            # An answer that the bus repeats is recorded as submitted by its sender.
            addresses = [address for owned in self._granted.values() for address in owned]
            if records.is_answer(record):
                addresses += self._removed
            return not addresses or (by == from_ and any(is_below(by, own) for own in addresses))
        if owner in self._links:
            return self._may_by_link(record, self._granted[owner])
        if from_ in self._granted[owner] or any(
            is_below(from_, own) for own in self._granted[owner]
        ):
            return True
        return owner in self._stubs and (
            records.is_answer(record) or not is_below(from_, self._home)
        )

    def _may_by_link(self, record: TraceLine, granted: set[str]) -> bool:
        """Return whether a P2P stub may submit a message: its stamp shows that the peer sent it."""
        from_ = record.from_ or ""
        is_here = is_below(from_, self._home)
        is_theirs = from_ in granted or runtime_of(from_) in granted
        if (record.via or "").rpartition("|")[2] == record.by:
            is_shared = last_segment(from_) == _CHANGES or parent_of(from_) is not None
            return (is_theirs and not is_here) or (records.is_answer(record) and is_shared)
        return is_here or is_theirs or records.is_answer(record)

    @property
    def _home(self) -> str:
        return self.process.home or ""

    def _owner(self, by: str) -> str | None:
        while by not in self._granted and "/" in by:
            by = by.rpartition("/")[0]
        return by if by in self._granted else None


class SandboxIsolation(fold.ProcessClaim, claims=("I-B11",), place=fold.Place.RUNTIME):
    """A message that is delivered in a sandbox came from the bus (I-B11)."""

    _sent: records.Lasting[tuple[str, str], None]

    @fold.on(fold.msg(Op.DELIVER))
    def take_delivery(self, record: TraceLine) -> None:
        mid = record.mid or ""
        if record.actor == records.BUS:
            self._sent[record.listener or "", mid] = None
        elif record.actor.startswith("minibus:") and (record.actor, mid) not in self._sent:
            self.report_break(record, "the bus to have given it to this sandbox")


class UndeliverableAnswered(fold.ProcessClaim, claims=("I-B12",), place=fold.Place.RUNTIME):
    """A request without a route to its target is refused; other messages are counted (I-B12)."""

    _waiting: dict[str, TraceLine]
    _lost: records.Recent[str | None, int]

    @fold.on(fold.at_bus(Op.ADMIT))
    def take_admission(self, record: TraceLine) -> None:
        self._waiting[record.mid or ""] = record

    @fold.on(fold.at_bus(Op.DELIVER, Op.XMIT, Op.PUBLISH, Op.SYNTH, Op.DROP, Op.CALLBACK))
    def take_passage(self, record: TraceLine) -> None:
        waiting = self._waiting
        if waiting:
            waiting.pop(record.mid or "", None)
            waiting.pop(record.ref or "", None)

    @fold.on(fold.others(Kind.RESOLVE, Op.DONE))
    def take_resolution(self, record: TraceLine) -> None:
        if record.result is None:
            self._lost[record.to] = record.ln

    @override
    def end(self) -> None:
        for record in self.process.overdue(self._waiting.values(), records.SLACK):
            if self._lost.get(record.to, 0) > record.ln:
                self.report_break(record, "a refusal, or a drop that is counted")


# --- loops ------------------------------------------------------------------------------


class ViaRules(fold.ProcessClaim, claims=("I-L1", "I-L2", "I-L3", "I-L4")):
    """The list of stubs that a message has passed (`via`) shows no routing loop (I-L1..I-L4).

    No stub occurs twice in `via` when the message is admitted (I-L1). A stub sends no message that
    it has sent before (I-L2): each send changes `via` only by adding the stub (I-L3). Neither `via`
    nor the number of times that a message is sent exceeds the limit (I-L4). Sends are counted by
    link, and a message that arrives again may be sent again.
    """

    _vias: records.Recent[str, set[tuple[str, ...]]]
    _came: records.Recent[str | None, int]
    _sent: records.Recent[tuple[str | None, ...], int]

    @fold.on(fold.msg(Op.RCV, Op.SUBMIT, Op.SYNTH))
    def take_arrival(self, record: TraceLine) -> None:
        self._vias.setdefault(record.mid or "", set()).add(_via(record))
        if record.op != Op.SYNTH:
            self._came[record.mid] = self._came.get(record.mid, 0) + 1

    @fold.on(fold.msg(Op.ADMIT))
    def take_admission(self, record: TraceLine) -> None:
        via = _via(record)
        if len(set(via)) != len(via):
            self.report_break(record, "each stub once in via", claim="I-L1")
        self._limit(record, via)

    @fold.on(fold.msg(Op.XMIT))
    def take_sending(self, record: TraceLine) -> None:
        via, stub, known = _via(record), record.stub, self._vias.get(record.mid or "")
        if stub in via[:-1]:
            self.report_break(record, f"{stub} not to have carried it before", claim="I-L2")
        if stub is not None and via[-1:] != (stub,):
            self.report_break(record, f"{stub} at the end of via", claim="I-L3")
        elif stub is not None and known is not None and via[:-1] not in known:
            self.report_break(record, "via as it came, and one stub more", claim="I-L3")
        self._limit(record, via)
        route = (record.mid, record.to, record.link)
        times = self._sent[route] = self._sent.get(route, 0) + 1
        if times > HOP_LIMIT * max(1, self._came.get(record.mid, 0)):
            self.report_break(record, f"at most {HOP_LIMIT} sendings over one link", claim="I-L4")

    def _limit(self, record: TraceLine, via: Sequence[str]) -> None:
        if len(via) > HOP_LIMIT:
            self.report_break(record, f"at most {HOP_LIMIT} stubs in via", claim="I-L4")


class NoEcho(fold.ProcessClaim, claims=("I-L5",)):
    """A message is not sent back over its link of arrival, except children to authors (I-L5)."""

    _came: records.Recent[tuple[str, str], None]

    @fold.on(fold.msg(Op.RCV))
    def take_arrival(self, record: TraceLine) -> None:
        self._came[record.link or "", record.mid or ""] = None

    @fold.on(fold.msg(Op.XMIT))
    def take_sending(self, record: TraceLine) -> None:
        key = (record.link or "", record.mid or "")
        if key in self._came and "/children/" not in (record.to or ""):
            self.report_break(record, "it not to go back by the link it came from")


def _via(record: TraceLine) -> tuple[str, ...]:
    return tuple(records.split(record.via)) if record.via else ()
