"""Signed texts of catalogues, and their contents: descriptors, lists, packages (T12, T13)."""

from enum import StrEnum
from hashlib import sha256
from typing import Final, TypeVar

import attrs
import orjson

from actors.catalogue.archive import check_archive
from actors.catalogue.errors import (
    BadArchiveError,
    BadDescriptorError,
    BadSealError,
    RefusalError,
)
from actors.keys.key_set import EDDSA, Keys
from actors.keys.signing import HEADER, SignedText, read_signed
from fsm.catalogue.descriptor import Reason, Refused, judge_package
from specs.addresses.address import CatalogueType, Entry, read_entry
from specs.descriptor import (
    DESCRIPTORS,
    Described,
    HypertyDescriptor,
    Listing,
    Revocations,
    RuntimeDescriptor,
    SchemaDescriptor,
    SourcePackage,
    StubDescriptor,
)
from specs.errors import BadMessageError, BadUrlError
from specs.jsonvalue import Json, JsonObject, is_json
from specs.limits.foreign_code import LISTING_BYTES, REVOCATIONS_BYTES
from transports.bodies import read_object


class SealType(StrEnum):
    """Kinds of signed content; one is never accepted as another (RFC 8725, 3.11)."""

    DESCRIPTOR = "protofly-descriptor+jws"
    REVOCATIONS = "protofly-revocations+jws"
    PACKAGE = "protofly-package+jws"


@attrs.frozen
class Sealed:
    """Parsed signed text of a catalogue, before its signature is verified.

    Attributes:
        key_name: The name of the key in its header.
        digest: Hash of the signed bytes.
    """

    signed: SignedText
    key_name: str
    content: JsonObject = attrs.field(repr=False)
    digest: str


def read_seal(text: bytes, kind: SealType) -> Sealed:
    """Parse a signed text of a certain kind; nothing is verified.

    Args:
        text: The signed text.
        kind: Kind of the signed text.

    Raises:
        BadSealError: The text is not signed, or is of another kind.
    """
    is_small = len(text) <= REVOCATIONS_BYTES
    signed = read_signed(text.decode("latin-1").removesuffix("\n")) if is_small else None
    if signed is None or signed.header is None:
        raise BadSealError(Reason.UNSIGNED, "it is not signed")
    name = _key_name(signed.header, kind)
    if signed.content is None:
        raise BadSealError(Reason.MALFORMED, "what is signed is no JSON object")
    return Sealed(signed, name, signed.content, sha256(signed.payload).hexdigest())


def read_verified(sealed: Sealed, keys: Keys) -> JsonObject:
    """Verify the signature of a text, and return its content.

    Args:
        sealed: The signed text.
        keys: Trusted keys.

    Raises:
        BadSealError: The key of the text is not trusted, or the signature is wrong.
    """
    key = keys.get(sealed.key_name)
    if key is None or EDDSA not in key.algorithms:
        raise BadSealError(Reason.WRONG_KEY, f"the key {sealed.key_name[:40]!r} is not trusted")
    if not sealed.signed.is_signed_by(key):
        raise BadSealError(Reason.BAD_SIGNATURE, "its signature does not fit")
    return sealed.content


def _key_name(header: JsonObject, kind: SealType) -> str:
    """Return the name of the key in a header; refuse a header with more or less than allowed."""
    if header.get("alg") != EDDSA:
        raise BadSealError(Reason.UNSIGNED, f"it is not signed by {EDDSA}")
    if header.keys() - HEADER:
        raise BadSealError(Reason.BAD_SIGNATURE, "its header holds more than alg, kid and typ")
    if header.get("typ") != kind:
        raise BadSealError(Reason.BAD_SIGNATURE, f"it was not signed as {kind}")
    name = header.get("kid")
    if not isinstance(name, str) or not name:
        raise BadSealError(Reason.WRONG_KEY, "it does not name the key that signed it")
    return name


_TYPES: Final = frozenset(map(str, CatalogueType))

B = TypeVar("B", bound=attrs.AttrsInstance)
D = TypeVar("D", StubDescriptor, SchemaDescriptor, RuntimeDescriptor, HypertyDescriptor)

_NAMES: Final[dict[type, str]] = {
    StubDescriptor: "stub",
    SchemaDescriptor: "schema",
    RuntimeDescriptor: "runtime",
    HypertyDescriptor: "hyperty",
}


def read_descriptor(content: JsonObject) -> Described:
    """Read a descriptor into the class of its type; ignore unknown keys.

    Raises:
        BadDescriptorError: The content is no descriptor.
    """
    kind = content.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise BadDescriptorError(f"its type is none of {', '.join(CatalogueType)}")
    if not is_json(content):
        raise BadDescriptorError("it is nested too deep")
    return _read(content, DESCRIPTORS[CatalogueType(kind)], "descriptor")


def entry_of(descriptor: Described) -> Entry:
    """Return the catalogue address that a descriptor states.

    Raises:
        BadDescriptorError: The text is no catalogue address.
    """
    try:
        return read_entry(descriptor.cguid)[0]
    except BadUrlError as exc:
        raise BadDescriptorError(f"its cguid is no place in a catalogue: {exc.reason}") from exc


def read_revocations(content: JsonObject) -> Revocations:
    """Read a list of revocations.

    Raises:
        BadDescriptorError: The content is no such list.
    """
    return _read(content, Revocations, "list")


def read_listing(text: bytes) -> Listing:
    """Read the listing of a catalogue.

    Raises:
        BadDescriptorError: The text is no listing.
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


def package_statement(sha256: str, size: int, entry_point: str) -> JsonObject:
    """Return the statement that a publisher signs about a package.

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
        RefusalError: None of the keys has signed the package.
    """
    try:
        statement = read_verified(read_seal(package.signature.encode(), SealType.PACKAGE), keys)
    except BadSealError as exc:
        why = f"its publisher {package.publisher!r} did not sign its package: {exc.refused.why}"
        raise RefusalError(Refused(Reason.PUBLISHER_SIGNATURE, why, _ADVICE)) from exc
    if statement != package_statement(package.sha256, package.size, package.entry_point):
        why = f"its publisher {package.publisher!r} signed another package"
        raise RefusalError(Refused(Reason.PUBLISHER_SIGNATURE, why, _ADVICE))


def verify_descriptor(kind: type[D], sealed: Sealed, keys: Keys) -> D:
    """Return a descriptor of the expected class, after a check of its signature.

    Args:
        kind: The expected class of descriptor.
        sealed: The descriptor.
        keys: The trusted keys.

    Raises:
        RefusalError: None of the keys has signed it, or it is of another class.
    """
    descriptor = read_descriptor(read_verified(sealed, keys))
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
        BadSealError: None of the keys has signed the text.
        BadDescriptorError: The content is no list.
    """
    return read_revocations(read_verified(read_seal(text, SealType.REVOCATIONS), keys))


def known_revocations(text: str) -> Revocations:
    """Return a list that was verified when it was stored; its key may have been replaced since.

    Raises:
        RefusalError: The text is no list: it was changed in its store.
    """
    return read_revocations(read_seal(text.encode(), SealType.REVOCATIONS).content)


def flaw_of(promised: SourcePackage, content: bytes) -> Refused | None:
    """Return why a fetched package is not the promised one; None: it is the promised one.

    Args:
        promised: The promised package.
        content: The bytes to compare.
    """
    flaw = None
    try:
        check_archive(content, promised.entry_point)
    except BadArchiveError as exc:
        flaw = exc.reason
    return judge_package(promised, len(content), sha256(content).hexdigest(), flaw)
