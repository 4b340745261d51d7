"""Common parts of the commands about catalogues: files, options, errors as sentences."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Final

import click
import orjson

from actors.catalogue.errors import (
    BadArchiveError,
    BadDescriptorError,
    CatalogueFileError,
    NotServedError,
    RefusedDescriptorError,
    SourceAwayError,
    TrustFileError,
)
from actors.catalogue.publishing import WrongKeyError
from actors.catalogue.source import BadPlaceError
from actors.cli.failure import Meanings, meant
from actors.cli.group import CommandError, ExitCode
from actors.keys.key_set import BadKeysError
from specs.addresses.address import CatalogueType, Entry, entry_at
from specs.errors import ProtoflyError
from specs.jsonvalue import Json, JsonObject

_MEANING: Final[Meanings] = (
    (RefusedDescriptorError, ExitCode.REFUSED, ""),
    (SourceAwayError, ExitCode.CANNOT_CONNECT, "name another catalogue, or try again later"),
    (NotServedError, ExitCode.FAILED, "name something that is published there"),
    (BadPlaceError, ExitCode.CONFIGURATION, "name a directory or an http URL"),
    (TrustFileError, ExitCode.CONFIGURATION, "correct it"),
    (CatalogueFileError, ExitCode.CONFIGURATION, "mend it, or name another with --into"),
    (BadArchiveError, ExitCode.CONFIGURATION, "correct the package"),
    (BadDescriptorError, ExitCode.CONFIGURATION, "correct it"),
    (BadKeysError, ExitCode.CONFIGURATION, "make keys with `token keys`"),
    (WrongKeyError, ExitCode.CONFIGURATION, "make one with `token keys`"),
)
"""Exit status and advice for errors of catalogues."""

_DAY: Final = 86_400


def into_option(command: Callable[..., object]) -> Callable[..., object]:  # type: ignore[explicit-any] # as click has it
    """Give a command `--into DIR`: the directory of a catalogue."""
    option = click.option(
        "--into",
        required=True,
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="Directory of the catalogue; made if it does not exist.",
    )
    return option(wraps(command)(command))


@contextmanager
def explained_errors() -> Iterator[None]:
    """Turn what goes wrong with catalogues into a sentence and an exit status."""
    try:
        yield
    except ProtoflyError as exc:
        known = meant(exc, _MEANING)
        if known is None:
            raise
        raise known from exc


def read_bytes(path: Path, limit: int, option: str) -> bytes:
    """Read a file that was named.

    Raises:
        CommandError: It cannot be read, or is larger than any runtime accepts.
    """
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as exc:
        raise CommandError(
            f"cannot read {path}: {exc.strerror}; name another file with {option}"
        ) from exc
    if len(content) > limit:
        raise CommandError(f"{path} is larger than {limit} bytes; no runtime accepts it")
    return content


def read_json(path: Path, limit: int, option: str) -> JsonObject:
    """Read a file that holds a JSON object.

    Raises:
        CommandError: It cannot be read, or holds none.
    """
    try:
        content: Json = orjson.loads(read_bytes(path, limit, option))
    except orjson.JSONDecodeError as exc:
        raise CommandError(f"{path} is no JSON: {exc}; correct it") from exc
    if not isinstance(content, dict):
        raise CommandError(f"{path} holds no JSON object; correct it")
    return content


def check_entry(_: click.Context, __: click.Parameter, value: str) -> tuple[CatalogueType, str]:
    """Return type and name of an entry; refuse what is no `TYPE/NAME`."""
    kind, _slash, name = value.partition("/")
    entry: Entry | None = entry_at("a.example", kind, name)
    if entry is None:
        known = ", ".join(CatalogueType)
        raise click.BadParameter(
            f"{value!r} is no TYPE/NAME such as protocolstub/default; types are {known}"
        )
    return entry.type, entry.name


def seconds(days: float) -> int:
    """Return days in seconds, at least one."""
    return max(1, int(days * _DAY))
