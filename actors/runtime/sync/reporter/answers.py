"""What answers mean to the reporter's end of an object (M-39, M-47)."""

from fsm.sync.reporter_io import (
    ObserversTold,
    ReporterAccepted,
    ReporterAsked,
    ReporterRefused,
    RuntimeTold,
)
from specs.message import Message, reason_in
from specs.reply_code import LAST_SUCCESS, Code

__all__ = ["decision_in", "silence", "told_by"]


def decision_in(asked: ReporterAsked, answer: Message) -> ReporterAccepted | ReporterRefused:
    """Say what the reporter decided about an observer."""
    if answer.code <= LAST_SUCCESS:
        return ReporterAccepted(asked.observer, asked.question)
    if answer.code == Code.TIMEOUT:
        return silence(asked)
    why = reason_in(answer)
    if answer.code == Code.FORBIDDEN:
        return _refused(asked, why or "the reporter refuses")
    return _refused(asked, f"the reporter did not decide: {answer.code} {why}".rstrip())


def silence(asked: ReporterAsked) -> ReporterAccepted | ReporterRefused:
    """Say what it is if the reporter decides nothing in time."""
    return _refused(asked, "the reporter did not answer")


def _refused(asked: ReporterAsked, why: str) -> ReporterRefused:
    return ReporterRefused(asked.observer, why, asked.question)


def told_by(answer: Message) -> RuntimeTold | ObserversTold:
    """Say which observers know that an object is gone.

    A runtime speaks for its own; a router, which names nobody, for all that are left.
    """
    source = answer.body.get("source")
    return RuntimeTold(source) if isinstance(source, str) else ObserversTold()
