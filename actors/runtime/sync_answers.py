"""What answers mean to the reporter's end of an object (M-39, M-47)."""

from fsm.cores.data_object_terms import (
    ObserversTold,
    ReporterAccepted,
    ReporterRefused,
    RuntimeTold,
)
from specs.message import Message
from specs.reply_code import LAST_SUCCESS, Code

__all__ = ["decision_in", "silence", "told_by"]


def decision_in(observer: str, answer: Message) -> ReporterAccepted | ReporterRefused:
    """Say what the reporter decided about an observer."""
    if answer.code <= LAST_SUCCESS:
        return ReporterAccepted(observer)
    if answer.code == Code.TIMEOUT:
        return silence(observer)
    return ReporterRefused(observer, "the reporter refuses")


def silence(observer: str) -> ReporterAccepted | ReporterRefused:
    """Say what it is if the reporter decides nothing in time."""
    return ReporterRefused(observer, "the reporter did not answer")


def told_by(answer: Message) -> RuntimeTold | ObserversTold:
    """Say which observers know that an object is gone.

    A runtime speaks for its own; a router, which names nobody, for all that are left.
    """
    source = answer.body.get("source")
    return RuntimeTold(source) if isinstance(source, str) else ObserversTold()
