"""Conversion of HTTP answers of back ends to reply codes and reasons (C-56).

`code_of` maps HTTP statuses to reply codes.
"""

from typing import Final, final

from actors.kit.http_client import HttpAnswer, HttpError
from specs.errors import ReasonError
from specs.reply_code import Code

_SHOWN: Final = 200
"""Characters of a server's own words that are passed on."""


@final
class BackEndError(ReasonError, public=True):
    """A back end sent an answer that cannot be used."""

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
    """Return the reply code for an HTTP status.

    Raises:
        BackEndError: It stands for none: the back end itself has failed.
    """
    code = _ANSWERS.get(answer.status)
    if code is None:
        raise BackEndError(f"{answer.server} answered with status {answer.status}")
    return code


def words(answer: HttpAnswer) -> str:
    """Return the reason in a refusal of a server, if it is a short plain text.

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
