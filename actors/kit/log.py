"""The log: for people; never evidence, never a body, never a token.

Each module logs through the standard `logging` module, below the logger `actors`, with structlog
in front: an event and its fields. An import configures nothing, so a program that embeds nodes or
runtimes gets its log where it sends its own, and without any configuration warnings on stderr.
"""

import sys
import traceback
from collections.abc import MutableMapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TextIO

import structlog
from typing_extensions import override

__all__ = ["Level", "Style", "configure_log", "get_logger"]


class Level(StrEnum):
    """Minimum severity of log lines."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Style(StrEnum):
    """Formats of log lines."""

    AUTO = "auto"
    """`console` on a terminal, `text` elsewhere."""
    CONSOLE = "console"
    TEXT = "text"
    """key=value; a traceback follows on lines of its own."""
    JSON = "json"


def configure_log(
    level: Level = Level.WARNING, style: Style = Style.AUTO, stream: TextIO | None = None
) -> None:
    """Set up the log of this process; a command does it once, first of all.

    Args:
        level: What is less severe stays unsaid.
        style: How lines look.
        stream: Where they go; standard error by default.
    """
    out = sys.stderr if stream is None else stream
    factory = _to_stderr if stream is None else structlog.PrintLoggerFactory(stream)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *_renderers(style, out),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level.value),
        logger_factory=factory,
        cache_logger_on_first_use=False,
    )


def log_quietly() -> None:
    """Keep the log to warnings on stderr in a program that has set up none.

    A program that embeds nodes or runtimes has its own standard output, and structlog
    would write everything there. An existing configuration of structlog is kept.
    """
    if not structlog.is_configured():
        configure_log()


def _to_stderr(*_args: object) -> structlog.PrintLogger:
    return structlog.PrintLogger(sys.stderr)


def _renderers(style: Style, out: TextIO) -> list[structlog.typing.Processor]:
    # Tracebacks are plain: the ones with local variables would show tokens.
    is_console = style is Style.CONSOLE or (style is Style.AUTO and out.isatty())
    if is_console:
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(exception_formatter=plain)]
    if style is Style.JSON:
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    order = ["timestamp", "level", "event"]
    text = structlog.processors.LogfmtRenderer(key_order=order, drop_missing=True)
    return [structlog.processors.format_exc_info, text]
