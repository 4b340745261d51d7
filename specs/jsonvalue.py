"""The type of free JSON, as it stands in message bodies."""

from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
JsonObject: TypeAlias = dict[str, Json]
"""A JSON object. Bodies are shared between tasks: nobody changes one in place."""
