"""The errors of operations on data objects."""

from typing import Final, final

from specs.errors import ProtoflyError
from specs.reply_code import Code

_ADVICE: Final = {
    int(Code.UNAUTHENTICATED): "ask while the hyperty is deployed",
    int(Code.FORBIDDEN): "ask its reporter for an invitation",
    int(Code.NOT_FOUND): "ask its reporter for its address",
    int(Code.UNAVAILABLE): "try again later",
    int(Code.TIMEOUT): "try again when its reporter is in reach",
}
"""Advice by code; the reason of any other code says it itself."""


@final
class ObjectError(ProtoflyError, public=True):
    """A data object cannot be reported, changed or observed.

    Attributes:
        about: Address of the object; or, while it has none, a description of it.
        code: Reply code: 400 the request cannot be met, 401 the hyperty is undeployed, 403
            refused, 404 no such object, 408 no answer in time, 409 a conflict, such as a second
            observation, 410 the object or the runtime is gone, 413 too large or too many, 503 it
            cannot be reached.
        why: Reason for people, as half a sentence.
    """

    def __init__(self, about: str, code: int, why: str) -> None:
        advice = _ADVICE.get(code)
        said = f"{about}: {code} {why}".rstrip()
        super().__init__(said if advice is None else f"{said}; {advice}")
        self.about = about
        self.code = code
        self.why = why


@final
class SchemaError(ProtoflyError, ValueError, public=True):
    """A value does not obey the schema of its data object, or the schema is not a JSON Schema.

    The value was not written, and no observer was notified.

    Attributes:
        path: Dotted path in the value; empty: the whole value, or the schema.
        why: Reason for people, as half a sentence.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.path = path
        self.why = why
