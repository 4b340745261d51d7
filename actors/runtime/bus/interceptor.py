"""An application's own stages in the pipelines of a runtime's Message BUS (BUS-11)."""

from abc import ABC, abstractmethod
from typing import Final, final

import attrs

from specs.errors import ProtoflyError
from specs.message import Message
from specs.reply_code import Code
from specs.routing import APPLICATION_STAGES, Check, Direction

__all__ = ["NO_INTERCEPTORS", "Interceptor", "Objection", "StagePlaceError"]


@final
class StagePlaceError(ProtoflyError):
    """A stage of the application's own cannot stand where it says.

    Attributes:
        place: Where that is.
    """

    def __init__(self, name: str, place: Check) -> None:
        places = " or ".join(APPLICATION_STAGES)
        super().__init__(f"the stage {name!r} cannot stand at {place}: give its place as {places}")
        self.place = place


@final
@attrs.frozen(slots=True)
class Objection:
    """A message goes no further.

    Attributes:
        why: Half a sentence for people.
        code: What a request is answered with; and who asked, if it was an answer.
    """

    why: str
    code: Code = Code.FORBIDDEN


class Interceptor(ABC):
    """One stage: sees each message that is not exempt (`specs.routing`), in the bus's own task.

    A message that it crashes on goes no further: a request is answered 500.

    Attributes:
        name: For log and trace.
        place: Before or after policy; those of one place run in the order they were given.
        directions: Which pipelines it is part of; a message takes one of them.
    """

    name: str = "interceptor"
    place: Check = Check.AFTER_POLICY
    directions: frozenset[Direction] = frozenset(Direction)

    @abstractmethod
    def intercept(self, message: Message, by: str) -> Message | Objection:
        """Return the message to let it pass, or one with another body, or object. Never waits.

        Args:
            message: Its source has been checked; it may be an answer.
            by: Under which address it was submitted.
        """


NO_INTERCEPTORS: Final[tuple[Interceptor, ...]] = ()
"""The application has no stages of its own."""
