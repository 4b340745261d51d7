"""What a hyperty gets to know when something about a data object was refused."""

from typing import Final, final

from specs.errors import ProtoflyError
from specs.reply_code import Code

__all__ = ["ObjectError", "SchemaError"]

_ADVICE: Final = {
    int(Code.UNAUTHENTICATED): "ask while the hyperty is deployed",
    int(Code.FORBIDDEN): "ask its reporter for an invitation",
    int(Code.NOT_FOUND): "ask its reporter for its address",
    int(Code.UNAVAILABLE): "try again when the message node is in reach",
    int(Code.TIMEOUT): "try again when its reporter is in reach",
}
"""What to do, by code; another refusal says it itself."""


@final
class ObjectError(ProtoflyError):
    """A data object cannot be reported, changed or observed.

    Attributes:
        about: The object's address, or what it was to be.
        code: The reply code: 403 refused, 404 no such object, 408 no answer in time,
            409 observed already, 410 gone, 503 no way there.
        why: Half a sentence for people.
    """

    def __init__(self, about: str, code: int, why: str) -> None:
        advice = _ADVICE.get(code)
        said = f"{about}: {code} {why}".rstrip()
        super().__init__(said if advice is None else f"{said}; {advice}")
        self.about = about
        self.code = code
        self.why = why


@final
class SchemaError(ProtoflyError, ValueError):
    """A value of a data object is none that its schema takes, or the schema is none itself.

    What was to be written was not: nothing has changed, and nobody was told.

    Attributes:
        path: Where in the value, dotted; empty: the whole, or the schema.
        why: Half a sentence for people.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.path = path
        self.why = why
