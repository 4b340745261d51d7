"""Logging for operators; log lines never contain message bodies or tokens."""

import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Final, TextIO

from typing_extensions import override

from specs.jsonvalue import one_line, visible


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
"""Name of the logger above all loggers of this project."""

_WRAPPERS: Final = 3
"""Stack frames to skip so that a record names the module that called the log."""

_shared: Final[ContextVar[Mapping[str, object]]] = ContextVar("_shared")


class Log:
    """Logger whose methods take an event and its fields."""

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        self._logger: Final = logging.getLogger(name)

    def debug(self, event: str, /, **fields: object) -> None:
        """Log an event that only helps to find a defect."""
        self._log(logging.DEBUG, event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        """Log a normal event."""
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, /, **fields: object) -> None:
        """Log an event that an operator should know about."""
        self._log(logging.WARNING, event, fields)

    def error(self, event: str, /, **fields: object) -> None:
        """Log a failure."""
        self._log(logging.ERROR, event, fields)

    def _log(self, level: int, event: str, fields: dict[str, object]) -> None:
        if not self._logger.isEnabledFor(level):
            return
        error = fields.pop("exc_info", None)
        fields = {**_shared.get({}), **fields}
        text = f"{event} {_renderer(None)(None, '', dict(fields))}" if fields else event
        text = visible(text)
        extra = {"event": event, "fields": fields}
        exc_info = error if isinstance(error, BaseException) else None
        self._logger.log(level, text, exc_info=exc_info, extra=extra, stacklevel=_WRAPPERS)


def get_logger(name: str) -> Log:
    """Return a logger.

    Args:
        name: Name of the standard logger, `actors` or one below it.
    """
    return Log(name)


@contextmanager
def shared_fields(**fields: object) -> Iterator[None]:
    """Add fields to all log lines that are written inside the context."""
    token = _shared.set(fields)
    try:
        yield
    finally:
        _shared.reset(token)


def quiet_libraries() -> None:
    """Restrict the log of the library `transitions` to warnings, unless the program configured it.

    This library logs each state transition of each machine at the level INFO.
    """
    above, library = logging.getLogger("transitions"), logging.getLogger("transitions.core")
    if above.level == library.level == logging.NOTSET:
        library.setLevel(logging.WARNING)


def prepare_log() -> None:
    """Import the library structlog early, so that the first log line is written without delay."""
    _renderer(None)


@cache
def _renderer(style: Style | None) -> Callable[[None, str, dict[str, object]], object]:
    """Return the function that formats a line's fields; style None: for a record's message."""
    import structlog  # noqa: PLC0415

    match style:
        case Style.JSON:
            return structlog.processors.JSONRenderer()
        case Style.CONSOLE:
            return structlog.dev.ConsoleRenderer()
        case None:
            return structlog.processors.LogfmtRenderer()
        case _:
            order = ["timestamp", "level", "event"]
            return structlog.processors.LogfmtRenderer(key_order=order, drop_missing=True)


class _Lines(logging.Formatter):
    """Log formatter that writes records in one of the styles."""

    def __init__(self, style: Style) -> None:
        super().__init__()
        self._layout = style

    @override
    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, object] = {"event": getattr(record, "event", None) or record.getMessage()}
        event |= getattr(record, "fields", {})
        if self._layout is Style.CONSOLE:
            # Its own colours come later: what others have chosen cannot be looked at then.
            event = {name: _plain(each) for name, each in event.items()}
        event["level"] = record.levelname.lower()
        event["timestamp"] = datetime.fromtimestamp(record.created, UTC).isoformat()
        # Tracebacks are plain: the ones with local variables would show tokens.
        error = record.exc_info[1] if record.exc_info else None
        trace = "" if error is None else "".join(traceback.format_exception(error)).rstrip()
        if trace and self._layout is Style.JSON:
            event["exception"], trace = trace, ""
        line = str(_renderer(self._layout)(None, "", event))
        line = line if self._layout is Style.CONSOLE else visible(line)
        return f"{line}\n{visible(trace)}" if trace else line


def _plain(value: object) -> object:
    """Return a field value without characters that control a terminal."""
    return value if isinstance(value, int | float | None) else one_line(str(value))


class _Writer(logging.Handler):
    """Log handler that writes to a stream; without a stream, to the current standard error."""

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
    """Configure the log of this process; a command calls this function once, first of all.

    Args:
        level: Minimum severity; less severe events are not logged.
        style: How lines look.
        stream: Destination of the lines; standard error by default.
    """
    out = sys.stderr if stream is None else stream
    if style is Style.AUTO:
        # See https://no-color.org: any text but an empty one.
        is_coloured = out.isatty() and not os.environ.get("NO_COLOR")
        style = Style.CONSOLE if is_coloured else Style.TEXT
    writer = _Writer(stream)
    writer.setFormatter(_Lines(style))
    root = logging.getLogger(_ROOT)
    root.setLevel(_NUMBERS[level])
    for former in [handler for handler in root.handlers if isinstance(handler, _Writer)]:
        root.removeHandler(former)
    root.addHandler(writer)
