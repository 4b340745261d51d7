"""The pipelines of a Message BUS: the checks that each message passes first (BUS-11).

The table in `specs.routing` has the stages, their order, their permissions and the messages that
they skip; this module has the function of each stage.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from actors.kit.log import get_logger
from actors.kit.supervision.supervisor import Crash
from actors.runtime.bus.admission import Admission
from actors.runtime.bus.interceptor import Interceptor, Objection
from actors.runtime.bus.messages import Origin
from actors.runtime.policy import Refusal
from fsm.limits.shares import Memory
from specs.child import CHILDREN
from specs.limits.bus import REMEMBERED, REMEMBERED_BYTES
from specs.message import Message, MessageType
from specs.reply_code import Code, DropReason
from specs.routing import (
    RUNTIME_CHECKS,
    Check,
    Direction,
    Exempt,
    Interception,
)

_log = get_logger("actors.runtime")

Stage: TypeAlias = Callable[[Message, str], Message | Refusal | None]
"""Function of one stage of a pipeline, called with a message and the address of its submitter.

The result None lets the message pass unchanged; a returned message replaces it.
"""

Ends: TypeAlias = tuple[str, MessageType, str, str]
"""Submitter, type, sender and receiver of a message."""

_BY_ENDS: Final = [row.check for row in RUNTIME_CHECKS].index(Check.LOOP) + 1
"""Number of the leading stages whose result depends on type and addresses only, for most messages.
"""


class Pipelines:
    """Runs each message of one bus through the stages of its pipeline."""

    def __init__(
        self,
        admission: Admission,
        duplicate: Stage,
        interceptors: Sequence[Interceptor] = (),
    ) -> None:
        """Construct it.

        Type and addresses that have passed the first checks are cached until a grant changes.

        Args:
            admission: Checks that need grants or policy.
            duplicate: Recognises repeated messages.
            interceptors: The stages of the application.
        """
        work: dict[Check, Callable[[Interception, Message, str], Refusal | None]] = {
            Check.SOURCE: admission.source,
            Check.STATUS_SENDER: admission.status_sender,
            Check.CHILD_WRITER: admission.child_writer,
            Check.STUB_COMMAND: admission.stub_command,
            Check.LOOP: admission.loop,
        }
        self._admission = admission
        self._known: Final = Memory[Ends, Origin](REMEMBERED, REMEMBERED_BYTES)
        self._loop: Final = partial(admission.loop, RUNTIME_CHECKS[_BY_ENDS - 1])
        self._version = admission.version
        self._by_ends, self._others = (
            {
                (way, is_answer): tuple(
                    _stages(
                        way, rows, work, duplicate, interceptors, admission, is_answer=is_answer
                    )
                )
                for way in Direction
                for is_answer in (False, True)
            }
            for rows in (RUNTIME_CHECKS[:_BY_ENDS], RUNTIME_CHECKS[_BY_ENDS:])
        )

    def pass_through(self, message: Message, by: str, direction: Direction) -> Message | Refusal:
        """Return the message after all stages, or the refusal of the first stage that refuses.

        Args:
            message: The message.
            by: Address under which it was submitted.
            direction: The pipeline that it takes.
        """
        # Called for each message of the runtime: the result of the first checks is cached.
        if self._version != self._admission.version:
            self._version = self._admission.version
            self._known.clear()
        ends = (by, message.type, message.from_, message.to)
        # No cache for messages to children, whose body is checked, and for messages of links, whose
        # check depends on the proofs of the link.
        is_carried = "via" in message.body
        origin = Origin.NODE_STUB if is_carried and message.is_last_by(by) else Origin.LOCAL
        is_by_ends = origin is Origin.NODE_STUB or not is_carried
        if is_by_ends and self._known.get(ends) is origin:
            loop = self._loop(message, by) if is_carried else None
            if loop is not None:
                return loop
        else:
            passed = _through(self._by_ends[direction, message.is_response], message, by)
            if isinstance(passed, Refusal):
                return passed
            if is_by_ends and CHILDREN not in message.to and self._admission.origin(by) is origin:
                self._known.keep(ends, origin, ends)
        return _through(self._others[direction, message.is_response], message, by)


def _through(stages: tuple[Stage, ...], message: Message, by: str) -> Message | Refusal:
    for stage in stages:
        result = stage(message, by)
        if result is None:
            continue
        if isinstance(result, Refusal):
            return result
        message = result
    return message


def _stages(
    direction: Direction,
    rows: Sequence[Interception],
    work: Mapping[Check, Callable[[Interception, Message, str], Refusal | None]],
    duplicate: Stage,
    interceptors: Sequence[Interceptor],
    admission: Admission,
    *,
    is_answer: bool,
) -> Iterator[Stage]:
    for row in rows:
        if direction not in row.directions:
            continue
        if row.check is Check.POLICY:
            if not (is_answer and Exempt.ANSWERS in row.exempt):
                yield partial(admission.policy, row, direction)
        elif row.check is Check.DUPLICATE:
            yield duplicate
        elif row.check in work:
            yield partial(work[row.check], row)
        for each in interceptors:
            if each.place is row.check and direction in each.directions:
                yield partial(_intercept, each, row, admission)


def _intercept(
    interceptor: Interceptor, row: Interception, admission: Admission, message: Message, by: str
) -> Message | Refusal | None:
    """Ask a stage of the application; an exception of it does not reach the bus."""
    if admission.is_exempt(message, by, row.exempt):
        return None
    result: Message | Objection | None = None
    with Crash() as crash:
        result = interceptor.intercept(message, by)
    if isinstance(result, Objection):
        return Refusal(row.drop, result.why, result.code)
    if result is not None and _envelope(result) == _envelope(message):
        return result
    why = f"the stage {interceptor.name} crashed on it"
    _log.error("interceptor crashed", name=interceptor.name, exc_info=crash.error)
    return Refusal(DropReason.CRASHED, why, Code.INTERNAL)


def _envelope(message: Message) -> tuple[object, ...]:
    """Return the checked fields of a message, which no stage of the application may change."""
    return message.id, message.type, message.from_, message.to
