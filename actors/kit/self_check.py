"""Online check of declared guarantees (claims) on the process's own trace records (`--monitor`).

The check receives all records before the tracer, even if no trace is kept. Without a trace only
rare facts, state transitions and sampled messages are reported, so that the check costs next to
nothing. A violated claim is logged, counted and recorded with kind `fault`.
"""

from typing import Final, Unpack

import attrs
import trio
from typing_extensions import override

from actors.kit.counters import Counters
from actors.kit.log import get_logger
from actors.kit.trace import More, PassingTracer, Tracer
from fsm.bus.transactions import is_sampled
from fsm.engine import Step
from fsm.judge.claims.fold import Finding
from fsm.judge.process import OnlineJudge
from fsm.judge.trace_line import TraceLine
from specs.message import Message, instance_id, request_id
from specs.trace import ABSENT, Fact, Kind, Op

_log = get_logger("actors.kit")

_KINDS: Final = frozenset({Kind.TABLE, Kind.RESOLVE, Kind.LINK, Kind.SESSION})
_FIELDS: Final = tuple(
    field.name
    for field in attrs.fields(Fact)
    if field.name in {each.name for each in attrs.fields(TraceLine)}
)
_OPS: Final = frozenset({Op.ADMIT, Op.CALLBACK, Op.DELIVER})
_TRANSACTION: Final = "transaction"


class SelfCheck(PassingTracer):
    """Tracer that checks claims on all records and passes the records to another tracer.

    Args:
        tracer: Takes the trace records.
        node: Name of the process.
        home: Address of the runtime; None: it is a message node.
        counters: Counts the claims that are broken, and how often a fold forgot.
    """

    def __init__(self, tracer: Tracer, node: str, home: str | None, counters: Counters) -> None:
        super().__init__(tracer)
        self.watches = self.steps = True
        self._judge = OnlineJudge(node, home)
        self._counters = counters
        self._number = 0
        self._answer = TraceLine("", "", 0, Kind.MSG, op=Op.CALLBACK)

    @override
    def record(self, actor: str, fact: Fact) -> None:
        super().record(actor, fact)
        if fact.k in _KINDS:
            fields = {name: getattr(fact, name) for name in _FIELDS}
            self._take(
                TraceLine("", "", self._next(), t=trio.current_time(), actor=actor, **fields)
            )

    @override
    def step(self, actor: str, step: Step) -> None:
        super().step(actor, step)
        if step.machine not in self._judge.machines:
            return
        if step.machine == _TRANSACTION and step.old is not None:
            # Only its begin matters, and it steps with every request.
            return
        self._take(
            TraceLine(
                "", "", self._next(), Kind.STATE, trio.current_time(), actor=actor, op=Op.STEP,
                machine=step.machine, key=step.key, old=step.old or ABSENT, new=step.new,
                cause=step.cause, why=step.why,
            )
        )  # fmt: skip

    @override
    def message(self, actor: str, op: Op, message: Message, **more: Unpack[More]) -> None:
        super().message(actor, op, message, **more)
        if op in _OPS and is_sampled(message.id):
            # No fold keeps a record of a message, so that one is enough.
            line = self._answer
            line.ln, line.actor, line.op = self._next(), actor, op
            line.listener = more.get("listener")
            line.mid, line.ref = instance_id(message), request_id(message)
            line.type, line.id, line.code = message.type, message.id, message.code
            line.from_, line.to = message.from_, message.to
            self._take(line)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _take(self, record: TraceLine) -> None:
        for found in self._judge.take(record):
            self._report(record.actor, found)
        self._counters.monitor_resets = self._judge.forgotten

    def _report(self, actor: str, found: Finding) -> None:
        self._counters.broken_claim(found.claim, found.about, found.expected)
        note = Fact(k=Kind.FAULT, cause=found.claim, key=found.about, why=found.expected)
        self._tracer.record(actor, note)
        _log.error(
            "claim broken",
            actor=actor,
            claim=found.claim,
            about=found.about,
            expected=found.expected,
        )
