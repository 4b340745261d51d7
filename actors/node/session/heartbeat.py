"""Whether silent peers are there: one task that looks after all links of a node (R8)."""

import math
from typing import Final, Protocol, final

import trio

from fsm.limits.timers import Alarms
from fsm.session.heartbeat import Beat, Heartbeat
from specs.limits.protocol import LATE, PONG_TIMEOUT

__all__ = ["LinkHeartbeat", "Patient"]


class Patient(Protocol):
    """A link that is looked after."""

    @property
    def heard_at(self) -> float:
        """Trio time of the last sign of life."""

    def ask(self) -> None:
        """Ask for one; does not wait."""

    def give_up(self) -> None:
        """Leave: none came."""


@final
class LinkHeartbeat:
    """Asks who has been silent for long, and gives up who does not answer.

    A task for each link would take 2.5 KiB of it. Nothing here waits for a link: who
    does not read holds up nobody.
    """

    def __init__(self) -> None:
        self._patients: Final[dict[int, tuple[Patient, Heartbeat]]] = {}
        self._alarms: Final = Alarms[int]()
        self._somebody = trio.Event()

    def watch(self, number: int, patient: Patient) -> None:
        """Look after a link from now on; `number`: by which it is known here."""
        heart = Heartbeat()
        self._patients[number] = (patient, heart)
        self._alarms.set(number, heart.deadline(patient.heard_at))
        self._somebody.set()

    def forget(self, number: int) -> None:
        """Look after a link no longer, if it was looked after."""
        if self._patients.pop(number, None) is not None:
            self._alarms.set(number, math.inf)

    async def run(self) -> None:
        """Look after everybody; who comes later is never due sooner than who is here."""
        while True:
            due = self._alarms.deadline()
            if math.isinf(due):
                self._somebody = trio.Event()
                await self._somebody.wait()
                continue
            await trio.sleep_until(due)
            self._look(trio.current_time(), due)

    def _look(self, now: float, due: float) -> None:
        late = now - due
        for number in self._alarms.due(now):
            patient, heart = self._patients[number]
            if late > LATE:
                # The node has been busy: what peers have answered may not be read yet.
                self._alarms.set(number, now + min(late, PONG_TIMEOUT))
                continue
            match heart.look(patient.heard_at, now):
                case Beat.PING:
                    patient.ask()
                case Beat.GIVE_UP:
                    patient.give_up()
                    self.forget(number)
                    continue
                case Beat.WAIT:
                    pass
            self._alarms.set(number, heart.deadline(patient.heard_at))
