"""What policy says of a message, and how a message is refused over its link (POL-01, MN-25)."""

from typing import final

from actors.kit.tally import Tally
from actors.node.exchange import Exchange
from actors.node.policy import Asker, Decision, Policy
from actors.node.port import Port
from fsm.cores.node_routing import Refusal
from specs.message import Message, refuse
from specs.routing import Check
from specs.trace import Op

__all__ = ["Gate"]


@final
class Gate:
    """Where the node's policy is asked, once for each message; part of the bus's task.

    Args:
        exchange: Sessions and links.
        policy: Who may send what.
    """

    def __init__(self, exchange: Exchange, policy: Policy) -> None:
        self._exchange = exchange
        self._policy = policy
        self._witness = exchange.witness

    def objection(self, message: Message, asker: Asker) -> Refusal | None:
        """Ask policy about a message; return what it objects to."""
        ruling = self._policy.judge(message, asker)
        self._witness.authz(message, ruling)
        if ruling.decision is Decision.PERMIT:
            return None
        return Refusal(Check.POLICY, ruling.why or "blocked by policy")

    def refuse(self, message: Message, port: Port, refusal: Refusal) -> None:
        """Say no over the link the message came from, wherever it says it is from."""
        code = refusal.code
        if code is not None:
            self._witness.counters.count(Tally.REFUSALS, code)
            self._witness.deny(message, code, refusal.why)
        if code is None or not message.is_request:
            self._witness.drop(message, refusal.reason)
            return
        answer = refuse(message, code, refusal.why)
        self._witness.hop(Op.SYNTH, answer)
        self._exchange.tell_link(port, answer)
        self._witness.xmit(answer, port.name)
