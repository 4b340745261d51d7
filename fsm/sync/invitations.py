"""The open invitations: the answers of observers, and the answers to the reporter (M-33, M-34)."""

import math
from typing import TypeAlias, assert_never, final

import attrs

from fsm.engine import Entity, Step
from fsm.machines.sync.invitation import INVITATION, Trigger
from specs.reply_code import FIRST_FINAL, LAST_SUCCESS, Code

__all__ = [
    "AnswerRelayed",
    "InvitationEffect",
    "InvitationInput",
    "InvitationsCore",
    "InviteAsked",
    "InviteeAnswered",
    "ObjectGone",
    "SendInvitation",
    "SilenceEnded",
]


@final
@attrs.frozen(slots=True)
class InviteAsked:
    """The reporter wants an observer invited (M-33)."""

    url: str
    observer: str


@final
@attrs.frozen(slots=True)
class InviteeAnswered:
    """An answer to an invitation, the observer's or a router's for it (M-34).

    Attributes:
        code: Any; 408: no answer came.
        why: The description in the answer.
    """

    url: str
    observer: str
    code: int
    why: str = ""


@final
@attrs.frozen(slots=True)
class ObjectGone:
    """The object is deleted: its invitations end."""

    url: str


@final
@attrs.frozen(slots=True)
class SilenceEnded:
    """The deadline is over."""


InvitationInput: TypeAlias = InviteAsked | InviteeAnswered | ObjectGone | SilenceEnded


@final
@attrs.frozen(slots=True)
class SendInvitation:
    """Invite the observer (M-34)."""

    url: str
    observer: str


@final
@attrs.frozen(slots=True)
class AnswerRelayed:
    """Answer the reporter's request, with the address of the observer (SYN-05).

    Attributes:
        code: Below 200: more is to come.
    """

    url: str
    observer: str
    code: int
    why: str = ""


InvitationEffect: TypeAlias = Step | SendInvitation | AnswerRelayed


@final
@attrs.frozen(slots=True)
class _Wait:
    entity: Entity
    until: float


@final
class InvitationsCore:
    """The invitations of one sync manager: an entity of `invitation` per object and observer.

    An observer with an open invitation is not invited again: both requests get its answer.
    """

    def __init__(self) -> None:
        # All wait equally long, so the first was the last to hear anything.
        self._waits: dict[tuple[str, str], _Wait] = {}

    def deadline(self) -> float:
        """Return when to be fed `SilenceEnded`; infinity: no answer is awaited."""
        first = next(iter(self._waits.values()), None)
        return math.inf if first is None else first.until

    def feed(self, happened: InvitationInput, now: float) -> list[InvitationEffect]:
        """Take an input; return the effects, in order.

        Args:
            happened: The input.
            now: Seconds on the host's clock.
        """
        match happened:
            case InviteAsked(url, observer):
                return self._send(url, observer, now)
            case InviteeAnswered():
                return self._answered(happened, now)
            case ObjectGone(url):
                return self._withdraw(url)
            case SilenceEnded():
                return self._silence(now)
            case _:
                assert_never(happened)

    def _send(self, url: str, observer: str, now: float) -> list[InvitationEffect]:
        if (url, observer) in self._waits:
            return []
        entity = Entity(INVITATION, f"{url}|{observer}")
        step = entity.step(Trigger.SEND)
        self._waits[url, observer] = _Wait(entity, now + entity.patience)
        return [step, SendInvitation(url, observer)]

    def _answered(self, answer: InviteeAnswered, now: float) -> list[InvitationEffect]:
        wait = self._waits.pop((answer.url, answer.observer), None)
        if wait is None:
            return []
        entity = wait.entity
        step = entity.step(_meaning(answer.code), answer.why)
        if not entity.may_end:
            self._waits[answer.url, answer.observer] = _Wait(entity, now + entity.patience)
        return [step, AnswerRelayed(answer.url, answer.observer, answer.code, answer.why)]

    def _withdraw(self, url: str) -> list[InvitationEffect]:
        effects: list[InvitationEffect] = []
        for key in [key for key in self._waits if key[0] == url]:
            step = self._waits.pop(key).entity.step(Trigger.OBJECT_DELETED)
            effects += [step, AnswerRelayed(*key, Code.NOT_FOUND, "the object is deleted")]
        return effects

    def _silence(self, now: float) -> list[InvitationEffect]:
        effects: list[InvitationEffect] = []
        while self.deadline() <= now:
            key = next(iter(self._waits))
            step = self._waits.pop(key).entity.step(Trigger.SILENCE)
            effects += [step, AnswerRelayed(*key, Code.TIMEOUT, "no answer came")]
        return effects


def _meaning(code: int) -> Trigger:
    if code < FIRST_FINAL:
        return Trigger.PROVISIONAL
    if code <= LAST_SUCCESS:
        return Trigger.ACCEPT
    return Trigger.SILENCE if code == Code.TIMEOUT else Trigger.REFUSE
