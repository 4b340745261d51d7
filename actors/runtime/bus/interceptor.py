"""Interface for stages of the application in the pipelines of a Message BUS (BUS-11)."""

from abc import ABC, abstractmethod
from typing import Final, final

import attrs

from specs.errors import ProtoflyError
from specs.message import Message
from specs.reply_code import Code
from specs.routing import APPLICATION_STAGES, Check, Direction


@final
class StagePlaceError(ProtoflyError, public=True):
    """A stage of the application names a position in the pipeline that is not permitted.

    Attributes:
        place: The named position.
    """

    def __init__(self, name: str, place: Check) -> None:
        places = " or ".join(APPLICATION_STAGES)
        super().__init__(f"the stage {name!r} cannot stand at {place}: give its place as {places}")
        self.place = place


@final
@attrs.frozen(slots=True)
class Objection:
    """The refusal of a message by a stage of the application.

    Attributes:
        why: Reason for people, as half a sentence.
        code: Reply code for the requester, whether the message is a request or an answer.
    """

    why: str
    code: Code = Code.FORBIDDEN


class Interceptor(ABC):
    """One stage of an application; it sees each message that is not exempt (`specs.routing`).

    It runs in the task that sends the message, or that ends the wait of a delayed message; no other
    task runs meanwhile. A message on which it raises an exception is dropped: a request is
    answered 500.

    Attributes:
        name: Name for log and trace.
        place: Before or after policy; stages of the same position run in the order of the
            configuration.
        directions: The pipelines that contain it; each message takes one pipeline.
    """

    name: str = "interceptor"
    place: Check = Check.AFTER_POLICY
    directions: frozenset[Direction] = frozenset(Direction)

    @abstractmethod
    def intercept(self, message: Message, by: str) -> Message | Objection:
        """Let a message pass, change its body, or object. Must not wait.

        Args:
            message: The message, with a checked sender; it may be an answer.
            by: Address under which it was submitted.

        Returns:
            The message, or one with another body and the same id, type, sender and receiver; or
            an objection.
        """


NO_INTERCEPTORS: Final[tuple[Interceptor, ...]] = ()
"""Default: the application adds no stages."""
