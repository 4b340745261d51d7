"""The file of a runtime's key: its owner alone may read it."""

import os
import secrets
from pathlib import Path
from typing import Final, final

from actors.keys.runtime_key import RuntimeKey, make_runtime_key, read_runtime_key
from actors.kit.files import errors_of
from actors.kit.log import get_logger
from specs.errors import PlaceError
from specs.limits.node import JWKS_BYTES

_log = get_logger("actors.keys")

_PRIVATE: Final = 0o600
_OTHERS: Final = 0o077
"""Rights that only its owner should have: with a key that others can read, they are its owner."""

_SUFFIX_BYTES: Final = 6


@final
class KeyFileError(PlaceError, public=True):
    """The file of a runtime's key cannot be used: the operator must act."""

    summary = "cannot use the key file {}"


def open_key_file(path: Path) -> RuntimeKey:
    """Return the key in a file; a file that is not there is made, with a new key.

    Two processes that make the same file at the same time have the same key. Blocks.

    Args:
        path: The file.

    Raises:
        KeyFileError: It cannot be read or made, or it holds no key for Ed25519.
    """
    with errors_of(path, KeyFileError):
        if not path.exists():
            write_private(path, make_runtime_key().stored())
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            key = read_runtime_key(file.read(JWKS_BYTES))
    if mode & _OTHERS:
        why = f"not only its owner has rights on it; run chmod 600 {path}"
        _log.warning("key file open to others", path=str(path), mode=f"{mode:03o}", why=why)
    return key


def write_private(path: Path, text: bytes) -> None:
    """Write a file that only its owner may read, whole or not at all; an existing one stays.

    Args:
        path: The file.
        text: Its content.

    Raises:
        OSError: It cannot be written.
    """
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(_SUFFIX_BYTES)}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            # A link never replaces what is there, as a rename does.
            path.hardlink_to(fresh)
        except FileExistsError:
            return
    finally:
        fresh.unlink(missing_ok=True)
