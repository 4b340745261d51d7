"""The open invitations: the answers of observers, and the answers to the reporter (M-33, M-34)."""

import math
from typing import Protocol

from fsm.engine import Entity, Step
from fsm.machines.sync.invitation import INVITATION, Trigger
from specs.reply_code import FIRST_FINAL, LAST_SUCCESS, Code


class InvitationPort(Protocol):
    """What the invitations ask of their host; no method calls them."""

    def step(self, step: Step) -> None:
        """Trace a step of the machine."""

    def send_invitation(self, url: str, observer: str) -> None:
        """Invite an observer (M-34)."""

    def relay(self, url: str, observer: str, code: int, why: str) -> None:
        """Answer the reporter's request with that of the observer (SYN-05).

        Args:
            url: Address of the object.
            observer: Address of the observer.
            code: Its answer; below 200: more is to come.
            why: The description in the answer.
        """


class InvitationsCore:
    """The invitations of one sync manager: an entity of `invitation` per object and observer.

    An observer with an open invitation is not invited again: both requests get its answer.

    Args:
        port: The host.
    """

    def __init__(self, port: InvitationPort) -> None:
        self._port = port
        # All wait equally long, so the first was the last to hear anything.
        self._waits: dict[tuple[str, str], tuple[Entity, float]] = {}

    def deadline(self) -> float:
        """Return when `time_over` is due; infinity: no answer is awaited."""
        return next(iter(self._waits.values()))[1] if self._waits else math.inf

    def invite(self, url: str, observer: str, now: float) -> None:
        """Invite an observer for its reporter (M-33)."""
        if (url, observer) in self._waits:
            return
        entity = Entity(INVITATION, f"{url}|{observer}")
        self._port.step(entity.step(Trigger.SEND))
        self._waits[url, observer] = entity, now + entity.patience
        self._port.send_invitation(url, observer)

    def take_answer(self, url: str, observer: str, code: int, why: str, now: float) -> None:
        """Take an answer, the observer's or a router's for it (M-34).

        Args:
            url: Address of the object.
            observer: Address of the observer.
            code: Any; 408: no answer came.
            why: The description in the answer.
            now: Seconds on the host's clock.
        """
        if (url, observer) not in self._waits:
            return
        entity, _ = self._waits.pop((url, observer))
        self._port.step(entity.step(_meaning(code), why))
        if not entity.may_end:
            self._waits[url, observer] = entity, now + entity.patience
        self._port.relay(url, observer, code, why)

    def withdraw(self, url: str) -> None:
        """End the invitations to an object that is deleted."""
        for key in [key for key in self._waits if key[0] == url]:
            self._end(key, Trigger.OBJECT_DELETED, Code.NOT_FOUND, "the object is deleted")

    def time_over(self, now: float) -> None:
        """End the invitations that were not answered in time."""
        while self.deadline() <= now:
            key = next(iter(self._waits))
            self._end(key, Trigger.SILENCE, Code.TIMEOUT, "no answer came")

    def _end(self, key: tuple[str, str], trigger: Trigger, code: Code, why: str) -> None:
        entity, _ = self._waits.pop(key)
        self._port.step(entity.step(trigger))
        self._port.relay(*key, code, why)


def _meaning(code: int) -> Trigger:
    if code < FIRST_FINAL:
        return Trigger.PROVISIONAL
    if code <= LAST_SUCCESS:
        return Trigger.ACCEPT
    return Trigger.SILENCE if code == Code.TIMEOUT else Trigger.REFUSE
