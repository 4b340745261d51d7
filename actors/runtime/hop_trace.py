"""Writer of the trace records about messages for the routers and stubs of a runtime."""

from collections.abc import Iterator
from itertools import count
from typing import Unpack

import attrs

from actors.kit.counters import Counters, Tally
from actors.kit.log import get_logger
from actors.kit.trace import Hop, Hops, More, Tracer
from actors.policy.engine import Ruling, RulingHops
from fsm.bus.transactions import Steps, is_sampled
from fsm.catalogue.descriptor import Reason
from fsm.effects import RowChanged
from fsm.engine import Step
from specs.message import Message
from specs.reply_code import DropReason
from specs.trace import Fact, Kind, Op

_log = get_logger("actors.runtime")


class HopTrace:
    """Writes the trace records of one router or stub, and counts the messages that it drops.

    Attributes:
        is_on: Whether any message is recorded; checked first, for each message.
        steps: Transactions whose steps are recorded.
    """

    def __init__(self, tracer: Tracer, actor: str, counters: Counters) -> None:
        self._tracer = tracer
        self._messages = tracer.messages
        self._actor = actor
        self._counters = counters
        self._listen = tracer.hops
        self._sample, self._watches = tracer.sample, tracer.watches
        self.is_on = tracer.hops or tracer.watches or tracer.sample > 0
        self.steps = Steps.REPORTED if tracer.steps else Steps.UNREPORTED
        if tracer.watches and not tracer.hops:
            self.steps = Steps.SAMPLED
        self._admitted = Hops(actor, lambda by: {"by": by}, Op.SUBMIT, Op.ADMIT)
        self._delivered = Hops(actor, lambda listener: {"listener": listener}, Op.DELIVER)
        self._ruled = RulingHops(actor)
        self._crossed: dict[tuple[str, Op], tuple[Hop, Iterator[int]]] = {}

    def _is_wanted(self, message: Message, *, is_watched: bool = True) -> bool:
        """Return whether a message is sampled, for spans or for the checks of claims."""
        if self._sample and not message.id % self._sample:
            return True
        return is_watched and self._watches and is_sampled(message.id)

    def say(self, op: Op, message: Message, **more: Unpack[More]) -> None:
        """Write a trace record about a message."""
        is_watched = op is Op.CALLBACK
        if self._listen or (self.is_on and self._is_wanted(message, is_watched=is_watched)):
            self._messages.message(self._actor, op, message, **more)

    def record_submission(self, message: Message, by: str) -> None:
        """Record that a message was submitted and admitted."""
        if self._listen or (self.is_on and self._is_wanted(message)):
            self._messages.hop(self._admitted[by], message)

    def record_delivery(self, message: Message, listener: str) -> None:
        """Record that a message was put into the mailbox of a listener."""
        if self._listen or (self.is_on and self._is_wanted(message)):
            self._messages.hop(self._delivered[listener], message)

    def record_denial(self, message: Message, by: str, code: int, why: str) -> None:
        """Record that a message was submitted and refused."""
        if self._listen or (self.is_on and self._is_wanted(message, is_watched=False)):
            fact = self._tracer.message_fact(Op.SUBMIT, message, by=by)
            self._tracer.record(self._actor, fact)
            denial = attrs.evolve(fact, op=Op.DENY, code=code or None, why=why)
            self._tracer.record(self._actor, denial)

    def record_decision(self, message: Message, ruling: Ruling) -> None:
        """Record the decision of the policy on a message."""
        if self._listen:
            self._messages.hop(self._ruled.of(ruling, ruling.why), message)

    def record_drop(self, message: Message, reason: DropReason) -> None:
        """Record and count that a message is dropped."""
        self._counters.drop(reason, message, self._actor)
        self.say(Op.DROP, message, reason=reason)

    def record_own_answer(self, response: Message) -> None:
        """Record that the router or stub itself answers a request."""
        self.say(Op.SYNTH, response)

    def record_crossing(self, op: Op, message: Message, stub: str, link: str) -> None:
        """Record that a link has sent or received a message; `seq` counts them for each link."""
        if self._listen or (self._sample and not message.id % self._sample):
            hop, numbers = self._crossed.get((link, op)) or self._first(op, stub, link)
            self._messages.hop(hop, message, next(numbers))

    def _first(self, op: Op, stub: str, link: str) -> tuple[Hop, Iterator[int]]:
        hop = Hop(self._actor, (op,), {"stub": stub, "link": link})
        crossings = self._crossed[link, op] = hop, count(1)
        return crossings

    def rows(self, changes: list[RowChanged]) -> None:
        """Record which entries of a routing table were added, changed or removed."""
        if self.is_on:
            for change in changes:
                self._tracer.row(self._actor, change)

    def step(self, step: Step | None) -> None:
        """Record a state transition of an entity, also if no messages are traced; None: no step."""
        if step is not None:
            self._tracer.step(self._actor, step)

    def stub_refused(self, address: str, why: str) -> None:
        """Log, count and trace that a descriptor is for another kind of stub than the one needed.

        Args:
            address: Catalogue address of the descriptor.
            why: The reason, as a sentence.
        """
        reason = Reason.WRONG_KIND
        _log.warning("stub refused", entry=address, reason=str(reason), why=why)
        self._counters.count(Tally.DESCRIPTORS, reason)
        fact = Fact(k=Kind.DESCRIPTOR, op=Op.REFUSED, to=address, reason=str(reason), why=why)
        self._tracer.record(self._actor, fact)

    def hint_refused(self, entity: str, why: str) -> None:
        """Log, count and trace that a sender's hint about links to an entity was wrong (RES-16).

        Args:
            why: The reason, as half a sentence.
        """
        _log.warning("link hint refused", why=why)
        self._counters.count(Tally.HINTS)
        fact = Fact(k=Kind.RESOLVE, op=Op.REFUSED, to=entity, why=why)
        self._tracer.record(self._actor, fact)

    def fact(self, fact: Fact) -> None:
        """Write any other trace record."""
        if self.is_on:
            self._tracer.record(self._actor, fact)
