"""The log: for people; never evidence, never a body, never a token.

Each module logs through the standard `logging` module, below the logger `actors`: an event and its
fields, which structlog writes. An import configures nothing, so a program that embeds nodes or
runtimes gets its log where it sends its own, and without any configuration warnings on stderr.
"""

import logging
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
"""The logger above all of ours."""

_WRAPPERS: Final = 3
"""Calls of this module between another one and `logging`, which names the module in its records."""

_shared: Final[ContextVar[Mapping[str, object]]] = ContextVar("_shared")


class Log:
    """A logger that takes an event and its fields.

    The message of its records is `event key=value ...`; the attributes `event` and `fields` of a
    record have the parts. The field `exc_info` is an exception.
    """

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        self._logger: Final = logging.getLogger(name)

    def debug(self, event: str, /, **fields: object) -> None:
        """Log what only helps to find a defect."""
        self._log(logging.DEBUG, event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        """Log what is as it should be."""
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, /, **fields: object) -> None:
        """Log what an operator should know."""
        self._log(logging.WARNING, event, fields)

    def error(self, event: str, /, **fields: object) -> None:
        """Log what has failed."""
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
    """Give the lines that are logged in this context some fields."""
    token = _shared.set(fields)
    try:
        yield
    finally:
        _shared.reset(token)


def quiet_libraries() -> None:
    """Restrict the library of state machines to warnings, unless the program says otherwise.

    It logs each step of each machine at the level INFO.
    """
    above, library = logging.getLogger("transitions"), logging.getLogger("transitions.core")
    if above.level == library.level == logging.NOTSET:
        library.setLevel(logging.WARNING)


def prepare_log() -> None:
    """Import what writes lines, so that nobody waits for that when the first one is logged."""
    _renderer(None)


@cache
def _renderer(style: Style | None) -> Callable[[None, str, dict[str, object]], object]:
    """Return what writes the fields of a line; None: in the message of a standard record.

    structlog is imported with the first line, once, in some 60 ms: it brings asyncio and more, and
    would take a twelfth of the time in which a runtime starts.
    """
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
    """Formats records in one of the styles."""

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
    """Return a field with nothing in it that a terminal would obey."""
    return value if isinstance(value, int | float | None) else one_line(str(value))


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
    for former in [handler for handler in root.handlers if isinstance(handler, _Writer)]:
        root.removeHandler(former)
    root.addHandler(writer)
