"""What the registry shows others of its links (P2P-18)."""

from typing import Final, final

from fsm.p2p.entry import LinkEntry
from fsm.registry.resolve.resolve import ResolveCore
from specs.bodies.sync import ObjectName
from specs.errors import BadMessageError
from specs.jsonvalue import Json
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import read_body

__all__ = ["RowQuestions"]


@final
class RowQuestions:
    """Answers what other components ask about links.

    A handler that asks whether it may accept a link waits while our own request has not said
    that it yields (P2P-27). Memory: one question per link of the handler, which gives up at
    its own deadline.
    """

    def __init__(self, core: ResolveCore) -> None:
        self._core: Final = core
        self._waiting: list[Message] = []

    def asked(self, request: Message) -> list[Message]:
        """Return the answer; none, if the question waits."""
        if request.type is not MessageType.READ:
            return [refuse(request, Code.MALFORMED, "the registry can only be read or followed")]
        self._waiting.append(request)
        return self.decided()

    def decided(self) -> list[Message]:
        """Return the answers to all questions that need not wait any more."""
        waiting, self._waiting = self._waiting, []
        return [answer for request in waiting for answer in self._answers(request)]

    def _answers(self, request: Message) -> list[Message]:
        try:
            whom = read_body(request, ObjectName).resource
        except BadMessageError as error:
            return [refuse(request, error.code, error.reason)]
        entry = self._core.row(whom, request.from_)
        if entry is None:
            return [refuse(request, Code.NOT_FOUND, "no link leads there")]
        if entry.is_held(request.from_):
            self._waiting.append(request)
            return []
        return [reply_to(request, Code.OK, {"value": _row(entry)})]


def _row(entry: LinkEntry) -> dict[str, Json]:
    return {
        "remote": entry.remote,
        "role": entry.role.value,
        "status": entry.status.value,
        "url": entry.url,
        "link": entry.link,
        "entities": list[Json](sorted(entry.entities)),
    }
