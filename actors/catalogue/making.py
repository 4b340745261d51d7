"""Makes what a catalogue serves: signed descriptors, packages, lists of what is revoked."""

from typing import final

import attrs
import orjson

from actors.catalogue.archive import check_archive, facts_of
from actors.catalogue.errors import BadDescriptorError
from actors.catalogue.opening import entry_of, published, read_descriptor
from actors.catalogue.seal import SealType
from actors.catalogue.source import package_path
from actors.keys.key_set import EDDSA
from actors.keys.signing import SigningKey
from specs.addresses.descriptor import Entry
from specs.descriptor import Revoked
from specs.errors import ProtoflyError
from specs.jsonvalue import JsonObject
from specs.limits.foreign_code import DESCRIPTOR_BYTES
from transports.bodies import write_body

__all__ = ["Publisher", "WrongKeyError", "packaged", "revocation_list", "sealed", "signed_draft"]


@final
class WrongKeyError(ProtoflyError):
    """A key is for another algorithm than that of catalogues."""

    def __init__(self, algorithm: str) -> None:
        super().__init__(f"catalogues are signed by {EDDSA}, and this key is for {algorithm}")
        self.algorithm = algorithm


@final
@attrs.frozen
class Publisher:
    """The publisher of a package."""

    name: str
    key: SigningKey


def sealed(content: JsonObject, kind: SealType, key: SigningKey) -> str:
    """Return signed content; keys are sorted, so that the same content gives the same text.

    Args:
        content: The content.
        kind: Kind of the signed text.
        key: Signing key.

    Raises:
        WrongKeyError: The key is for another algorithm.
    """
    if key.algorithm != EDDSA:
        raise WrongKeyError(key.algorithm)
    return key.sealed(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), kind)


def signed_draft(entry: Entry, draft: JsonObject, key: SigningKey) -> str:
    """Return a signed descriptor for an address.

    Args:
        entry: The catalogue address.
        draft: The descriptor; what names the address is filled in, further keys are kept.
        key: Key of the domain.

    Raises:
        BadDescriptorError: The result would be no descriptor, or one for another address.
        WrongKeyError: The key is for another algorithm.
    """
    content: JsonObject = {
        "cguid": entry.address,
        "type": str(entry.type),
        "objectName": entry.name,
        **draft,
    }
    made = read_descriptor(content)
    said = (entry_of(made), made.type, made.object_name)
    if said != (entry, str(entry.type), entry.name):
        raise BadDescriptorError(f"its cguid, type or objectName is not that of {entry.address}")
    text = sealed(content, SealType.DESCRIPTOR, key)
    if len(text) > DESCRIPTOR_BYTES:
        raise BadDescriptorError(f"signed, it is larger than {DESCRIPTOR_BYTES} bytes")
    return text


def packaged(entry: Entry, archive: bytes, entry_point: str, publisher: Publisher) -> JsonObject:
    """Return the part of a descriptor that describes its package.

    Args:
        entry: Catalogue address of the descriptor.
        archive: The package.
        entry_point: Its entry point, `module:function`.
        publisher: Signs the package.

    Raises:
        BadArchiveError: Every runtime would refuse the package.
        WrongKeyError: The key of the publisher is for another algorithm.
    """
    check_archive(archive, entry_point)
    facts = facts_of(archive, entry_point)
    promise = published(facts.sha256, facts.size, entry_point)
    signature = sealed(promise, SealType.PACKAGE, publisher.key)
    url = f"hyperty-catalogue://catalogue.{entry.domain}/{package_path(facts.sha256)}"
    return {
        "sourcePackageURL": url,
        "sourcePackage": {
            "encoding": "zip",
            **promise,
            "publisher": publisher.name,
            "signature": signature,
        },
    }


def revocation_list(
    domain: str, counter: int, expires: int, revoked: tuple[Revoked, ...], key: SigningKey
) -> str:
    """Return the signed list of revocations of a domain.

    Args:
        domain: The domain.
        counter: Number of the list; higher than that of all earlier ones.
        expires: Time until which it is valid, in seconds since the epoch (1970, UTC).
        revoked: The revocations.
        key: Key of the domain.

    Raises:
        WrongKeyError: The key is for another algorithm.
    """
    content: JsonObject = {
        "domain": domain,
        "counter": counter,
        "expires": expires,
        "revoked": [write_body(one) for one in revoked],
    }
    return sealed(content, SealType.REVOCATIONS, key)
