"""Errors become one sentence and a status."""

import pytest

from actors.cli.failure import first_known, run
from actors.cli.group import CommandError, ExitCode
from actors.kit.errors import RestartLimitError
from specs.errors import BadUrlError
from transports.errors import DialError, ListenError

DIAL = DialError("ws://127.0.0.1:1/link", "connection refused")


def fails_with(error):
    async def work():
        raise error

    with pytest.raises(CommandError) as caught:
        run(work)
    return caught.value


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DIAL, ExitCode.CANNOT_CONNECT),
        (ListenError("127.0.0.1:1", "it is taken"), ExitCode.FAILED),
        (BadUrlError("x", "it is none"), ExitCode.FAILED),
        (CommandError("no", ExitCode.REFUSED), ExitCode.REFUSED),
        (BaseExceptionGroup("g", [KeyboardInterrupt()]), ExitCode.INTERRUPTED),
        (ExceptionGroup("g", [ExceptionGroup("h", [ValueError("x"), DIAL])]), 5),
    ],
)
def test_a_known_error_is_a_sentence_with_its_status(error, code):
    failure = fails_with(error)
    assert failure.code == code
    assert "\n" not in str(failure)


def test_the_top_level_reports_an_error_beyond_its_last_raiser():
    outer = RestartLimitError("node", "bus")
    outer.__cause__ = DIAL
    assert first_known(ExceptionGroup("g", [outer])) is DIAL


def test_an_unexpected_error_is_not_hidden():
    async def work():
        raise ExceptionGroup("g", [ValueError("a bug")])

    with pytest.raises(ExceptionGroup):
        run(work)
