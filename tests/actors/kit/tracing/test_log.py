"""The log: by `logging`, in the style asked for, from the level on, without local variables."""

import io
import json
import logging
import subprocess
import sys

import pytest

from actors.kit.log import Level, Style, configure_log, get_logger
from tests.support.log import unchanged_log

LOG = get_logger("actors.somewhere")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def restored():
    with unchanged_log() as root:
        root.setLevel(logging.NOTSET)
        root.handlers[:] = []
        yield


def fail(pass_phrase):
    raise ValueError(len(pass_phrase))


def crash():
    try:
        fail("NEK0T"[::-1])
    except ValueError as error:
        LOG.error("crashed", exc_info=error)  # noqa: TRY400 - as modules do


def test_json_is_one_object_a_line():
    stream = io.StringIO()
    configure_log(Level.INFO, Style.JSON, stream)
    LOG.info("told", actor="a")
    crash()

    told, crashed = map(json.loads, stream.getvalue().splitlines())
    assert (told["event"], told["actor"], told["level"]) == ("told", "a", "info")
    assert told["timestamp"].endswith("+00:00")
    assert "ValueError: 5" in crashed["exception"]


@pytest.mark.parametrize(("no_color", "are_there"), [("", True), ("1", False)])
def test_a_terminal_gets_colours_unless_its_user_wants_none(no_color, are_there, monkeypatch):
    monkeypatch.setenv("NO_COLOR", no_color)
    stream = Terminal()
    configure_log(Level.INFO, Style.AUTO, stream)
    LOG.info("told")

    assert "told" in stream.getvalue()
    assert ("\x1b[" in stream.getvalue()) is are_there


def test_a_closed_stream_ends_no_caller():
    stream = io.StringIO()
    configure_log(Level.INFO, Style.TEXT, stream)
    stream.close()
    LOG.info("told")


def test_a_program_that_has_set_up_no_log_hears_warnings_only():
    program = (
        "import actors, logging\n"
        "actors.open_node, actors.open_runtime\n"
        "from actors.kit.log import get_logger\n"
        "assert not logging.getLogger().handlers + logging.getLogger('actors').handlers\n"
        "get_logger('actors.x').info('routine')\n"
        "get_logger('actors.x').warning('trouble', port=1)\n"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert (ended.stdout, ended.stderr) == ("", "trouble port=1\n")
