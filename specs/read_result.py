"""What a registry answers to a read, in normal form: a record or a list (N15)."""

from typing import Final

import attrs

from specs.addresses.address import parse
from specs.errors import BadMessageError, BadUrlError
from specs.jsonvalue import Json
from specs.limits.protocol import MAX_LIST
from specs.message import Message
from specs.reply_code import Code

SEARCHED_SCHEMES: Final = frozenset({"user", "user-guid"})
"""A read naming one of these is a search, not a read by address (M-26, M-27)."""


def normalise_read(request: Message, answer: Message) -> Message:
    """Bring what a registry answered to a read into normal form (N15).

    Only who asked knows whether one record or a list was asked for: a read by
    address gives the record, a search gives a list.

    Raises:
        BadMessageError: Several records came for one address.
    """
    if not answer.is_final or "value" not in answer.body or answer.body["value"] is None:
        return answer
    value = answer.body["value"]
    searched = _searched_address(request)
    if searched is None:
        found: Json = _as_list(value)
    elif answer.code == Code.OK:
        found = _as_record(value, searched)
    else:
        return answer
    return attrs.evolve(answer, body={**answer.body, "value": found})


def _searched_address(request: Message) -> str | None:
    """Return the address a read names; `None` if it is a search."""
    resource = request.body.get("resource")
    if not isinstance(resource, str) or request.body.get("criteria"):
        return None
    try:
        url = parse(resource)
    except BadUrlError:
        return None
    return None if url.scheme in SEARCHED_SCHEMES else url.text


def _as_record(value: Json, asked: str) -> Json:
    if isinstance(value, list):
        if len(value) != 1:
            raise BadMessageError(f"{len(value)} records came for one address")
        return value[0]
    if isinstance(value, dict) and "url" not in value:
        named = [one for key, one in value.items() if key == asked or len(value) == 1]
        if len(value) > 1 and all(isinstance(one, dict) and "url" in one for one in value.values()):
            raise BadMessageError(f"{len(value)} records came for one address")
        if len(named) == 1 and isinstance(named[0], dict):
            return named[0]
    return value


def _as_list(value: Json) -> list[Json]:
    if isinstance(value, list):
        listed = value
    elif isinstance(value, dict) and "url" not in value:
        listed = list(value.values())
    else:
        listed = [value]
    if len(listed) > MAX_LIST:
        raise BadMessageError(f"more than {MAX_LIST} records came")
    return listed
