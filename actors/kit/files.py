"""Files that people write: TOML, and one way to say what is wrong with a file or a server."""

import tomllib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from specs.errors import PlaceError, ReasonError

_MARK: Final = "\ufeff"

W = TypeVar("W", Path, str)


def read_toml(text: str) -> dict[str, object]:
    """Read a document.

    Raises:
        tomllib.TOMLDecodeError: It is no TOML, or begins with a byte order mark, which nobody sees.
    """
    if text.startswith(_MARK):
        raise tomllib.TOMLDecodeError("it begins with a byte order mark; save it without one")
    return tomllib.loads(text)


def check_names(where: str, said: Collection[str], names: Collection[str]) -> None:
    """Refuse a table with a name that has no meaning.

    Raises:
        ValueError: It has one.
    """
    for odd in sorted(set(said) - set(names)):
        raise ValueError(f"{where} says {odd!r}, which has no meaning")


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
