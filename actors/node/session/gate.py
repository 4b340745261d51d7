"""Policy checks of messages, and refusals over their links (POL-01, MN-25)."""

from collections.abc import Callable
from typing import TypeAlias

from actors.kit.counters import Tally
from actors.node.links.connection import Connection
from actors.node.policy_hook import Asker, Policy
from actors.node.session.exchange import Exchange
from actors.policy.engine import Decision
from fsm.bus.node_routing import Refusal
from specs.message import Message, refuse
from specs.routing import Check
from specs.trace import Op

_After: TypeAlias = Callable[[], object]


class Gate:
    """Asks the policy of the node, once for each message; part of the bus's task."""

    def __init__(self, exchange: Exchange, policy: Policy) -> None:
        self._exchange = exchange
        self._policy = policy
        self._trace = exchange.trace
        self._after: _After | None = None

    def objection(self, message: Message, asker: Asker) -> Refusal | None:
        """Ask policy about a message that goes no further; return what it objects to.

        Args:
            message: The message.
            asker: Session or link of the sender.
        """
        passed = self.passed(message, asker)
        return passed if isinstance(passed, Refusal) else None

    def passed(self, message: Message, asker: Asker) -> Message | Refusal:
        """Ask policy about a message; return it as it goes on, or what policy objects to.

        Args:
            message: The message.
            asker: Session or link of the sender.
        """
        if self._after is not None:
            self.settle()
        ruling = self._policy.judge(message, asker)
        self._trace.authz(message, ruling)
        self._after = ruling.after
        if ruling.decision is Decision.PERMIT:
            return message if ruling.marked is None else ruling.marked
        return Refusal(Check.POLICY, ruling.why or "blocked by policy", rule=ruling.policy)

    def settle(self) -> None:
        """Do what policy wants done after the last message has gone, or was refused."""
        after, self._after = self._after, None
        if after is not None:
            after()

    def refuse(self, message: Message, port: Connection, refusal: Refusal) -> None:
        """Refuse a message over the link it came from, wherever it says it is from.

        Args:
            message: The message.
            port: Write end of the link.
            refusal: Code and reason.
        """
        answer = self._answer(message, refusal, port.runtime or port.name)
        if answer is not None:
            self._exchange.send_to_link(port, answer)
            self._trace.passed(Op.XMIT, answer, port.name)

    def turn_back(self, message: Message, peer: str, refusal: Refusal) -> None:
        """Refuse a message to the node of another domain, by its route.

        Args:
            message: The message.
            peer: Address of the peer.
            refusal: Code and reason.
        """
        answer = self._answer(message, refusal, peer)
        if answer is not None:
            self._exchange.send(peer, answer)

    def _answer(self, message: Message, refusal: Refusal, by: str) -> Message | None:
        """Put a refusal on record; return what a request is answered, None for all else."""
        code = refusal.code
        if code is not None:
            self._trace.counters.count(Tally.REFUSALS, code)
            self._trace.deny(message, code, refusal.why)
            self._trace.refused(message, by, code, refusal.why, refusal.ground, refusal.rule)
        if code is None or not message.is_request:
            self._trace.drop(message, refusal.reason)
            return None
        answer = refuse(message, code, refusal.why)
        self._trace.hop(Op.SYNTH, answer)
        return answer
