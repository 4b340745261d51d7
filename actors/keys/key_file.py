"""The file with the private key of a runtime, which only its owner may read."""

import os
from pathlib import Path
from typing import Final, final

from actors.keys.runtime_key import RuntimeKey, make_runtime_key, read_runtime_key
from actors.kit.files import errors_of, write_private
from actors.kit.log import get_logger
from specs.errors import PlaceError
from specs.limits.node import JWKS_BYTES

_log = get_logger("actors.keys")

_OTHERS: Final = 0o077
"""Permission bits for other users: they should not be set, since others could use the key."""


@final
class KeyFileError(PlaceError, public=True):
    """The file of a runtime's key cannot be used; the operator has to act."""

    summary = "cannot use the key file {}"


def open_key_file(path: Path) -> RuntimeKey:
    """Return the private key in a file; if the file is missing, make a key and write the file.

    Two processes that make the same file at the same time get the same key. This function blocks.

    Args:
        path: The file.

    Raises:
        KeyFileError: The file cannot be read or made, or it contains no key for Ed25519.
    """
    with errors_of(path, KeyFileError):
        if not path.exists():
            write_private(path, make_runtime_key().to_jwk())
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            key = read_runtime_key(file.read(JWKS_BYTES))
    if mode & _OTHERS:
        why = f"not only its owner has rights on it; run chmod 600 {path}"
        _log.warning("key file open to others", path=str(path), mode=f"{mode:03o}", why=why)
    return key
