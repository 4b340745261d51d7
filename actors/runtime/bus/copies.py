"""Copies of messages by the forward rules and aliases of a Message BUS (BUS-08, BUS-10)."""

from typing import final

import attrs

from actors.runtime.bus.admission import Admission
from actors.runtime.bus.delivery import Deliveries
from actors.runtime.bus.messages import InFlight
from actors.runtime.bus.open_requests import OpenRequests
from actors.runtime.bus.pipeline import Pipelines
from actors.runtime.hop_trace import HopTrace
from actors.runtime.policy import Refusal
from fsm.bus.forward_rules import ForwardRefusedError, ForwardRule, ForwardRules
from specs.message import Message
from specs.reply_code import DropReason
from specs.routing import Direction


@final
@attrs.frozen
class Copies:
    """Hosts the forward rules; part of the bus.

    A copy passes the same checks as a message of its sender to its own receiver. Nothing of its
    failure concerns the sender: a requester gets the answer of the first receiver only.
    """

    _admission: Admission
    _pipelines: Pipelines
    _answers: OpenRequests
    _deliveries: Deliveries
    _hops: HopTrace
    _rules: ForwardRules = attrs.field(factory=ForwardRules)

    def add(self, rule: ForwardRule, writer: str) -> None:
        """Add a rule between two addresses of this runtime.

        Raises:
            ForwardRefusedError: An address is of another runtime, or the rule cannot be added.
        """
        for address in (rule.source, rule.target):
            if not self._admission.is_local(address):
                why = f"{address} is no address of this runtime"
                raise ForwardRefusedError(rule.source, rule.target, why)
        self._hops.rows(self._rules.add(rule, writer))

    def remove(self, rule: ForwardRule, writer: str) -> None:
        """End a rule for one of its owners. Idempotent."""
        self._hops.rows(self._rules.remove(rule, writer))

    def spread(self, flight: InFlight, passed: Message, now: float) -> None:
        """Deliver the copies of a message that has passed the checks."""
        direction = Direction.OUTGOING if flight.is_outgoing else Direction.INCOMING
        for copy in self._rules.copies(passed):
            checked = self._pipelines.passed(copy, flight.by, direction)
            if isinstance(checked, Refusal):
                self._hops.denied(copy, flight.by, int(checked.code or 0), checked.why)
                self._hops.dropped(copy, checked.reason)
                continue
            self._hops.submitted(checked, flight.by)
            if self._deliver(checked, flight, now):
                self.spread(flight, checked, now)

    def _deliver(self, copy: Message, of: InFlight, now: float) -> bool:
        is_crowding = copy.is_request and self._answers.is_crowding(copy)
        is_foreign = not of.is_outgoing
        if is_crowding or not self._deliveries.give(copy, copy.to, is_foreign=is_foreign):
            is_there = is_crowding or self._deliveries.is_there(copy.to)
            self._hops.dropped(copy, DropReason.OVERFLOW if is_there else DropReason.NO_TARGET)
            return not is_there
        if copy.is_request:
            self._answers.open(InFlight(copy, of.by, is_outgoing=False, is_copy=True), now)
        return True
