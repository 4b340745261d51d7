"""TOML, with the one error named that its reader does not name."""

import tomllib
from typing import Final

_MARK: Final = "\ufeff"


def read_toml(text: str) -> dict[str, object]:
    """Read a document.

    Raises:
        tomllib.TOMLDecodeError: It is no TOML, or begins with a byte order mark, which nobody sees.
    """
    if text.startswith(_MARK):
        raise tomllib.TOMLDecodeError("it begins with a byte order mark; save it without one")
    return tomllib.loads(text)
