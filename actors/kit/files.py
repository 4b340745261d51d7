"""Helpers for files: reading TOML, writing whole files, and uniform errors of unusable files.

A file is written to a temporary name and then moved to its path: a reader gets all of the new
content or nothing of it.
"""

import os
import secrets
import tomllib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from specs.errors import PlaceError, ReasonError

_MARK: Final = "\ufeff"
_SUFFIX_BYTES: Final = 6

PRIVATE: Final = 0o600
"""Mode of a file that only its owner may read."""

_PUBLIC: Final = 0o644

W = TypeVar("W", Path, str)


def read_toml(text: str) -> dict[str, object]:
    """Parse a TOML document.

    Raises:
        tomllib.TOMLDecodeError: The text is no TOML, or begins with an invisible byte order mark.
    """
    if text.startswith(_MARK):
        raise tomllib.TOMLDecodeError("it begins with a byte order mark; save it without one")
    return tomllib.loads(text)


def check_names(where: str, table: Collection[str], names: Collection[str]) -> None:
    """Raise an error if a table has an unknown key.

    Raises:
        ValueError: The table has an unknown key.
    """
    for odd in sorted(set(table) - set(names)):
        raise ValueError(f"{where}: unknown key {odd!r}")


@contextmanager
def errors_of(where: W, kind: Callable[[W, str], PlaceError]) -> Iterator[None]:
    """Convert all exceptions about a file or server inside the context into errors of one kind.

    Args:
        where: The file or the server.
        kind: Makes the error from the file or server and the reason.

    Raises:
        PlaceError: The file or server cannot be used; the error has the reason.
    """
    try:
        yield
    except (PlaceError, ReasonError) as exc:
        raise kind(where, exc.reason) from exc
    except OSError as exc:
        raise kind(where, exc.strerror or "it cannot be read") from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise kind(where, f"it is no TOML: {exc}") from exc
    except (TypeError, ValueError) as exc:
        raise kind(where, str(exc)) from exc


@contextmanager
def _written(path: Path, content: bytes, mode: int) -> Iterator[Path]:
    """Write a temporary file next to a path; remove the file at the end if it was not moved."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(_SUFFIX_BYTES)}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield fresh
    finally:
        fresh.unlink(missing_ok=True)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, as a whole; an existing file is not replaced.

    Args:
        path: The file.
        content: Its content.

    Raises:
        OSError: The file cannot be written.
    """
    with _written(path, content, PRIVATE) as fresh, suppress(FileExistsError):
        # A link never replaces what is there, as a rename does.
        path.hardlink_to(fresh)


def write_whole(path: Path, content: bytes, mode: int = _PUBLIC) -> None:
    """Write a file so that each reader finds the old content or the new one; blocks.

    On return, the new content is on the disk.

    Args:
        path: Path of the file; its folder is made if it does not exist.
        content: The new content.
        mode: Rights on the file.

    Raises:
        OSError: It cannot be written; the old content is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _written(path, content, mode) as fresh:
        fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
