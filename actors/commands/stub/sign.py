"""`python -m actors stub sign`: a signed descriptor, with a package of code or without."""

import time
from pathlib import Path
from typing import Final, final

import attrs
import click
import orjson

from actors.catalogue.archive import pack
from actors.catalogue.memory import write_whole
from actors.catalogue.publishing import Publisher, adopted, packaged, signed_draft
from actors.catalogue.seal import SealType, read_descriptor, read_seal
from actors.cli.failure import say
from actors.cli.group import CommandError
from actors.cli.options import Count, Quantity, check_domain
from actors.commands.config import read_signer
from actors.commands.stub.entry_point import check_entry_point
from actors.commands.stub.files import check_entry, explained_errors, read_json, seconds
from actors.keys.key_set import read_keys
from actors.runtime.catalogue import what_runs_here
from fsm.catalogue.descriptor import Facts, HypertyFacts, Refused, judge_hyperty_offer, judge_offer
from fsm.machine_list import MACHINES, fingerprint
from specs.addresses.address import CatalogueType, Entry
from specs.descriptor import LANGUAGE, HypertyDescriptor, StubDescriptor
from specs.jsonvalue import JsonObject
from specs.limits.foreign_code import DESCRIPTOR_BYTES, DESCRIPTOR_LIFE
from specs.limits.node import JWKS_BYTES
from specs.limits.protocol import MAX_ID

_DAYS: Final = 30.0
"""Default validity of a descriptor, in days."""

_FILE: Final = click.Path(dir_okay=False, path_type=Path)


@final
@attrs.frozen
class _Code:
    """The options about a package."""

    folder: Path | None
    entry_point: str | None
    publisher: str | None
    key: Path | None

    def said(self) -> tuple[Path, str, str, Path] | None:
        """Return all of it; None: there is no package."""
        if self.folder is None:
            if (self.entry_point, self.publisher, self.key) == (None, None, None):
                return None
            raise click.UsageError("--entry-point, --publisher and --publisher-key need --package")
        if self.entry_point is None or self.publisher is None or self.key is None:
            raise click.UsageError("--package needs --entry-point, --publisher, --publisher-key")
        return self.folder, self.entry_point, self.publisher, self.key


@click.command("sign")
@click.argument("draft", type=_FILE)
@click.option("--domain", required=True, callback=check_domain, help="Domain of the descriptor.")
@click.option("--key", required=True, metavar="FILE", type=_FILE, help="Private key of the domain.")
@click.option(
    "--out", required=True, metavar="FILE", type=_FILE, help="File for the signed descriptor."
)
@click.option(
    "--entry",
    metavar="TYPE/NAME",
    default="protocolstub/default",
    show_default=True,
    callback=check_entry,
    help="Place in the catalogue; other domains fetch protocolstub/default.",
)
@click.option(
    "--counter",
    metavar="N",
    type=Count(1, MAX_ID),
    help="Counter, greater than the last one [default: seconds since 1970].",
)
@click.option(
    "--days",
    metavar="N",
    type=Quantity(min=0, max=DESCRIPTOR_LIFE / 86_400, min_open=True),
    help=f"How long it is good [default: {_DAYS:.0f}].",
)
@click.option(
    "--machine",
    metavar="NAME",
    type=click.Choice(sorted(MACHINES)),
    help="State machine that the stub follows; required for the code of stubs.",
)
@click.option(
    "--package",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory of the code; it is packed beside the descriptor.",
)
@click.option(
    "--entry-point",
    metavar="module:NAME",
    help="Function that makes the stub, or class of the hyperty.",
)
@click.option(
    "--domain-keys",
    metavar="FILE",
    type=_FILE,
    help="Public keys of `node --domain-key`, as a JSON Web Key Set; by them other domains "
    "verify what the domain states of its runtimes.",
)
@click.option("--publisher", metavar="NAME", help="Publisher of the code.")
@click.option("--publisher-key", metavar="FILE", type=_FILE, help="Private key of the publisher.")
def command(  # noqa: PLR0913 - one for each option
    *,
    draft: Path,
    domain: str,
    key: Path,
    out: Path,
    entry: tuple[CatalogueType, str],
    counter: int | None,
    days: float | None,
    machine: str | None,
    package: Path | None,
    entry_point: str | None,
    domain_keys: Path | None,
    publisher: str | None,
    publisher_key: Path | None,
) -> None:
    """Sign the descriptor in the JSON file DRAFT.

    Counter, expiry and the names of its place are filled in where DRAFT does not say them;
    an option says more than DRAFT does. A file of upstream's catalogue is a draft, too, if it
    describes a data schema, or a stub or hyperty without its code.
    A package is written beside the descriptor, with .zip as its ending.
    """
    place, said = Entry(domain, *entry), read_json(draft, DESCRIPTOR_BYTES, "DRAFT")
    with explained_errors():
        said = adopted(place, said)
    fields = _dated(said, counter, days, machine)
    code = _Code(package, entry_point, publisher, publisher_key).said()
    with explained_errors():
        promise, archive = ({}, b"") if code is None else _promised(place, code)
        stated = {} if domain_keys is None else {"domainKeys": _key_set(domain_keys)}
        content = {"version": str(fields["counter"]), **said, **fields, **stated, **promise}
        text = signed_draft(place, content, read_signer(key))
        _check_use(place, text, draft)
    files = {out: text.encode() + b"\n"}
    if archive:
        files[out.with_suffix(".zip")] = archive
    for path, written in files.items():
        _write(path, written)
    say("stub-signed", address=place.address, **fields, files=[str(path) for path in files])


def _key_set(path: Path) -> JsonObject:
    """Read a set of public keys.

    Raises:
        CommandError: It cannot be read.
        BadKeysError: It is none.
    """
    said = read_json(path, JWKS_BYTES, "--domain-keys")
    read_keys(orjson.dumps(said))
    return said


def _dated(
    said: JsonObject, counter: int | None, days: float | None, machine: str | None
) -> JsonObject:
    """Return counter and expiry from the options, else from the draft, else the defaults."""
    now = int(time.time_ns() // 1_000_000_000)
    fields: JsonObject = {
        "counter": counter or said.get("counter", now),
        "expires": said.get("expires", now + seconds(_DAYS)),
    }
    if days is not None:
        fields["expires"] = now + seconds(days)
    return fields if machine is None else {**fields, "machine": fingerprint(MACHINES[machine])}


def _check_use(place: Entry, text: str, draft: Path) -> None:
    """Refuse a stub or hyperty that no runtime could deploy, whomever it trusts."""
    seal = read_seal(text.encode(), SealType.DESCRIPTOR)
    made, here = read_descriptor(seal.content), what_runs_here()
    refused: Refused | None = None
    if isinstance(made, StubDescriptor):
        refused = judge_offer(Facts(place, made, seal.digest), here)
    elif isinstance(made, HypertyDescriptor):
        refused = judge_hyperty_offer(HypertyFacts(place, made, seal.digest), here)
    if refused is not None:
        raise CommandError(
            f"no runtime could use this: {refused.why}; correct {draft} or the options"
        )


def _promised(place: Entry, code: tuple[Path, str, str, Path]) -> tuple[JsonObject, bytes]:
    """Pack code; return what the descriptor says of the package, and the package."""
    folder, entry_point, name, key = code
    archive = _packed(folder)
    publisher = Publisher(name, read_signer(key))
    promise = packaged(place, archive, entry_point, publisher)
    check_entry_point(archive, entry_point, is_class=place.type is CatalogueType.HYPERTY)
    return {"language": LANGUAGE, **promise}, archive


def _packed(folder: Path) -> bytes:
    try:
        return pack(folder)
    except OSError as exc:
        raise CommandError(
            f"cannot pack {folder}: {exc.strerror}; name another directory with --package"
        ) from exc


def _write(path: Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as exc:
        raise CommandError(
            f"cannot write {path}: {exc.strerror}; name another file with --out"
        ) from exc
