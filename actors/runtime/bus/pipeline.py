"""The pipelines of a Message BUS: what a message passes before it has any effect (BUS-11).

The stages, their order, what they may do and what they do not see are the table in
`specs.routing`; here each row has the work that belongs to it.

An application's own stages in the pipelines of a runtime's Message BUS (BUS-11).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, final

import attrs
import structlog

from actors.kit.supervision.crash import Crash
from actors.runtime.bus.admission import Admission, Stage
from actors.runtime.policy.hook import Refusal
from specs.errors import ProtoflyError
from specs.message import Message
from specs.reply_code import Code, DropReason
from specs.routing import APPLICATION_STAGES, RUNTIME_CHECKS, Check, Direction, Interception

__all__ = ["NO_INTERCEPTORS", "Interceptor", "Objection", "Pipelines", "StagePlaceError"]


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

_log = structlog.get_logger("actors.runtime")


@final
class Pipelines:
    """Runs the table for one bus."""

    def __init__(
        self, admission: Admission, duplicate: Stage, interceptors: Sequence[Interceptor] = ()
    ) -> None:
        """Construct it.

        Args:
            admission: Makes the checks that need grants, or policy.
            duplicate: Says whether a message was here before.
            interceptors: The application's own stages.
        """
        work: dict[Check, Callable[[Interception], Stage]] = {
            Check.SOURCE: admission.source,
            Check.STATUS_SENDER: admission.status_sender,
            Check.CHILD_WRITER: admission.child_writer,
            Check.LOOP: admission.loop,
            Check.POLICY: admission.policy,
            Check.DUPLICATE: lambda _: duplicate,
        }
        self._stages = {
            way: tuple(_stages(way, work, interceptors, admission)) for way in Direction
        }

    def passed(self, message: Message, by: str, direction: Direction) -> Message | Refusal:
        """Return the message as it goes on, or what the first stage that minds says."""
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
        if row.check in work:
            yield work[row.check](row)
        for each in interceptors:
            if each.place is row.check and direction in each.directions:
                yield _Intercepted(each, row, admission)


@final
@attrs.frozen(slots=True)
class _Intercepted:
    """A stage of the application's own; whatever it does, the bus goes on."""

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
    """Return what was checked, and no stage may change."""
    return message.id, message.type, message.from_, message.to
