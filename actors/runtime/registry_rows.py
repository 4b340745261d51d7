"""What the registry shows others of its links (P2P-18)."""

from collections.abc import Sequence

from fsm.cores.link_entry import LinkEntry
from specs.body_sync import ObjectName
from specs.errors import BadMessageError
from specs.jsonvalue import Json
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import read_body

__all__ = ["row_asked"]


def row_asked(request: Message, entries: Sequence[LinkEntry]) -> Message:
    """Answer other components: the row of a runtime, or of who lives there."""
    if request.type is not MessageType.READ:
        return refuse(request, Code.MALFORMED, "the registry can only be read or followed")
    try:
        whom = read_body(request, ObjectName).resource
    except BadMessageError as error:
        return refuse(request, error.code, error.reason)
    entry = next((row for row in entries if whom == row.remote or whom in row.entities), None)
    if entry is None:
        return refuse(request, Code.NOT_FOUND, "no link leads there")
    return reply_to(request, Code.OK, {"value": _row(entry)})


def _row(entry: LinkEntry) -> dict[str, Json]:
    return {
        "remote": entry.remote,
        "role": entry.role.value,
        "status": entry.status.value,
        "url": entry.url,
        "link": entry.link,
        "entities": list[Json](sorted(entry.entities)),
    }
