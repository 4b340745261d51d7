"""Private keys that commands sign with."""

import os
from pathlib import Path
from typing import Final

from actors.cli.command_error import CommandError
from actors.cli.echo import echo
from actors.keys.key_set import BadKeysError
from actors.keys.signing import SigningKey, read_key
from specs.limits.node import JWKS_BYTES

_OTHERS: Final = 0o077
"""Rights that only its owner should have on a private key: a readable key protects nothing."""


def read_signer(path: Path) -> SigningKey:
    """Read a private key; warn if others can read it, too.

    Raises:
        CommandError: It cannot be read, or is none.
    """
    try:
        with path.open("rb") as file:
            signer = read_key(file.read(JWKS_BYTES))
            if os.fstat(file.fileno()).st_mode & _OTHERS:
                warning = "so others can sign as its owner; run chmod 600 on it"
                echo(f"protofly: not only you have rights on {path}, {warning}", err=True)
            return signer
    except OSError as exc:
        raise CommandError(
            f"cannot read the key {path}: {exc.strerror}; make one with `token keys`"
        ) from exc
    except BadKeysError as exc:
        raise CommandError(
            f"cannot sign with {path}: {exc.reason}; make a key with `token keys`"
        ) from exc
