"""The core of a domain registry without a host: requests and calls in, answers and calls out."""

from fsm.engine import Step
from fsm.registry.records import Answered, Request
from fsm.registry.registration import RegistrationCore, RegistrationPort
from tests.support.link_calls import Call, Calls, RecordingPort, make

tell, asks = Calls(RegistrationCore), Calls(RegistrationPort)


def leave(runtime: str, why: str = "gone", *, is_final: bool = False) -> Call:
    return tell.leave(runtime, why, is_final=is_final)


class LoneRegistry:
    """A core and its port; what the core has else it has, too."""

    def __init__(self, *args, **named) -> None:
        self.port = RecordingPort(RegistrationPort)
        self.core = RegistrationCore(self.port, *args, **named)

    def __getattr__(self, name):
        return getattr(self.core, name)

    def __len__(self) -> int:
        return len(self.core)

    def feed(self, given: Request | Call, now: float) -> list[Step | Call | Answered]:
        """Answer a request, or make a call; return what the port was asked, the answer last."""
        if isinstance(given, Call):
            make(given, self.core, now)
            return self.port.take()
        answer = self.core.answer(given, now)
        return [*self.port.take(), answer]
