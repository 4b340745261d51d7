"""`python -m actors stub verify`: what a descriptor is, and why a runtime would refuse it."""

import time
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

import click

from actors.catalogue.inspection import Believed, Inspection, inspect
from actors.catalogue.source import MemorySource, Source, package_path, source_at
from actors.catalogue.trust_file import read_trust
from actors.cli.failure import run, say
from actors.cli.group import CommandError, ExitCode, echo
from actors.commands.stub.files import explained_errors, read_bytes
from actors.keys.key_set import read_keys
from actors.runtime.catalogue import what_runs_here
from specs.addresses.address import WELL_KNOWN
from specs.limits.foreign_code import DESCRIPTOR_BYTES, PACKAGE_BYTES
from specs.limits.node import JWKS_BYTES
from transports.bodies import write_body

_FILE: Final = click.Path(dir_okay=False, path_type=Path)
_MARK: Final = f"/{WELL_KNOWN}/"
_WORDS: Final = {True: "ok", False: "refused", None: "unknown"}


@click.command("verify")
@click.argument("where")
@click.option("--trust", metavar="FILE", type=_FILE, help="Trust file, as for runtimes.")
@click.option("--keys", metavar="FILE", type=_FILE, help="Public keys of the domain.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def command(*, where: str, trust: Path | None, keys: Path | None, as_json: bool) -> int:
    """Show the descriptor at WHERE, and each check that a runtime makes.

    WHERE is a file, whose package is the file with the same name and .zip, or a place in a
    catalogue such as https://catalogue.b.example/.well-known/protocolstub/default or the
    same in a directory. Exit status 4: it would be refused. Without --trust or --keys no
    signature is verified.
    """
    with explained_errors():
        believed = Believed(
            None if trust is None else read_trust(trust),
            None if keys is None else read_keys(read_bytes(keys, JWKS_BYTES, "--keys")),
        )
        source, path = _located(where)
    seen: list[Inspection] = []
    run(partial(_inspect, source, path, believed, seen))
    [inspection] = seen
    (_print_json if as_json else _print)(inspection)
    if inspection.refused is not None:
        why = f"{inspection.refused.why}; {inspection.refused.advice}"
        raise CommandError(f"a runtime would refuse it: {why}", ExitCode.REFUSED)
    return ExitCode.OK


def _located(where: str) -> tuple[Source, str]:
    """Return the catalogue that WHERE stands in, and the path there."""
    base, mark, path = where.rpartition(_MARK)
    if mark:
        return source_at(base), f"{WELL_KNOWN}/{path}"
    file = Path(where)
    files = {file.name: read_bytes(file, DESCRIPTOR_BYTES, "WHERE")}
    package = file.with_suffix(".zip")
    if package != file and package.exists():
        content = read_bytes(package, PACKAGE_BYTES, "WHERE")
        files[package_path(sha256(content).hexdigest())] = content
    return MemorySource(where, files), file.name


async def _inspect(
    source: Source, path: str, believed: Believed, seen: list[Inspection]
) -> ExitCode:
    here = what_runs_here()
    try:
        with explained_errors():
            seen.append(await inspect(source, path, believed, here, time.time_ns() / 1e9))
    finally:
        await source.aclose()
    return ExitCode.OK


def _print_json(inspection: Inspection) -> None:
    for check in inspection.checks:
        say("stub-check", check=check.name, passed=check.passed, text=check.text)
    if inspection.descriptor is not None:
        say("stub-descriptor", descriptor=write_body(inspection.descriptor))


def _print(inspection: Inspection) -> None:
    for check in inspection.checks:
        echo(f"{_WORDS[check.passed]:<9}{check.name:<20}{check.text}")
