"""The answers of services behind HTTP, in the protocol's terms (C-56).

`code_of` maps HTTP statuses to reply codes.
"""

from typing import Final, final

from actors.kit.http_client import HttpAnswer, HttpError
from specs.errors import ReasonError
from specs.reply_code import Code

__all__ = ["BackEndError", "code_of", "words"]

_SHOWN: Final = 200
"""Characters of a server's own words that are passed on."""


@final
class BackEndError(ReasonError):
    """The back end was asked, and what came is no answer."""

    summary = "the back end failed"


_ANSWERS: Final = {
    200: Code.OK,
    201: Code.OK,
    204: Code.OK,
    400: Code.MALFORMED,
    401: Code.UNAUTHENTICATED,
    403: Code.FORBIDDEN,
    404: Code.NOT_FOUND,
    408: Code.TIMEOUT,
    409: Code.CONFLICT,
    410: Code.GONE,
    413: Code.TOO_LARGE,
    503: Code.UNAVAILABLE,
}


def code_of(answer: HttpAnswer) -> Code:
    """Return the code that a status stands for.

    Raises:
        BackEndError: It stands for none: the back end itself has failed.
    """
    code = _ANSWERS.get(answer.status)
    if code is None:
        raise BackEndError(f"{answer.server} answered with status {answer.status}")
    return code


def words(answer: HttpAnswer) -> str:
    """Return what a server says to a refusal, if it says anything that is short and plain.

    Args:
        answer: The answer.
    """
    try:
        said = answer.json()
    except HttpError:
        said = None
    words = said.get("message") or said.get("description") if isinstance(said, dict) else None
    if isinstance(words, str) and words.isprintable():
        return words[:_SHOWN]
    return f"it answered with status {answer.status}"
