"""`python -m actors stub revoke`: what of a domain is good no more."""

import re
import time
from pathlib import Path
from typing import Final

import click

from actors.catalogue.publishing import CatalogueFolder
from actors.cli.failure import say
from actors.cli.options import Count, Quantity, check_domain, if_given
from actors.commands.config import read_signer
from actors.commands.stub.files import check_entry, explained_errors, into_option, seconds
from specs.addresses.address import CatalogueType, Entry
from specs.descriptor import Revoked
from specs.limits.protocol import MAX_ID

_DAYS: Final = 7.0
"""Default validity of a list, in days."""

_HASH: Final = re.compile(r"[0-9a-f]{64}")


def _check_hash(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _HASH.fullmatch(value):
        raise click.BadParameter(f"{value!r} is no SHA-256 of 64 hexadecimal digits")
    return value


@click.command("revoke")
@into_option
@click.option("--domain", required=True, callback=check_domain, help="Domain of the list.")
@click.option(
    "--key",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Private key of the domain.",
)
@click.option(
    "--entry",
    metavar="TYPE/NAME",
    callback=if_given(check_entry),
    help="Place whose descriptors are revoked.",
)
@click.option(
    "--up-to",
    metavar="N",
    type=Count(1, MAX_ID),
    help="Last counter that is revoked [default: all, also later ones].",
)
@click.option(
    "--package", metavar="SHA256", callback=_check_hash, help="Hash of a revoked package."
)
@click.option("--why", metavar="TEXT", default="", help="Reason, for runtimes.")
@click.option(
    "--days",
    metavar="N",
    type=Quantity(min=0, max=365, min_open=True),
    default=_DAYS,
    show_default=True,
    help="Validity of the list; later nothing of the domain is accepted until it is renewed.",
)
def command(
    *,
    into: Path,
    domain: str,
    key: Path,
    entry: tuple[CatalogueType, str] | None,
    up_to: int | None,
    package: str | None,
    why: str,
    days: float,
) -> None:
    """Add an entry to the domain's signed revocation list; without one, renew the list.

    Once there is a list, renew it before it expires.
    """
    if up_to is not None and entry is None:
        raise click.UsageError("--up-to counts descriptors of a place; name it with --entry")
    now = int(time.time_ns() // 1_000_000_000)
    added: list[Revoked] = []
    if entry is not None:
        address = Entry(domain, *entry).address
        added.append(Revoked(cguid=address, counter=up_to or MAX_ID, why=why))
    if package is not None:
        added.append(Revoked(sha256=package, why=why))
    with explained_errors():
        times = now, now + seconds(days)
        made = CatalogueFolder(into).revoke(domain, tuple(added), read_signer(key), times)
    say(
        "stub-revocations",
        domain=made.domain,
        counter=made.counter,
        expires=made.expires,
        entries=len(made.revoked),
    )
