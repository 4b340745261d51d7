"""Which HTTP statuses of a back end are answers, and which say that it is broken (C-56)."""

from typing import Final

from actors.kit.http_client import HttpAnswer
from actors.node.connectors.service import BackEndError
from specs.reply_code import Code

__all__ = ["code_of"]

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
