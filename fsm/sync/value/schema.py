"""Whether a value obeys the schema of its data object (CAT-05, M-32).

The schema is a JSON Schema of draft 4 or later. All that it refers to must stand in it:
nothing is ever fetched. It is compiled once; what compiles it is imported when the first
one is.
"""

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

import attrs

from fsm.sync.value.json import Flaw, dotted, json_size
from specs.errors import ProtoflyError
from specs.jsonvalue import Json, JsonObject
from specs.limits.sync import DEFINITION_BYTES, SCHEMA_WORDS

if TYPE_CHECKING:
    from jsonschema_rs import Validator

__all__ = ["NoSchemaError", "ObjectSchema", "compiled"]

_VALUE: Final = "it"
"""What a value is called in a sentence: itself it may be long."""

_COMPILED: Final = 64
"""Schemas of a process that are kept compiled."""


@final
class NoSchemaError(ProtoflyError):
    """What is to be a schema is none.

    Attributes:
        path: Where in it, dotted; empty: the whole.
        why: Half a sentence for people.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"the definition is no JSON Schema: {f'{path}: ' if path else ''}{why}")
        self.path = path
        self.why = why


@final
@attrs.frozen(slots=True)
class ObjectSchema:
    """A schema that values are held against; made by `compiled`."""

    _validator: "Validator"

    def flaw(self, value: Json) -> Flaw | None:
        """Return the first thing that is found wrong with a value; None: it obeys."""
        from jsonschema_rs import ValidationError  # noqa: PLC0415 - see above

        try:
            self._validator.validate(value)
        except ValidationError as exc:
            return Flaw(dotted(tuple(exc.instance_path)), _cut(exc.message))
        return None


def compiled(definition: JsonObject) -> ObjectSchema:
    """Return a schema, ready to be used.

    Raises:
        NoSchemaError: It is none, is too large, or refers to something outside of it.
    """
    if json_size(definition) > DEFINITION_BYTES:
        raise NoSchemaError("", f"it has more than {DEFINITION_BYTES} bytes")
    return _compiled(json.dumps(definition, sort_keys=True))


@lru_cache(_COMPILED)
def _compiled(definition: str) -> ObjectSchema:
    from jsonschema_rs import ValidationError, validator_for  # noqa: PLC0415 - see above

    try:
        made = validator_for(json.loads(definition), offline=True, mask=_VALUE)
    except ValidationError as exc:
        raise NoSchemaError(dotted(tuple(exc.instance_path)), _cut(exc.message)) from exc
    except ValueError as exc:
        raise NoSchemaError("", _cut(str(exc))) from exc
    return ObjectSchema(made)


def _cut(sentence: str) -> str:
    line = " ".join(sentence.split())
    return line if len(line) <= SCHEMA_WORDS else f"{line[:SCHEMA_WORDS]}..."
