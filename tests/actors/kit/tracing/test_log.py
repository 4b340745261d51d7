"""The log: by `logging`, in the style asked for, from the level on, without local variables."""

import io
import json
import logging
import subprocess
import sys

import pytest

from actors.kit.log import Level, Style, configure_log, get_logger, shared_fields
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


def test_the_log_goes_to_stderr_and_never_to_stdout(capsys):
    configure_log()
    LOG.warning("told", actor="a")

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "event=told actor=a" in captured.err


def test_lines_below_the_level_are_not_logged():
    stream = io.StringIO()
    configure_log(Level.ERROR, Style.TEXT, stream)
    LOG.warning("not told")

    assert stream.getvalue() == ""


def test_a_second_configuration_replaces_the_first():
    streams = io.StringIO(), io.StringIO()
    for stream in streams:
        configure_log(Level.INFO, Style.TEXT, stream)
    LOG.info("told")

    assert [stream.getvalue().count("told") for stream in streams] == [0, 1]


def test_json_is_one_object_a_line():
    stream = io.StringIO()
    configure_log(Level.INFO, Style.JSON, stream)
    LOG.info("told", actor="a")
    crash()

    told, crashed = map(json.loads, stream.getvalue().splitlines())
    assert (told["event"], told["actor"], told["level"]) == ("told", "a", "info")
    assert told["timestamp"].endswith("+00:00")
    assert "ValueError: 5" in crashed["exception"]


@pytest.mark.parametrize("style", [Style.TEXT, Style.CONSOLE, Style.JSON])
def test_a_traceback_shows_no_local_variables(style):
    stream = io.StringIO()
    configure_log(Level.INFO, style, stream)
    crash()

    assert "ValueError: 5" in stream.getvalue()
    assert "T0KEN" not in stream.getvalue()


@pytest.mark.parametrize("style", [Style.TEXT, Style.CONSOLE])
def test_a_traceback_has_lines_of_its_own(style):
    stream = io.StringIO()
    configure_log(Level.INFO, style, stream)
    crash()

    first, *trace = stream.getvalue().splitlines()
    assert "crashed" in first
    assert trace[0] == "Traceback (most recent call last):"
    assert trace[-1] == "ValueError: 5"


def test_a_terminal_gets_colours_by_itself():
    stream = Terminal()
    configure_log(Level.INFO, Style.AUTO, stream)
    LOG.info("told")

    assert "\x1b[" in stream.getvalue()


def test_a_closed_stream_ends_no_caller():
    stream = io.StringIO()
    configure_log(Level.INFO, Style.TEXT, stream)
    stream.close()
    LOG.info("told")


def test_another_program_gets_the_log_as_standard_records(caplog):
    caplog.set_level(logging.INFO, "actors")
    LOG.info("told", actor="a b", count=3)
    crash()

    told, crashed = caplog.records
    assert told.getMessage() == 'told actor="a b" count=3'
    assert (told.name, told.event, told.fields) == (
        "actors.somewhere",
        "told",
        {"actor": "a b", "count": 3},
    )
    assert told.pathname == __file__
    assert "ValueError: 5" in caplog.text
    assert crashed.exc_info[0] is ValueError


def test_fields_of_a_context_are_in_its_lines_only(caplog):
    with shared_fields(node_name="n1"):
        LOG.warning("told", count=3)
        LOG.warning("told", node_name="n2")
    LOG.warning("told")

    told = [record.fields for record in caplog.records]
    assert told == [{"node_name": "n1", "count": 3}, {"node_name": "n2"}, {}]


def test_a_percent_sign_in_an_event_is_no_format(caplog):
    LOG.warning("100 %s done", share="5 %d")
    assert caplog.records[0].getMessage() == '100 %s done share="5 %d"'


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
