"""Write the trace of a node: state transitions and table changes always, messages if enabled."""

import time
from collections.abc import Iterable
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Unpack, final

import attrs

from actors.kit.counters import Counters, Refused, Tally
from actors.kit.log import get_logger
from actors.kit.trace import Hops, Tracer, Where
from actors.policy.engine import Decision, Ruling, RulingHops
from fsm.effects import RowChanged
from fsm.engine import Step
from fsm.machines.session import State, Trigger
from fsm.session.node_session_io import PeerForm
from specs.message import Message
from specs.reply_code import FIRST_REFUSAL, Code, DropReason, Ground
from specs.trace import Fact, Kind, Op

_log = get_logger("actors.node")

_EVENTS: Final = MappingProxyType(
    {
        Trigger.OPENED: "session opened",
        Trigger.LINK_LOST: "session detached",
        Trigger.REOPENED: "session reopened",
        Trigger.CLOSE: "session closed",
        Trigger.EXPIRE: "session expired",
        Trigger.MOVE: "session moved",
    }
)
"""Log event name for each trigger of the session's state machine; log readers depend on them."""

_OVER: Final = (State.CLOSED, State.EXPIRED, State.MOVED)


@final
class Direction(StrEnum):
    """Direction of a request that is relayed to a back end, or of its answer (I-M11)."""

    OUT = "out"
    IN = "in"


def ground_of(reason: DropReason) -> Ground:
    """Return the kind of rule by which an undeliverable request is refused."""
    match reason:
        case DropReason.OVERFLOW:
            return Ground.LIMIT
        case DropReason.UNKNOWN_SOURCE:
            return Ground.OWNERSHIP
        case _:
            return Ground.ROUTE


class ComponentTrace:
    """Write the trace records of one component of the node; count rulings, refusals, drops."""

    def __init__(self, tracer: Tracer, actor: str, counters: Counters) -> None:
        self._tracer = tracer
        self._sample = tracer.sample
        self._actor = actor
        self.counters = counters
        self._ruled = RulingHops(actor)
        self._admitted = Hops(actor, lambda by: {"by": by}, Op.ADMIT)
        self._links = {op: Hops(actor, lambda link: {"link": link}, op) for op in (Op.RCV, Op.XMIT)}

    def record(self, fact: Fact) -> None:
        """Write a record that no other method makes."""
        self._tracer.record(self._actor, fact)

    def step(self, step: Step) -> None:
        """Trace a state machine transition."""
        self._tracer.step(self._actor, step)

    def session_step(self, runtime: str, step: Step) -> None:
        """Trace and log a transition of a runtime's session, and count the session if it has ended.

        Args:
            runtime: Address of the runtime.
            step: The transition.
        """
        self.step(step)
        why = {"why": step.why} if step.why else {}
        _log.info(_EVENTS[Trigger(step.cause)], runtime=runtime, **why)
        if step.new in _OVER:
            self.counters.count(Tally.SESSIONS_ENDED, State(step.new))

    def row(self, row: RowChanged) -> None:
        """Trace that a row of a table was added, changed or removed."""
        self._tracer.row(self._actor, row)

    def link(self, op: Op, name: str, node: str) -> None:
        """Trace that a link opened or closed.

        Args:
            op: Whether the link opened or closed.
            name: Name of the link.
            node: Address of the node.
        """
        self._tracer.record(self._actor, Fact(k=Kind.LINK, op=op, link=name, a=node, kind="mn"))

    def session(self, link: str, form: PeerForm, node: str, runtime: str) -> None:
        """Trace that a link carries the session of a runtime from now on.

        Args:
            link: Name of the link.
            form: Wire form of the session.
            node: Address of the node.
            runtime: Address of the runtime.
        """
        fact = Fact(k=Kind.SESSION, link=link, a=node, b=runtime, kind=form.value)
        self._tracer.record(self._actor, fact)

    def authz(self, message: Message, ruling: Ruling) -> None:
        """Trace and count a decision of the policy engine about a message.

        Args:
            message: The message.
            ruling: The ruling.
        """
        if ruling.decision is Decision.PERMIT:
            self.counters.permitted += 1
        else:
            self.counters.denied += 1
        if self._tracer.hops:
            self._tracer.hop(self._ruled.of(ruling), message)

    def hop(self, op: Op, message: Message, **where: Unpack[Where]) -> None:
        """Trace what happened to a message, and at which link, listener or session (`where`).

        Args:
            op: What happened to the message.
            message: The message.
        """
        if self._tracer.hops or (self._sample and not message.id % self._sample):
            self._tracer.message(self._actor, op, message, **where)

    def record_pass(self, op: Op, message: Message, link: str) -> None:
        """Trace that a message came in or went out over a link.

        Args:
            op: What happened to the message.
            message: The message.
            link: Name of the link.
        """
        if self._tracer.hops or (self._sample and not message.id % self._sample):
            self._tracer.hop(self._links[op][link], message)

    def record_admission(self, message: Message, by: str) -> None:
        """Trace that a message passed all checks and will be routed.

        Args:
            message: The message.
            by: Address of its session, or of the node of another domain.
        """
        if self._tracer.hops:
            self._tracer.hop(self._admitted[by], message)

    def record_queued(self, messages: Iterable[Message], runtime: str) -> None:
        """Trace that messages are queued until their receiver has a link again.

        Args:
            messages: The messages.
            runtime: Address of the runtime that is to get them.
        """
        for message in messages:
            self.hop(Op.QUEUE, message, listener=runtime)

    def not_written(self, message: Message, runtime: str) -> None:
        """Trace that a message which was queued for a link leaves the node by another route.

        Args:
            message: The message.
            runtime: Address of the runtime that is to get it.
        """
        self.record_queued((message,), runtime)
        self.hop(Op.FLUSH, message)

    def deny(self, message: Message, code: Code, why: str) -> None:
        """Trace that a message was refused before it had any effect.

        Args:
            message: The message.
            code: Reply code.
            why: The reason.
        """
        if self._tracer.hops or (self._sample and not message.id % self._sample):
            fact = attrs.evolve(
                self._tracer.message_fact(Op.DENY, message), code=int(code), why=why
            )
            self._tracer.record(self._actor, fact)

    def record_refusal(
        self, message: Message, by: str, code: int, why: str, ground: Ground, rule: str = ""
    ) -> None:
        """Count a refused message and keep its details for the operator; `deny` traces the refusal.

        Args:
            message: The message.
            by: Runtime whose session it came over, or name of its link.
            code: Reply code.
            why: The reason.
            ground: Kind of the rule that it breaks.
            rule: Rule of the policies that denied it.
        """
        header = (message.id, message.type, message.from_, message.to)
        where = self._actor
        self.counters.refuse(Refused(time.time_ns(), where, *header, by, code, ground, why, rule))

    def record_refused_answer(self, answer: Message, by: str, ground: Ground) -> None:
        """Count a refusal of which only the answer is known; ignore an answer that is no refusal.

        Args:
            answer: An answer to a request.
            by: Runtime that is answered, or name of its link.
            ground: Kind of the rule that the request breaks.
        """
        if answer.code < FIRST_REFUSAL:
            return
        why = answer.body.get("description")
        header = (answer.id, "", answer.to, answer.from_)
        where = self._actor
        text = why if isinstance(why, str) else ""
        self.counters.refuse(Refused(time.time_ns(), where, *header, by, answer.code, ground, text))

    def relay(self, message: Message, direction: Direction) -> None:
        """Trace that a request went to a back end, or that its answer came back.

        Args:
            message: The message.
            direction: Whether the message comes in or goes out.
        """
        if self._tracer.hops:
            fact = attrs.evolve(
                self._tracer.message_fact(Op.RELAY, message), direction=direction.value
            )
            self._tracer.record(self._actor, fact)

    def drop(self, message: Message, reason: DropReason, **where: Unpack[Where]) -> None:
        """Trace and count a dropped message, and at which link, listener or session (`where`).

        Args:
            message: The message.
            reason: Reason of the drop.
        """
        self.counters.drop(reason, message, self._actor)
        if self._tracer.hops or (self._sample and not message.id % self._sample):
            self._tracer.message(self._actor, Op.DROP, message, reason=reason, **where)
