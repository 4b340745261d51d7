"""Whether a row of a table says what a scenario says of it."""

from typing import Final

from actors.play.content import Content
from actors.play.hop import read_place
from actors.play.places import Places
from actors.play.script import TableStep
from specs.jsonvalue import Json, JsonObject
from specs.trace import Fact

__all__ = ["row_holds"]

_LISTENERS: Final = "listeners"
_MARK: Final = "@"
_NOTHING: Final = "None"
_LINK_FIELDS: Final = ("status", "url")


def row_holds(step: TableStep, fact: Fact, places: Places, content: Content) -> bool:
    """Tell whether a row says what is told; what is not told may be anything.

    A table of P2P links tells status, address and entities; a listener is a place; any
    other row names an address, perhaps behind a mark for people (`foreign@...`).
    """
    match step.val:
        case None:
            return True
        case dict():
            return content.holds(step.val, _fields(fact.val or ""))
        case str() if step.table == _LISTENERS:
            return _listens(step.val, fact.val or "", places, content)
        case str():
            return content.holds(step.val.rpartition(_MARK)[2], fact.val)
        case _:
            return content.holds(step.val, fact.val)


def _fields(val: str) -> JsonObject:
    status, url, *entities = val.split(" ")
    listed: list[Json] = [one for one in entities if one]
    values: tuple[Json, ...] = (status, None if url == _NOTHING else url)
    return dict(zip(_LINK_FIELDS, values, strict=True)) | {"entities": listed}


def _listens(told: str, actual: str, places: Places, content: Content) -> bool:
    try:
        listener = places.listener(read_place(told))
    except ValueError:
        # Words for people, such as who passes it on to whom.
        return bool(actual)
    if listener is None:
        return bool(actual)
    prefix, separator, address = listener.partition(":")
    if not separator or address.startswith("//"):
        return listener == actual
    return actual.startswith(f"{prefix}:") and content.names.unify(
        address, actual.removeprefix(f"{prefix}:")
    )
