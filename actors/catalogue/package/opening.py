"""Texts and bytes of a catalogue, opened: each comes out as what it should be, or as a verdict."""

from actors.catalogue.errors import BadDescriptorError, BadSealError
from actors.catalogue.package.archive import facts_of
from actors.catalogue.package.reading import read_descriptor, read_revocations
from actors.catalogue.package.seal import Sealed, SealType, read_seal, verified
from actors.catalogue.refusals import RefusalError, from_error
from actors.keys.key_set import Keys
from fsm.catalogue.descriptor_io import Reason, Refused
from fsm.catalogue.descriptor_trust import judge_package
from specs.descriptor import Described, Revocations, SchemaDescriptor, SourcePackage, StubDescriptor

__all__ = [
    "flaw_of",
    "known_revocations",
    "revocations_of",
    "schema_of",
    "sealed_descriptor",
    "stub_of",
]


def sealed_descriptor(text: bytes) -> Sealed:
    """Return the parts of a descriptor; nothing is verified.

    Raises:
        RefusalError: It is not signed.
    """
    try:
        return read_seal(text, SealType.DESCRIPTOR)
    except BadSealError as exc:
        raise RefusalError(from_error(exc)) from exc


def stub_of(sealed: Sealed, keys: Keys) -> StubDescriptor:
    """Verify the signature of a descriptor, and return it as that of a stub.

    Args:
        sealed: The descriptor.
        keys: The trusted keys.

    Raises:
        RefusalError: None of the keys has signed it, or it does not describe a stub.
    """
    descriptor = _descriptor_of(sealed, keys)
    if not isinstance(descriptor, StubDescriptor):
        why = f"it describes a {descriptor.type} and not a stub"
        raise RefusalError(Refused(Reason.MISPLACED, why, "ask the domain for one of a stub"))
    return descriptor


def schema_of(sealed: Sealed, keys: Keys) -> SchemaDescriptor:
    """Verify the signature of a descriptor, and return it as that of a schema.

    Args:
        sealed: The descriptor.
        keys: The trusted keys.

    Raises:
        RefusalError: None of the keys has signed it, or it does not describe a schema.
    """
    descriptor = _descriptor_of(sealed, keys)
    if not isinstance(descriptor, SchemaDescriptor):
        why = f"it describes a {descriptor.type} and not a schema"
        raise RefusalError(Refused(Reason.MISPLACED, why, "ask the domain for one of a schema"))
    return descriptor


def _descriptor_of(sealed: Sealed, keys: Keys) -> Described:
    try:
        return read_descriptor(verified(sealed, keys))
    except (BadSealError, BadDescriptorError) as exc:
        raise RefusalError(from_error(exc)) from exc


def revocations_of(text: bytes, keys: Keys) -> Revocations:
    """Verify the signature of a list of revocations, and return it.

    Args:
        text: The list, as it was signed.
        keys: The trusted keys.

    Raises:
        RefusalError: None of the keys has signed it, or it is no list.
    """
    try:
        return read_revocations(verified(read_seal(text, SealType.REVOCATIONS), keys))
    except (BadSealError, BadDescriptorError) as exc:
        raise RefusalError(from_error(exc)) from exc


def known_revocations(text: str) -> Revocations:
    """Return a list that was verified when it was stored; its key may have been replaced since.

    Raises:
        RefusalError: The text is no list: its store has changed it.
    """
    try:
        return read_revocations(read_seal(text.encode(), SealType.REVOCATIONS).content)
    except (BadSealError, BadDescriptorError) as exc:
        raise RefusalError(from_error(exc)) from exc


def flaw_of(promised: SourcePackage, content: bytes) -> Refused | None:
    """Return why bytes are not the promised package; None: they are.

    Args:
        promised: What the descriptor says of the package.
        content: The bytes.
    """
    return judge_package(promised, facts_of(content, promised.entry_point))
