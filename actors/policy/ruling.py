"""The ruling of an enforcement point on one message (POL-01)."""

from collections.abc import Callable
from enum import StrEnum, unique
from typing import Final, TypeAlias, final

import attrs

from actors.kit.trace import Hop
from fsm.limits.memory import Memory
from specs.limits.protocol import TRACE_PLACES, TRACE_PLACES_BYTES
from specs.message import Message


@final
@unique
class Decision(StrEnum):
    """Decision of the enforcement point about a message."""

    PERMIT = "permit"
    DENY = "deny"


@final
@attrs.frozen
class Ruling:
    """A decision and where it comes from.

    Attributes:
        obligations: What has been done along with it, for the trace (I-K3).
        version: Of the policies by which was decided; None: they have none.
        direction: Whether the message is going `out`, or comes `in` (POL-17).
        marked: The message as it goes on, if the policy has it changed (POL-13).
        after: What is to be done when the message has gone, or was refused; once.
    """

    decision: Decision
    policy: str
    why: str = ""
    obligations: tuple[str, ...] = ()
    version: int | None = None
    direction: str = "in"
    marked: Message | None = None
    after: Callable[[], object] | None = None


_Told: TypeAlias = tuple[str, str, str, int | None, tuple[str, ...], str]


@final
class RulingHops:
    """What a component reports of rulings: equal rulings are reported by the same hop."""

    def __init__(self, actor: str) -> None:
        """Construct it.

        Args:
            actor: Name of the reporting actor.
        """
        self._actor = actor
        self._known: Final = Memory[_Told, Hop](TRACE_PLACES, TRACE_PLACES_BYTES)

    def of(self, ruling: Ruling, why: str = "") -> Hop:
        """Return how a ruling is reported.

        Args:
            ruling: The ruling.
            why: The reason; empty: it is not reported.
        """
        told = (
            ruling.direction, ruling.decision, ruling.policy, ruling.version,
            ruling.obligations, why,
        )  # fmt: skip
        return self._known.get(told) or self._learnt(told)

    def _learnt(self, told: _Told) -> Hop:
        direction, decision, policy, version, obligations, why = told
        hop = Hop(
            self._actor,
            (),
            {
                "direction": direction,
                "decision": decision,
                "policy": policy or None,
                "version": version,
                "obligations": ",".join(obligations) or None,
                "why": why or None,
            },
        )
        return self._known.keep(told, hop, (direction, decision, policy, why, *obligations))
