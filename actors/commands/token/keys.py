"""`python -m actors token keys`: a key that signs tokens, and the set of public keys."""

import os
import re
from pathlib import Path
from typing import Final

import click
import orjson

from actors.cli.failure import say
from actors.cli.group import CommandError
from actors.keys.key_set import ALGORITHMS, BadKeysError, read_keys
from actors.keys.signing import make_key
from specs.jsonvalue import Json, JsonObject

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PRIVATE: Final = 0o600
_PUBLIC: Final = 0o644
_PRIVATE_FOLDER: Final = 0o700
"""Mode of the public set: only its owner may add keys, since a key lets its holder in."""

_SET: Final = "jwks.json"


def _check_name(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _NAME.fullmatch(value):
        raise click.BadParameter(f"{value!r} is no name such as 2026-11 of at most 64 characters")
    return value


@click.command("keys")
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the files; made if it does not exist.",
)
@click.option(
    "--alg",
    type=click.Choice(ALGORITHMS),
    default="EdDSA",
    show_default=True,
    help="Algorithm of the key.",
)
@click.option(
    "--kid",
    metavar="NAME",
    callback=_check_name,
    help="Name of the key in tokens [default: made from the key].",
)
def command(*, out: Path, alg: str, kid: str | None) -> None:
    """Make a key that signs tokens, and put its public part into DIR/jwks.json.

    The private key goes into a file of its own that only you can read; no file is
    overwritten. Called again it adds another key to the set: tokens of both are good
    until you take the old one out of the set.
    """
    key = make_key(alg, kid)
    private, public = out / f"{key.name}.key.json", out / _SET
    try:
        out.mkdir(_PRIVATE_FOLDER, parents=True, exist_ok=True)
        entries = _entries(public, key.name)
        _write(private, orjson.dumps(key.private()), _PRIVATE)
        _replace(public, orjson.dumps({"keys": [*entries, key.public()]}))
    except FileExistsError as exc:
        raise CommandError(
            f"{exc.filename} is there already; choose another --kid or directory"
        ) from exc
    except OSError as exc:
        raise CommandError(
            f"cannot write {exc.filename}: {exc.strerror}; choose another directory with --out"
        ) from exc
    say("token-keys", kid=key.name, alg=alg, key=str(private), jwks=str(public))


def _entries(public: Path, name: str) -> list[Json]:
    """Return the keys that are in the set already."""
    if not public.exists():
        return []
    text = public.read_bytes()
    try:
        known = read_keys(text)
    except BadKeysError as exc:
        raise CommandError(
            f"cannot add to {public}: {exc.reason}; mend it or choose another directory"
        ) from exc
    if name in known:
        raise CommandError(f"{public} has a key {name!r} already; choose another --kid")
    content: JsonObject = orjson.loads(text)
    entries = content["keys"]
    return entries if isinstance(entries, list) else []


def _write(path: Path, text: bytes, mode: int) -> None:
    """Write a file that has its rights from its first moment, and never an existing one."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(text)


def _replace(path: Path, text: bytes) -> None:
    """Write a file so that a reader finds the old one or the new one, whole."""
    fresh = path.with_suffix(f".{os.getpid()}.new")
    _write(fresh, text, _PUBLIC)
    fresh.replace(path)
