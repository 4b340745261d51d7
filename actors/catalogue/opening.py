"""Reads and verifies the texts and packages of a catalogue (T12, T13)."""

from typing import Final, TypeVar

import attrs
import orjson

from actors.catalogue.archive import facts_of
from actors.catalogue.errors import BadDescriptorError, BadSealError, RefusalError, refusals
from actors.catalogue.seal import Sealed, SealType, read_seal, verified
from actors.keys.key_set import Keys
from fsm.catalogue.descriptor_io import Reason, Refused
from fsm.catalogue.descriptor_trust import judge_package
from specs.addresses.descriptor import CatalogueType, Entry, read_entry
from specs.descriptor import (
    DESCRIPTORS,
    Described,
    Listing,
    Revocations,
    SchemaDescriptor,
    SourcePackage,
    StubDescriptor,
)
from specs.errors import BadMessageError, BadUrlError
from specs.jsonvalue import Json, JsonObject, is_json
from specs.limits.foreign_code import LISTING_BYTES
from transports.bodies import read_object

__all__ = [
    "check_publisher",
    "described",
    "entry_of",
    "flaw_of",
    "known_revocations",
    "published",
    "read_descriptor",
    "read_listing",
    "read_revocations",
    "sealed_descriptor",
    "signed_revocations",
]

_TYPES: Final = frozenset(map(str, CatalogueType))

B = TypeVar("B", bound=attrs.AttrsInstance)
D = TypeVar("D", StubDescriptor, SchemaDescriptor)

_NAMES: Final[dict[type, str]] = {StubDescriptor: "stub", SchemaDescriptor: "schema"}


def read_descriptor(content: JsonObject) -> Described:
    """Read a descriptor into the class of its type; keys of its own are let be.

    Raises:
        BadDescriptorError: It is none.
    """
    kind = content.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise BadDescriptorError(f"its type is none of {', '.join(CatalogueType)}")
    if not is_json(content):
        raise BadDescriptorError("it is nested too deep")
    return _read(content, DESCRIPTORS[CatalogueType(kind)], "descriptor")


def entry_of(descriptor: Described) -> Entry:
    """Return where a descriptor says it stands.

    Raises:
        BadDescriptorError: That is no place in a catalogue.
    """
    try:
        return read_entry(descriptor.cguid)[0]
    except BadUrlError as exc:
        raise BadDescriptorError(f"its cguid is no place in a catalogue: {exc.reason}") from exc


def read_revocations(content: JsonObject) -> Revocations:
    """Read a list of what is revoked.

    Raises:
        BadDescriptorError: It is none.
    """
    return _read(content, Revocations, "list")


def read_listing(text: bytes) -> Listing:
    """Read what a catalogue says it offers.

    Raises:
        BadDescriptorError: It is no listing.
    """
    try:
        content: Json = orjson.loads(text) if len(text) <= LISTING_BYTES else None
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict):
        raise BadDescriptorError("the listing is no JSON object")
    return _read(content, Listing, "listing")


def _read(content: JsonObject, kind: type[B], where: str) -> B:
    try:
        return read_object(content, kind, where)
    except BadMessageError as exc:
        raise BadDescriptorError(exc.reason) from exc


_ADVICE: Final = "ask the domain for one that its publisher signed"


def published(sha256: str, size: int, entry_point: str) -> JsonObject:
    """Return what a publisher signs of a package; `entry_point` is `module:function`.

    Args:
        sha256: SHA-256 of the package.
        size: Size of the package in bytes.
        entry_point: Entry point, as `module:function`.
    """
    return {"sha256": sha256, "size": size, "sourceCodeClassname": entry_point}


def check_publisher(package: SourcePackage, keys: Keys) -> None:
    """Refuse a package whose hash, size and entry point were not signed by these keys.

    Args:
        package: The package.
        keys: Trusted keys.

    Raises:
        RefusalError: They have not signed it.
    """
    try:
        said = verified(read_seal(package.signature.encode(), SealType.PACKAGE), keys)
    except BadSealError as exc:
        why = f"its publisher {package.publisher!r} did not sign its package: {exc.why}"
        raise RefusalError(Refused(Reason.PUBLISHER_SIGNATURE, why, _ADVICE)) from exc
    if said != published(package.sha256, package.size, package.entry_point):
        why = f"its publisher {package.publisher!r} signed another package"
        raise RefusalError(Refused(Reason.PUBLISHER_SIGNATURE, why, _ADVICE))


def sealed_descriptor(text: bytes) -> Sealed:
    """Return the parts of a descriptor; nothing is verified.

    Raises:
        RefusalError: It is not signed.
    """
    with refusals():
        return read_seal(text, SealType.DESCRIPTOR)


def described(kind: type[D], sealed: Sealed, keys: Keys) -> D:
    """Verify the signature of a descriptor, and return it if it describes a stub, or a schema.

    Args:
        kind: The expected class of descriptor.
        sealed: The descriptor.
        keys: The trusted keys.

    Raises:
        RefusalError: None of the keys has signed it, or it describes something else.
    """
    with refusals():
        descriptor = read_descriptor(verified(sealed, keys))
    if not isinstance(descriptor, kind):
        wanted = _NAMES[kind]
        why = f"it describes a {descriptor.type} and not a {wanted}"
        raise RefusalError(Refused(Reason.MISPLACED, why, f"ask the domain for one of a {wanted}"))
    return descriptor


def signed_revocations(text: bytes, keys: Keys) -> Revocations:
    """Verify the signature of a list of revocations, and return it.

    Args:
        text: The signed text.
        keys: Trusted keys.

    Raises:
        BadSealError: None of the keys has signed it.
        BadDescriptorError: It is no list.
    """
    return read_revocations(verified(read_seal(text, SealType.REVOCATIONS), keys))


def known_revocations(text: str) -> Revocations:
    """Return a list that was verified when it was stored; its key may have been replaced since.

    Raises:
        RefusalError: The text is no list: its store has changed it.
    """
    with refusals():
        return read_revocations(read_seal(text.encode(), SealType.REVOCATIONS).content)


def flaw_of(promised: SourcePackage, content: bytes) -> Refused | None:
    """Return why bytes are not the promised package; None: they are.

    Args:
        promised: The promised package.
        content: The bytes to compare.
    """
    return judge_package(promised, facts_of(content, promised.entry_point))
