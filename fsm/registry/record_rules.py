"""Whether a runtime may register a record, or change it; for every back end of a registry."""

import json
from collections.abc import Mapping
from typing import Final

from fsm.machines.registration import State
from fsm.registry.records import Answered, Create, Touch
from specs.addresses.address import is_below
from specs.addresses.descriptor import is_other_stub
from specs.jsonvalue import Json, JsonObject
from specs.limits.back_ends import MAX_RECORD_BYTES
from specs.reply_code import Code

__all__ = [
    "AWAY",
    "NO_SUCH_STATUS",
    "OK",
    "UNKNOWN",
    "create_refusal",
    "size_refusal",
    "touch_refusal",
    "wanted_state",
]

OK: Final = Answered(Code.OK)
UNKNOWN: Final = Answered(Code.NOT_FOUND, "Not Found")

NO_SUCH_STATUS: Final = Answered(Code.MALFORMED, "a record is set live or disconnected")

AWAY: Final = "Temporarily Unavailable"
"""Said of what is registered and cannot be reached now."""

_FIXED: Final = ("url", "runtime")


def create_refusal(asked: Create, held_by: str | None) -> Answered | None:
    """Say what objects to a registration; `held_by`: whose record of the address there is."""
    if asked.owner != asked.by or (held_by not in {None, asked.by} and not asked.is_moved):
        return Answered(Code.FORBIDDEN, f"the session does not own {asked.url}")
    if asked.value.get("runtime") != asked.by:
        return Answered(Code.FORBIDDEN, "the record names another runtime")
    return _wrong_stub(asked.value, asked.by) or size_refusal(asked.value)


def touch_refusal(asked: Touch, held: Mapping[str, Json]) -> Answered | None:
    """Say what objects to a change of a record that is there."""
    if held.get("runtime") != asked.by:
        return Answered(Code.FORBIDDEN, "not the owner")
    for name in _FIXED:
        if asked.fields.get(name, held.get(name)) != held.get(name):
            return Answered(Code.MALFORMED, f"the {name} of a record does not change")
    return _wrong_stub(asked.fields, asked.by)


def size_refusal(value: JsonObject) -> Answered | None:
    """Say whether a record is too large to be kept."""
    if len(json.dumps(value, separators=(",", ":"))) <= MAX_RECORD_BYTES:
        return None
    return Answered(Code.TOO_LARGE, f"a record has at most {MAX_RECORD_BYTES} bytes")


def wanted_state(status: State, fields: JsonObject) -> State | None:
    """Return the state an update asks for; None if it may not ask for that."""
    named = fields.get("status")
    if named is None:
        return State.LIVE if status is State.DISCONNECTED else status
    if named == State.LIVE:
        return State.LIVE
    if named == State.DISCONNECTED and status is not State.CREATED:
        return State.DISCONNECTED
    return None


def _wrong_stub(value: JsonObject, by: str) -> Answered | None:
    """Say whether a record names stubs by which no link can be set up (I-G6, ADR-07)."""
    handler, requester = value.get("p2pHandler"), value.get("p2pRequester")
    if isinstance(handler, str) and not is_below(handler, by):
        return Answered(Code.FORBIDDEN, "the P2P handler is not the runtime's own")
    if isinstance(handler, str) and not handler.startswith(f"{by}/p2phandler/"):
        why = f"p2pHandler {handler} is no P2P handler stub, such as {by}/p2phandler/1"
        return Answered(Code.MALFORMED, why)
    if isinstance(requester, str) and is_other_stub(requester):
        why = f"p2pRequester {requester} is no P2P requester stub"
        return Answered(Code.MALFORMED, why)
    return None
