"""Files: TOML that people write, whole files that we write, and what is wrong with a file.

A file is written beside its place, and comes there as a whole: each reader finds all of it or
nothing of it.
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
    """Read a document.

    Raises:
        tomllib.TOMLDecodeError: It is no TOML, or begins with a byte order mark, which nobody sees.
    """
    if text.startswith(_MARK):
        raise tomllib.TOMLDecodeError("it begins with a byte order mark; save it without one")
    return tomllib.loads(text)


def check_names(where: str, table: Collection[str], names: Collection[str]) -> None:
    """Refuse a table with an unknown key.

    Raises:
        ValueError: It has one.
    """
    for odd in sorted(set(table) - set(names)):
        raise ValueError(f"{where}: unknown key {odd!r}")


@contextmanager
def errors_of(where: W, kind: Callable[[W, str], PlaceError]) -> Iterator[None]:
    """Raise an error of a kind for whatever is wrong with a file or a server.

    Args:
        where: The file or the server.
        kind: Makes the error of it and the reason.

    Raises:
        PlaceError: Something is wrong, with the reason.
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
    """Write a file beside a path; if it is still there at the end, it is removed."""
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
    """Write a file that only its owner may read, whole or not at all; an existing one stays.

    Args:
        path: The file.
        content: Its content.

    Raises:
        OSError: It cannot be written.
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
