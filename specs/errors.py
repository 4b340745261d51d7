"""The root of every error this project raises, and the leaves that data can cause.

Errors are split by the party that must act. Each layer adds its own leaves under
`ProtoflyError`: `fsm.table`, `transports.errors`, `actors.kit.errors`.
"""

from pathlib import Path
from typing import ClassVar, Final, final

from typing_extensions import override

from specs.reply_code import Code

_PUBLIC: Final = "actors"
"""The module from which programs take the names of errors."""


class ProtoflyError(Exception):
    """Root of all errors of this project; never raised itself.

    Those with `public=True` are names of `actors`, and show that as their module.
    """

    __module__ = _PUBLIC

    @override
    def __init_subclass__(cls, *, public: bool = False) -> None:
        super().__init_subclass__()
        if public:
            cls.__module__ = _PUBLIC


class ReasonError(ProtoflyError):
    """Base of errors that say of one thing why not; never raised itself.

    Attributes:
        summary: What is wrong, as the beginning of the sentence that ends with the reason.
        reason: Why, as half a sentence.
    """

    summary: ClassVar[str]

    def __init__(self, reason: str) -> None:
        super().__init__(f"{self.summary}: {reason}")
        self.reason = reason


class PlaceError(ProtoflyError):
    """Base of errors that say of a file or a server why not; never raised itself.

    Attributes:
        summary: As of `ReasonError`; `{}` stands for the place.
        where: The place.
        reason: Why, as half a sentence.
    """

    summary: ClassVar[str]

    def __init__(self, where: Path | str, reason: str) -> None:
        super().__init__(f"{self.summary.format(where)}: {reason}")
        self.where = where
        self.reason = reason


class SpecError(ProtoflyError):
    """A table or a declaration contradicts itself: fix the table."""


@final
class BadUrlError(ProtoflyError, public=True):
    """A peer or a user wrote something that is no address: refuse it.

    Attributes:
        text: What was written.
        reason: Which rule it breaks, as half a sentence.
    """

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"{text!r} is no address: {reason}")
        self.text = text
        self.reason = reason


@final
class BadMessageError(ProtoflyError, public=True):
    """A peer sent something that is no message: refuse it.

    Attributes:
        reason: Which rule it breaks, as half a sentence.
        code: What to answer with, if an answer is possible.
    """

    def __init__(self, reason: str, code: Code = Code.MALFORMED) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


@final
class AnswerError(ProtoflyError, public=True):
    """The answer to a request is a refusal; raised by `Message.raise_for_code`.

    Attributes:
        code: Reply code of the answer.
        description: Reason for people, as the answer says it; empty: it says none.
        retry_after: Seconds after which another attempt makes sense; None: the answer does not
            say.
    """

    def __init__(self, code: int, description: str, retry_after: float | None = None) -> None:
        super().__init__(f"{code} {description}" if description else str(code))
        self.code = code
        self.description = description
        self.retry_after = retry_after
