"""`python -m actors stub list`: what a catalogue offers."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, final

import attrs
import click

from actors.catalogue.errors import (
    BadDescriptorError,
    BadSealError,
    NotServedError,
    SourceAwayError,
)
from actors.catalogue.seal import (
    SealType,
    entry_of,
    read_descriptor,
    read_listing,
    read_seal,
    signed_revocations,
    verified,
)
from actors.catalogue.source import LISTING, Source, source_at
from actors.cli.failure import run, say
from actors.cli.group import ExitCode, echo
from actors.commands.stub.files import explained_errors
from actors.keys.key_set import BadKeysError, Keys, read_keys
from fsm.catalogue.descriptor import Memory, judge_entry
from specs.addresses.address import DOMAIN_KEYS, REVOKED, WELL_KNOWN
from specs.descriptor import Described, Revocations, StubDescriptor
from specs.limits.foreign_code import DESCRIPTOR_BYTES, LISTING_BYTES, REVOCATIONS_BYTES
from specs.limits.node import JWKS_BYTES

_HEADS: Final = ("entry", "version", "counter", "expires", "how", "state")


@final
@attrs.frozen
class _Line:
    """One entry of a catalogue.

    Attributes:
        descriptor: What it says; None: that cannot be read.
        state: Whether it is good by what the catalogue itself publishes, or why not.
    """

    entry: str
    descriptor: Described | None
    state: str

    def fields(self) -> dict[str, object]:
        """Return the shown fields, in the order of the table."""
        said = self.descriptor
        if said is None:
            return {"entry": self.entry, "state": self.state}
        return {
            "entry": self.entry,
            "version": said.version,
            "counter": said.counter,
            "expires": datetime.fromtimestamp(min(said.expires, _LATEST), UTC).isoformat(),
            "how": _how(said),
            "state": self.state,
        }


_LATEST: Final = 253_402_300_799
"""The last second that a date can be written for."""


@click.command("list")
@click.argument("where")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def command(*, where: str, as_json: bool) -> int:
    """List the entries of the catalogue at WHERE, a directory or http URL.

    `signed` means: by a key that the catalogue itself publishes, and neither expired nor
    revoked. Whether that is the domain's is for `stub verify --trust` to say.
    """
    lines: list[_Line] = []
    with explained_errors():
        source = source_at(where)
    run(partial(_listed, source, lines))
    fields = [line.fields() for line in lines]
    if as_json:
        for one in fields:
            say("stub", **one)
    else:
        _table(fields)
    return ExitCode.OK


async def _listed(source: Source, lines: list[_Line]) -> ExitCode:
    try:
        with explained_errors():
            listing = read_listing(await source.read(LISTING, LISTING_BYTES))
            keys = await _keys(source)
            places = [f"{one.type}/{one.name}" for one in listing.entries]
            memory = Memory(revocations=await _revocations(source, keys))
            lines.extend([await _line(source, place, keys, memory) for place in places])
    finally:
        await source.aclose()
    return ExitCode.OK


async def _keys(source: Source) -> Keys:
    try:
        return read_keys(await source.read(DOMAIN_KEYS, JWKS_BYTES))
    except (NotServedError, BadKeysError):
        return {}


async def _revocations(source: Source, keys: Keys) -> Revocations | None:
    """Return what is revoked; None: there is no list that counts."""
    try:
        text = await source.read(REVOKED, REVOCATIONS_BYTES)
        return signed_revocations(text, keys)
    except (NotServedError, BadSealError, BadDescriptorError):
        return None


async def _line(source: Source, entry: str, keys: Keys, memory: Memory) -> _Line:
    descriptor: Described | None = None
    try:
        seal = read_seal(
            await source.read(f"{WELL_KNOWN}/{entry}", DESCRIPTOR_BYTES), SealType.DESCRIPTOR
        )
        descriptor = read_descriptor(seal.content)
        verified(seal, keys)
        place, now = entry_of(descriptor), time.time_ns() / 1e9
        refused = judge_entry(place, descriptor, memory, seal.digest, now)
    except BadSealError as exc:
        return _Line(entry, descriptor, exc.why)
    except (BadDescriptorError, NotServedError, SourceAwayError) as exc:
        return _Line(entry, descriptor, str(exc))
    return _Line(entry, descriptor, "signed" if refused is None else str(refused.reason))


def _how(descriptor: Described) -> str:
    if descriptor.source_package is not None:
        return f"code of {descriptor.source_package.publisher}"
    if isinstance(descriptor, StubDescriptor) and descriptor.profile is not None:
        return " ".join(filter(None, (descriptor.profile.stub, descriptor.profile.endpoint)))
    return ""


def _table(fields: Sequence[dict[str, object]]) -> None:
    rows = [_HEADS, *(tuple(str(one.get(head, "")) for head in _HEADS) for one in fields)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADS))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        echo("  ".join(cells).rstrip())
