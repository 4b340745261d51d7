"""The base of all errors of this project, and the errors that data can cause.

There is one class for each party that must act on the error. Other packages add their own errors
below `ProtoflyError`: `fsm.table`, `transports.errors`, `actors.kit.errors`.
"""

from pathlib import Path
from typing import ClassVar, Final, final

from typing_extensions import override

from specs.reply_code import Code

_PUBLIC: Final = "actors"
"""The module from which programs import the errors."""


class ProtoflyError(Exception):
    """Base of all errors of this project; never raised itself.

    Errors with `public=True` are exported by `actors`, and tracebacks name them as such.
    """

    __module__ = _PUBLIC

    @override
    def __init_subclass__(cls, *, public: bool = False) -> None:
        super().__init_subclass__()
        if public:
            cls.__module__ = _PUBLIC


class ReasonError(ProtoflyError):
    """Base of errors that have a reason; never raised itself.

    Attributes:
        summary: What failed, as the beginning of the sentence that ends with the reason.
        reason: The reason, as half a sentence.
    """

    summary: ClassVar[str]

    def __init__(self, reason: str) -> None:
        super().__init__(f"{self.summary}: {reason}")
        self.reason = reason


class PlaceError(ProtoflyError):
    """Base of errors about a file or a server; never raised itself.

    Attributes:
        summary: As in `ReasonError`; `{}` stands for the file or server.
        where: The file or server.
        reason: The reason, as half a sentence.
    """

    summary: ClassVar[str]

    def __init__(self, where: Path | str, reason: str) -> None:
        super().__init__(f"{self.summary.format(where)}: {reason}")
        self.where = where
        self.reason = reason


class SpecError(ProtoflyError):
    """A table or a declaration in this program contradicts itself: fix the table."""


@final
class BadUrlError(ProtoflyError, public=True):
    """A text from a peer or a user is no address: refuse the text.

    Attributes:
        text: The text.
        reason: The rule that it breaks, as half a sentence.
    """

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"{text!r} is no address: {reason}")
        self.text = text
        self.reason = reason


@final
class BadMessageError(ProtoflyError, public=True):
    """A message is invalid: refuse the message.

    Attributes:
        reason: The rule that the message breaks, as half a sentence.
        code: Code of the answer, if an answer is possible.
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
        description: Reason for people in the answer; empty: none.
        retry_after: Seconds after which another attempt makes sense; None: not stated.
    """

    def __init__(self, code: int, description: str, retry_after: float | None = None) -> None:
        super().__init__(f"{code} {description}" if description else str(code))
        self.code = code
        self.description = description
        self.retry_after = retry_after
