"""The log of the actors, as data."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from actors.kit.log import Style, configure_log


class _Kept(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        line = {"event": record.event, "log_level": record.levelname.lower(), **record.fields}
        if record.exc_info:
            line["exc_info"] = record.exc_info[1]
        self.lines.append(line)


@contextmanager
def unchanged_log() -> Iterator[logging.Logger]:
    """Leave level and handlers of the log as they were."""
    root = logging.getLogger("actors")
    level, handlers = root.level, root.handlers[:]
    try:
        yield root
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


@contextmanager
def text_log() -> Iterator[io.StringIO]:
    """Yield the log as a command writes it."""
    stream = io.StringIO()
    with unchanged_log():
        configure_log(style=Style.TEXT, stream=stream)
        yield stream


@contextmanager
def captured_log() -> Iterator[list[dict[str, object]]]:
    """Keep what is logged, of any severity, and let it be written nowhere else."""
    kept = _Kept()
    with unchanged_log() as root:
        root.setLevel(logging.DEBUG)
        root.handlers[:] = [kept]
        root.propagate = False
        try:
            yield kept.lines
        finally:
            root.propagate = True
