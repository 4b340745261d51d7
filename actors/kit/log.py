"""The log: for people; never evidence, never a body, never a token.

Each module logs through the standard `logging` module, below the logger `actors`, with structlog
in front: an event and its fields. An import configures nothing, so a program that embeds nodes or
runtimes gets its log where it sends its own, and without any configuration warnings on stderr.
"""

import logging
import sys
import traceback
from collections.abc import MutableMapping
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TextIO, final

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


_NUMBERS: Final = MappingProxyType(
    {
        Level.DEBUG: logging.DEBUG,
        Level.INFO: logging.INFO,
        Level.WARNING: logging.WARNING,
        Level.ERROR: logging.ERROR,
    }
)

_ROOT: Final = "actors"
"""The logger above all of ours."""

_WRAPPERS: Final = 4
"""Calls of structlog between a module and `logging`, which names the module in its records."""


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return a logger that takes an event and its fields.

    The message of its records is `event key=value ...`; the attributes `event` and `fields` of a
    record have the parts.

    Args:
        name: Name of the standard logger, `actors` or one below it.
    """
    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            _as_record,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return logger


_fields: Final = structlog.processors.LogfmtRenderer()
_text: Final = structlog.processors.LogfmtRenderer(
    key_order=["timestamp", "level", "event"], drop_missing=True
)
_json: Final = structlog.processors.JSONRenderer()


def _as_record(
    logger: object, method: str, event: MutableMapping[str, object]
) -> tuple[tuple[str], dict[str, object]]:
    """Return the arguments of the standard logger for an event."""
    name, error = str(event.pop("event")), event.pop("exc_info", None)
    text = f"{name} {_fields(logger, method, event)}" if event else name
    extra = {"event": name, "fields": dict(event)}
    return (text,), {"exc_info": error, "extra": extra, "stacklevel": _WRAPPERS}


@final
class _Lines(logging.Formatter):
    """Formats records in one of the styles."""

    def __init__(self, style: Style) -> None:
        super().__init__()
        self._layout = style

    @override
    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, object] = {"event": getattr(record, "event", None) or record.getMessage()}
        event |= getattr(record, "fields", {})
        event["level"] = record.levelname.lower()
        event["timestamp"] = datetime.fromtimestamp(record.created, UTC).isoformat()
        # Tracebacks are plain: the ones with local variables would show tokens.
        error = record.exc_info[1] if record.exc_info else None
        trace = "" if error is None else "".join(traceback.format_exception(error)).rstrip()
        if self._layout is Style.JSON:
            return str(_json(None, "", event | ({"exception": trace} if trace else {})))
        if self._layout is Style.CONSOLE:
            line = structlog.dev.ConsoleRenderer()(None, "", event)
        else:
            line = _text(None, "", event)
        return f"{line}\n{trace}" if trace else line


@final
class _Writer(logging.Handler):
    """Writes each record to a stream; without one, to what is standard error at that time."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self._stream = stream

    @override
    def emit(self, record: logging.LogRecord) -> None:
        try:
            print(self.format(record), file=self._stream or sys.stderr, flush=True)
        except (OSError, ValueError):
            # Standard error is closed or broken: nothing is left to tell that to.
            return


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
    if style is Style.AUTO:
        style = Style.CONSOLE if out.isatty() else Style.TEXT
    writer = _Writer(stream)
    writer.setFormatter(_Lines(style))
    root = logging.getLogger(_ROOT)
    root.setLevel(_NUMBERS[level])
    for former in [one for one in root.handlers if isinstance(one, _Writer)]:
        root.removeHandler(former)
    root.addHandler(writer)
