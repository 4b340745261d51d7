"""Data schemas: their addresses, and the schemes of objects that have them (CAT-05, ADR-09)."""

import json
from functools import cache
from pathlib import Path
from typing import Final

import specs
from actors.runtime.stubs.catalogue import Catalogue
from specs.addresses.address import (
    NO_OBJECT_SCHEMES,
    RUNTIME_SCHEME,
    is_backend,
    last_segment,
    scheme_of,
)
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject

_SCHEMES: Final = {"communication": "comm", "context": "ctxt"}
"""Schemes whose objects' schema has another name (ADR-02)."""


_LINKS: Final = "connection"
"""Scheme of the objects that describe direct links; components of a runtime report them."""

_NOT_OF_OBJECTS: Final = NO_OBJECT_SCHEMES | {_LINKS}

_SCHEMAS: Final = {scheme: name.capitalize() for name, scheme in _SCHEMES.items()}


def schema_named(name: str, domain: str) -> str:
    """Return the catalogue address of a data schema.

    Args:
        name: Name or address of the schema.
        domain: Domain of the hyperty.
    """
    if "://" in name:
        return name
    last = _SCHEMAS.get(name, name.capitalize())
    return f"hyperty-catalogue://catalogue.{domain}/.well-known/dataschema/{last}"


def scheme_for(schema: str, reporter: str) -> str:
    """Return the address scheme of objects of a data schema (C-48).

    Args:
        schema: Catalogue address of the schema.
        reporter: Address of the reporter.

    Raises:
        BadMessageError: No data object has this scheme, or this reporter may not report one.
    """
    name = last_segment(schema).lower()
    scheme = _SCHEMES.get(name, name)
    is_of_part = scheme == _LINKS and scheme_of(reporter) == RUNTIME_SCHEME
    if is_backend(f"{scheme}://") or (scheme in _NOT_OF_OBJECTS and not is_of_part):
        raise BadMessageError(f"no data object has an address of the scheme {scheme}")
    return scheme


_SHIPPED: Final = Path(specs.__file__).parent / "schemas" / "data"


async def find_schema(catalogue: Catalogue | None, address: str) -> JsonObject | None:
    """Return the JSON Schema at a catalogue address; None: none is known.

    The schema of the catalogue comes first; else a shipped schema of the same name is used.

    Raises:
        SchemaRefusedError: The schema of the catalogue cannot be fetched or is not trusted.
    """
    if catalogue is not None:
        schema = await catalogue.data_schema(address)
        if schema is not None:
            return schema
    return _read_shipped().get(last_segment(address).lower())


@cache
def _read_shipped() -> dict[str, JsonObject]:
    """Return the shipped JSON Schemas, by name."""
    return {path.stem: _object(json.loads(path.read_text())) for path in _SHIPPED.glob("*.json")}


def _object(read: Json) -> JsonObject:
    return read if isinstance(read, dict) else {}
