"""The log: on stderr, in the style asked for, from the level on, never with local variables."""

import io
import json

import pytest
import structlog

from actors.kit.log import Level, Style, configure_log, log_quietly


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def log_lines():
    """Leave the log as it was."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def fail(pass_phrase):
    raise ValueError(len(pass_phrase))


def crash():
    try:
        fail("NEK0T"[::-1])
    except ValueError as error:
        structlog.get_logger().error("crashed", exc_info=error)


def test_the_log_goes_to_stderr_and_never_to_stdout(capsys):
    configure_log()
    structlog.get_logger().warning("told", actor="a")

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "event=told actor=a" in captured.err


def test_lines_below_the_level_are_not_logged():
    stream = io.StringIO()
    configure_log(Level.ERROR, Style.TEXT, stream)
    structlog.get_logger().warning("not told")

    assert stream.getvalue() == ""


def test_json_is_one_object_a_line():
    stream = io.StringIO()
    configure_log(Level.INFO, Style.JSON, stream)
    structlog.get_logger().info("told", actor="a")

    reported = json.loads(stream.getvalue())
    assert (reported["event"], reported["actor"], reported["level"]) == ("told", "a", "info")


@pytest.mark.parametrize("style", [Style.TEXT, Style.CONSOLE, Style.JSON])
def test_a_traceback_shows_no_local_variables(style):
    stream = io.StringIO()
    configure_log(Level.INFO, style, stream)
    crash()

    assert "ValueError: 5" in stream.getvalue()
    assert "T0KEN" not in stream.getvalue()


def test_a_terminal_gets_colours_by_itself():
    stream = Terminal()
    configure_log(Level.INFO, Style.AUTO, stream)
    structlog.get_logger().info("told")

    assert "\x1b[" in stream.getvalue()


def test_a_program_that_has_set_up_no_log_hears_warnings_only(capsys):
    structlog.reset_defaults()
    log_quietly()
    structlog.get_logger().info("routine")
    structlog.get_logger().warning("trouble")
    heard = capsys.readouterr()
    assert heard.out == ""
    assert "trouble" in heard.err
    assert "routine" not in heard.err


def test_a_program_that_has_set_up_its_log_keeps_it():
    reported = []

    def keep(_, name, event):
        reported.append((name, event["event"]))
        raise structlog.DropEvent

    structlog.reset_defaults()
    structlog.configure(processors=[keep])
    log_quietly()
    structlog.get_logger().info("routine")
    assert reported == [("info", "routine")]
