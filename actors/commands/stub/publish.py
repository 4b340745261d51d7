"""`python -m actors stub publish`: a signed descriptor into the directory of a catalogue."""

import time
from pathlib import Path
from typing import Final

import click

from actors.catalogue.publishing import CatalogueFolder, Offer
from actors.cli.failure import say
from actors.cli.group import echo
from actors.commands.stub.files import explained_errors, into_option, read_bytes
from specs.limits.foreign_code import DESCRIPTOR_BYTES, PACKAGE_BYTES
from specs.limits.group import GROUP_FILE_BYTES
from specs.limits.node import JWKS_BYTES

_FILE: Final = click.Path(dir_okay=False, path_type=Path)


@click.command("publish")
@click.argument("file", type=_FILE)
@into_option
@click.option(
    "--keys",
    metavar="FILE",
    type=_FILE,
    help="Public keys of the domain, published as well; required the first time.",
)
@click.option(
    "--package",
    metavar="FILE",
    type=_FILE,
    help="Package [default: the file with the same name and .zip, if it exists].",
)
def command(*, file: Path, into: Path, keys: Path | None, package: Path | None) -> None:
    """Copy the signed descriptor FILE and its package into a catalogue directory.

    Refused (exit status 4) if runtimes would refuse it: not signed by the published
    keys, an older counter than what is published, expired, or with a package that is not
    the one it promises.
    """
    folder, text = CatalogueFolder(into), read_bytes(file, DESCRIPTOR_BYTES, "FILE")
    archive = package or file.with_suffix(".zip")
    content = None
    if package is not None or (archive != file and archive.exists()):
        content = read_bytes(archive, PACKAGE_BYTES, "--package")
    public = None if keys is None else read_bytes(keys, JWKS_BYTES, "--keys")
    with explained_errors():
        entry, descriptor = folder.publish(Offer(text, content, public), time.time_ns() / 1e9)
    promised = descriptor.source_package
    if promised is not None and promised.size + len(text) > GROUP_FILE_BYTES:
        why = f"with its package it has more than {GROUP_FILE_BYTES} bytes"
        echo(f"protofly: nodes that share an engine do not serve it: {why}", err=True)
    say(
        "stub-published",
        address=entry.address,
        counter=descriptor.counter,
        expires=descriptor.expires,
        file=str(into / entry.path),
    )
