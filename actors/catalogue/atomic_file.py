"""Files that are found whole or not at all, whenever the power goes."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["write_whole"]

_MODE: Final = 0o644


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that whoever reads it finds the old one or the new one; blocks.

    When this returns, the new one is on the disk.

    Raises:
        OSError: It cannot be written; the old one is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, _MODE)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
