"""What the data schema at a catalogue address says values must obey (CAT-05, ADR-09).

That of the catalogue, if the runtime has one that describes it, or else one that ships, by
its name.
"""

import json
from functools import cache
from pathlib import Path
from typing import Final, final

import specs
from actors.runtime.stubs.catalogue import Catalogue
from specs.addresses.address import last_segment
from specs.jsonvalue import Json, JsonObject

__all__ = ["DataSchemas"]

_SHIPPED: Final = Path(specs.__file__).parent / "schemas" / "data"


@final
class DataSchemas:
    """Finds data schemas.

    Args:
        catalogue: Where they are looked for first; None: nowhere.
    """

    def __init__(self, catalogue: Catalogue | None = None) -> None:
        self._catalogue = catalogue

    async def find(self, address: str) -> JsonObject | None:
        """Return the JSON Schema at a catalogue address; None: nobody here knows one.

        Raises:
            SchemaRefusedError: There is one, but it cannot be had, or not be trusted.
        """
        if self._catalogue is not None:
            found = await self._catalogue.data_schema(address)
            if found is not None:
                return found
        return _shipped().get(last_segment(address).lower())


@cache
def _shipped() -> dict[str, JsonObject]:
    """Read the schemas that ship, by their names."""
    return {path.stem: _object(json.loads(path.read_text())) for path in _SHIPPED.glob("*.json")}


def _object(read: Json) -> JsonObject:
    return read if isinstance(read, dict) else {}
