"""The ruling of an enforcement point on one message (POL-01)."""

from collections.abc import Callable
from enum import StrEnum, unique
from typing import final

import attrs

from specs.message import Message

__all__ = ["Decision", "Ruling"]


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
