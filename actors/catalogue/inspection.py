"""Inspection of a published descriptor: makes a runtime's checks and reports each to the user.

Nothing is stored and nothing is deployed; the memory of a runtime about earlier descriptors is not
known here.
"""

from typing import Final, TypeAlias, final

import attrs

from actors.catalogue import errors
from actors.catalogue import seal as seals
from actors.catalogue.client import domain_trust, keys_of
from actors.catalogue.source import Source, package_path
from actors.catalogue.trust_file import Trust
from actors.keys.key_set import Keys
from fsm.catalogue import descriptor as descriptors
from specs.addresses.address import REVOKED, Entry
from specs.descriptor import (
    Described,
    HypertyDescriptor,
    Revocations,
    SourcePackage,
    StubDescriptor,
)
from specs.limits.foreign_code import DESCRIPTOR_BYTES, PACKAGE_BYTES, REVOCATIONS_BYTES

_PROFILE: Final = "a stub that ships is pointed at it"
_PACKAGE: Final = "its code runs in a sandbox"
_MISPLACED: Final = "publish it there, or sign it for where it stands"


@final
@attrs.frozen
class Check:
    """Result of one check of a descriptor's inspection.

    Attributes:
        passed: Whether the check passed; None: it could not be made.
    """

    name: str
    text: str
    passed: bool | None = True


Inspection: TypeAlias = tuple[tuple[Check, ...], Described | None, descriptors.Refused | None]
"""The checks in order; the descriptor, if there is one; and its refusal, if any."""


async def inspect(
    source: Source,
    path: str,
    trust: Trust | None,
    keys: Keys | None,
    here: descriptors.Here,
    now: float,
) -> Inspection:
    """Inspect the descriptor at a path of a catalogue.

    If cancelled, nothing has changed.

    Args:
        source: Place of the catalogue.
        path: Path of the descriptor in the catalogue.
        trust: Trust of a runtime; None: it was not given.
        keys: Keys of the domain, if only the signature is to be verified.
        here: State of the inspecting runtime.
        now: Current time, in seconds.

    Raises:
        NotServedError: Nothing is at the path.
        SourceAwayError: The catalogue cannot be read.
    """
    inspector = _Inspector(source, trust, keys, here, now)
    text = await source.read(path, DESCRIPTOR_BYTES)
    refused: descriptors.Refused | None = None
    try:
        await inspector.run(text, path)
    except errors.RefusalError as exc:
        refused = exc.refused
        inspector.add(str(refused.reason), refused.why, passed=False)
    return tuple(inspector.checks), inspector.descriptor, refused


@attrs.define
class _Inspector:
    source: Source
    trust: Trust | None
    keys: Keys | None
    here: descriptors.Here
    now: float
    checks: list[Check] = attrs.field(factory=list)
    descriptor: Described | None = None

    def add(self, name: str, finding: str, *, passed: bool | None = True) -> None:
        """Add the outcome of a check."""
        self.checks.append(Check(name, finding, passed))

    async def run(self, text: bytes, path: str) -> None:
        """Make all checks of the descriptor.

        Raises:
            RefusalError: A check failed.
        """
        seal = seals.read_seal(text, seals.SealType.DESCRIPTOR)
        self.descriptor = descriptor = seals.read_descriptor(seal.content)
        entry, now = seals.entry_of(descriptor), self.now
        self.add("form", f"a {descriptor.type} for {entry.address}")
        if not path.endswith(entry.path) and "/" in path:
            why = f"it stands at {path} and was signed for {entry.path}"
            errors.refuse_if(descriptors.Refused(descriptors.Reason.MISPLACED, why, _MISPLACED))
        trusted = None if self.trust is None else domain_trust(self.trust, entry.domain)
        keys, revocations = self.keys, None
        if keys is None and trusted is not None:
            keys, _ = await keys_of(trusted.keys, self.source, None)
        if keys is None:
            self.add("signature", "not verified: no trusted keys were given", passed=None)
        else:
            seals.read_verified(seal, keys)
            self.add("signature", f"by the key {seal.key_name!r}")
            revocations = await self._read_revocations(entry, keys)
        errors.refuse_if(
            descriptors.judge_entry(entry, descriptor, seal.digest, now, None, revocations)
        )
        days_left = (descriptor.expires - now) / 86_400
        self.add("time", f"good for {days_left:.1f} days, counter {descriptor.counter}")
        if trusted is not None and isinstance(descriptor, StubDescriptor | HypertyDescriptor):
            errors.refuse_if(
                descriptors.judge_use(descriptor, trusted.terms, self.here, revocations)
            )
            self.add("level", _PROFILE if descriptor.source_package is None else _PACKAGE)
        if descriptor.source_package is not None:
            await self._package(descriptor.source_package)

    async def _read_revocations(self, entry: Entry, keys: Keys) -> Revocations | None:
        try:
            text = await self.source.read(REVOKED, REVOCATIONS_BYTES)
        except (errors.NotServedError, errors.SourceAwayError):
            self.add("revoked", "the catalogue has no list of what is revoked")
            return None
        revocations = seals.signed_revocations(text, keys)
        errors.refuse_if(descriptors.judge_revocations(entry.domain, revocations, None, self.now))
        self.add("revoked", f"the list has {len(revocations.revoked)} entries")
        return revocations

    async def _package(self, promised: SourcePackage) -> None:
        if self.trust is not None:
            keys = self.trust.publishers.get(promised.publisher, {})
            seals.check_publisher(promised, keys)
            self.add("publisher", f"signed by {promised.publisher!r}")
        content = await self.source.read(package_path(promised.sha256), PACKAGE_BYTES)
        errors.refuse_if(seals.flaw_of(promised, content))
        self.add("package", f"{promised.size} bytes, {promised.sha256}")
