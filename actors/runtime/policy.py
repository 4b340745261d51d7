"""Interface by which a runtime asks its policy about each message that is not exempt (BUS-11)."""

from abc import ABC, abstractmethod
from typing import Final, final

import attrs
from typing_extensions import override

from actors.policy.engine import Decision, Ruling
from fsm.policy import terms
from fsm.policy.attributes import Locals
from specs.message import Message
from specs.reply_code import Code, DropReason
from specs.routing import Direction


@attrs.frozen(slots=True)
class Refusal:
    """The reason why a Message BUS does not admit a message.

    Attributes:
        reason: Drop reason for the ledger and the trace.
        why: Reason for people, as half a sentence.
        code: Reply code for a request; None: no answer.
        in_place: Reply code for a component that awaits the answer in place if `code` is None.
    """

    reason: DropReason
    why: str
    code: Code | None = None
    in_place: Code = Code.MALFORMED


class Judge(ABC):
    """Decides about messages for a Message BUS, within the bus's task."""

    @abstractmethod
    def judge(self, message: Message, by: str, direction: Direction, here: Locals) -> Ruling:
        """Return the decision about a message. Must not wait.

        Args:
            message: The message, with a checked sender.
            by: Address under which it was submitted.
            direction: The pipeline that it takes.
            here: The addresses of the runtime.
        """


_WORDS: Final = {
    Direction.INCOMING: str(terms.Direction.IN),
    Direction.OUTGOING: str(terms.Direction.OUT),
}


def direction_word(direction: Direction) -> str:
    """Return the word that policies and traces use for the direction of a message."""
    return _WORDS[direction]


_NAME: Final = "application"


class Policy(Judge):
    """Decides whether a message may pass: a policy that an application has written itself."""

    @abstractmethod
    def refusal(self, message: Message, by: str) -> str | None:
        """Return why a message may not pass, for people; None: it may. Must not wait or raise.

        Args:
            message: The message, with a checked sender.
            by: Address under which it was submitted.
        """

    @final
    @override
    def judge(self, message: Message, by: str, direction: Direction, here: Locals) -> Ruling:
        why = self.refusal(message, by)
        decision = Decision.PERMIT if why is None else Decision.DENY
        return Ruling(decision, _NAME, why or "", direction=direction_word(direction))
