"""Descriptors as upstream's catalogues keep them, as drafts of ours.

Their files hold many descriptors by name, each with a number as its `cguid` and with its source in
base64: the JSON Schema of a data schema, or code in JavaScript, which cannot run here.
"""

from base64 import b64decode
from typing import Final

import orjson

from actors.catalogue.errors import BadDescriptorError
from specs.addresses.descriptor import CatalogueType, Entry
from specs.descriptor import LANGUAGE
from specs.jsonvalue import Json, JsonObject

_FILLED_IN: Final = ("cguid", "type", "signature", "sourcePackage", "sourcePackageURL")
"""Fields that upstream fills with what means nothing here; those of our drafts are let be."""


def adopted(entry: Entry, draft: JsonObject) -> JsonObject:
    """Return a draft for an address, made of a file of upstream's; one of ours is as it is.

    Args:
        entry: The catalogue address.
        draft: The content of the file.

    Raises:
        BadDescriptorError: It is one of upstream's that no runtime here could use.
    """
    named = draft.get(entry.name)
    if isinstance(named, dict) and not {"version", "objectName"} & draft.keys():
        draft = named
    package = draft.get("sourcePackage")
    if isinstance(draft.get("cguid", ""), str) and not _has_source(package):
        return draft
    rest: JsonObject = {key: each for key, each in draft.items() if key not in _FILLED_IN}
    if rest.get("configuration") == []:
        rest["configuration"] = {}
    if isinstance(package, dict) and package.get("sourceCode"):
        if entry.type is not CatalogueType.SCHEMA:
            language = draft.get("language", "an unnamed language")
            why = f"its code is in {language}, and only {LANGUAGE} can run here"
            raise BadDescriptorError(f"{why}; write it anew and sign it with --package")
        rest |= _schema_in(package)
    return rest


def _has_source(package: Json) -> bool:
    return isinstance(package, dict) and "sourceCode" in package


def _schema_in(package: JsonObject) -> JsonObject:
    """Return the fields that the JSON Schema in a package gives.

    Raises:
        BadDescriptorError: There is none.
    """
    source = package.get("sourceCode")
    try:
        schema: Json = orjson.loads(b64decode(source if isinstance(source, str) else ""))
    except ValueError as exc:
        raise BadDescriptorError("its sourceCode is no JSON Schema in base64") from exc
    if not isinstance(schema, dict):
        raise BadDescriptorError("its sourceCode is no JSON Schema in base64")
    fields: JsonObject = {"schema": schema}
    properties = schema.get("properties")
    for name in ("scheme", "children"):
        stated = properties.get(name) if isinstance(properties, dict) else None
        if isinstance(stated, dict) and "constant" in stated:
            fields[name] = stated["constant"]
    return fields
