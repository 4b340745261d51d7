"""Makes what a catalogue serves: signed descriptors, packages, lists of what is revoked."""

from typing import final

import attrs
import orjson

from actors.catalogue.errors import BadDescriptorError
from actors.catalogue.package.archive import check_archive, facts_of
from actors.catalogue.package.publisher import published
from actors.catalogue.package.reading import entry_of, read_descriptor
from actors.catalogue.package.seal import SealType
from actors.catalogue.source import package_path
from actors.keys.registry import EDDSA
from actors.keys.signing import SigningKey
from specs.addresses.descriptor import Entry
from specs.descriptor import Revoked
from specs.errors import ProtoflyError
from specs.jsonvalue import JsonObject
from specs.limits.catalogue import DESCRIPTOR_BYTES
from transports.bodies import write_body

__all__ = ["Publisher", "WrongKeyError", "packaged", "revocation_list", "sealed", "signed_draft"]


@final
class WrongKeyError(ProtoflyError):
    """A key signs by another algorithm than catalogues take.

    Attributes:
        algorithm: By which.
    """

    def __init__(self, algorithm: str) -> None:
        super().__init__(f"catalogues are signed by {EDDSA}, and this key is for {algorithm}")
        self.algorithm = algorithm


@final
@attrs.frozen
class Publisher:
    """Who answers for a package.

    Attributes:
        name: As trust files name it.
        key: Signs its packages.
    """

    name: str
    key: SigningKey


def sealed(content: JsonObject, kind: SealType, key: SigningKey) -> str:
    """Sign a text; keys are put in order, so that the same content is the same text.

    Raises:
        WrongKeyError: The key signs by another algorithm.
    """
    if key.algorithm != EDDSA:
        raise WrongKeyError(key.algorithm)
    return key.sealed(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), kind)


def signed_draft(entry: Entry, draft: JsonObject, key: SigningKey) -> str:
    """Sign what describes something, at the place where it is to stand.

    Args:
        entry: The place.
        draft: The descriptor; what names the place is filled in, keys of its own stay.
        key: The domain's.

    Raises:
        BadDescriptorError: It would be no descriptor, or one for another place.
        WrongKeyError: As of `sealed`.
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
    """Return what a descriptor says of its package.

    Raises:
        BadArchiveError: Nobody would take it.
        WrongKeyError: As of `sealed`.
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
    """Sign a domain's list of what is good no more."""
    content: JsonObject = {
        "domain": domain,
        "counter": counter,
        "expires": expires,
        "revoked": [write_body(one) for one in revoked],
    }
    return sealed(content, SealType.REVOCATIONS, key)
