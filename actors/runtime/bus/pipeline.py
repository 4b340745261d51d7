"""The pipelines of a Message BUS: the stages that each message passes first (BUS-11).

The table in `specs.routing` has the stages, their order, what they may do and which messages
they do not see; this module has the work of each row, and the interface for stages of the
application.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, final

import attrs

from actors.kit.log import get_logger
from actors.kit.supervision.monitor import Crash
from actors.runtime.bus.admission import Admission, Stage
from actors.runtime.policy import Refusal
from specs.errors import ProtoflyError
from specs.message import Message
from specs.reply_code import Code, DropReason
from specs.routing import APPLICATION_STAGES, RUNTIME_CHECKS, Check, Direction, Interception

__all__ = ["NO_INTERCEPTORS", "Interceptor", "Objection", "Pipelines", "StagePlaceError"]


@final
class StagePlaceError(ProtoflyError):
    """A stage of the application names a place where none may stand.

    Attributes:
        place: The place.
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

    It runs in the task of the Message BUS, which handles no other message meanwhile. A message
    on which it raises an exception is dropped: a request is answered 500.

    Attributes:
        name: Name for log and trace.
        place: Before or after policy; stages of the same place run in the order of the
            configuration.
        directions: The pipelines it is part of; each message takes one of them.
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
"""The application has no stages of its own."""

_log = get_logger("actors.runtime")


@final
class Pipelines:
    """Runs the stages of the table for one bus."""

    def __init__(
        self, admission: Admission, duplicate: Stage, interceptors: Sequence[Interceptor] = ()
    ) -> None:
        """Construct it.

        Args:
            admission: Checks that need grants or policy.
            duplicate: Recognises repeated messages.
            interceptors: The stages of the application.
        """
        work: dict[Check, Callable[[Interception], Stage]] = {
            Check.SOURCE: admission.source,
            Check.STATUS_SENDER: admission.status_sender,
            Check.CHILD_WRITER: admission.child_writer,
            Check.STUB_COMMAND: admission.stub_command,
            Check.LOOP: admission.loop,
            Check.DUPLICATE: lambda _: duplicate,
        }
        self._stages = {
            one: tuple(_stages(one, work, interceptors, admission)) for one in Direction
        }

    def passed(self, message: Message, by: str, direction: Direction) -> Message | Refusal:
        """Return the message after all stages, or the refusal of the first stage that refuses.

        Args:
            message: The message.
            by: Address under which it was submitted.
            direction: The pipeline that it takes.
        """
        for stage in self._stages[direction]:
            said = stage(message, by)
            if said is None:
                continue
            if isinstance(said, Refusal):
                return said
            message = said
        return message


def _stages(
    direction: Direction,
    work: Mapping[Check, Callable[[Interception], Stage]],
    interceptors: Sequence[Interceptor],
    admission: Admission,
) -> Iterator[Stage]:
    for row in RUNTIME_CHECKS:
        if direction not in row.directions:
            continue
        if row.check is Check.POLICY:
            yield admission.policy(row, direction)
        elif row.check in work:
            yield work[row.check](row)
        for each in interceptors:
            if each.place is row.check and direction in each.directions:
                yield _Intercepted(each, row, admission)


@final
@attrs.frozen(slots=True)
class _Intercepted:
    """A stage of the application; an exception of it does not reach the bus."""

    _interceptor: Interceptor
    _row: Interception
    _admission: Admission

    def __call__(self, message: Message, by: str) -> Message | Refusal | None:
        if self._admission.is_exempt(message, by, self._row.exempt):
            return None
        said: Message | Objection | None = None
        with Crash() as crash:
            said = self._interceptor.intercept(message, by)
        if isinstance(said, Objection):
            return Refusal(self._row.drop, said.why, said.code)
        if said is not None and _envelope(said) == _envelope(message):
            return said
        why = f"the stage {self._interceptor.name} crashed on it"
        _log.error("interceptor crashed", name=self._interceptor.name, exc_info=crash.error)
        return Refusal(DropReason.CRASHED, why, Code.INTERNAL)


def _envelope(message: Message) -> tuple[object, ...]:
    """Return the parts of a message that were checked and that no stage may change."""
    return message.id, message.type, message.from_, message.to
