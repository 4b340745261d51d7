"""Descriptors and lists, from JSON to their classes."""

from typing import Final, TypeVar

import orjson

from actors.catalogue.errors import BadDescriptorError
from specs.addresses.descriptor import CatalogueType, Entry, read_entry
from specs.descriptor import DESCRIPTORS, Described, Listing, Revocations
from specs.errors import BadMessageError, BadUrlError
from specs.jsonvalue import Json, JsonObject, is_json
from specs.limits.catalogue import LISTING_BYTES
from transports.bodies import read_object

__all__ = ["entry_of", "read_descriptor", "read_listing", "read_revocations"]

_TYPES: Final = frozenset(map(str, CatalogueType))

B = TypeVar("B", Listing, Revocations)


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
    try:
        return read_object(content, DESCRIPTORS[CatalogueType(kind)], "descriptor")
    except BadMessageError as exc:
        raise BadDescriptorError(exc.reason) from exc


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
    try:
        return read_object(content, Revocations, "list")
    except BadMessageError as exc:
        raise BadDescriptorError(exc.reason) from exc


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
    try:
        return read_object(content, Listing, "listing")
    except BadMessageError as exc:
        raise BadDescriptorError(exc.reason) from exc
