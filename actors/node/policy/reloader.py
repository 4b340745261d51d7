"""Reading the policy files again while the node runs (POL-03, S9)."""

from typing import Final, TypeAlias, final

import attrs
import structlog
import trio
from typing_extensions import override

from actors.kit.supervision.actor import Actor, ActorRef, Reply
from actors.node.errors import PolicyFileError
from actors.node.messages import BusMessage, Emitted
from actors.node.policy.files import read_policies
from actors.node.policy.store import PolicyStore
from fsm.policy.model import Book
from specs.bodies.body import PolicyChange
from specs.message import Message, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import write_body

__all__ = ["PolicyReloader", "Reload", "ReloadAsked"]

_log = structlog.get_logger("actors.node")

_LASTS: Final = "until the node reads its policy files again or is told otherwise"


@final
@attrs.frozen
class Reload:
    """Somebody at the node's terminal wants the files to be read again.

    Attributes:
        reply: Told why they could not be used; empty: they hold now.
    """

    reply: Reply[str]


@final
@attrs.frozen
class ReloadAsked:
    """An administrator asks for it by a message, which is answered when it is done.

    Attributes:
        by: Over whose session it came.
    """

    message: Message
    by: str


_Message: TypeAlias = ReloadAsked | Reload


@final
class PolicyReloader(Actor[_Message]):
    """Reads in a thread, one after the other, and replaces all policies or none.

    Args:
        store: The policies.
        bus: What carries its answers.
    """

    def __init__(self, store: PolicyStore, bus: ActorRef[BusMessage]) -> None:
        self._store = store
        self._bus = bus

    @override
    async def handle(self, message: _Message) -> None:
        match message:
            case ReloadAsked(asked, by):
                await self._bus.tell(Emitted(_answer(asked, await self._reload()), by))
            case Reload(reply):
                outcome = await self._reload()
                reply.send(str(outcome) if isinstance(outcome, PolicyFileError) else "")

    async def _reload(self) -> Book | PolicyFileError:
        """Read the files; the policies stay as they are if that fails."""
        files = self._store.config.files
        try:
            sets = await trio.to_thread.run_sync(read_policies, files, abandon_on_cancel=True)
        except PolicyFileError as error:
            _log.error("policies kept", why=str(error), version=self._store.book.version)
            return error
        book = self._store.adopt(sets)
        _log.warning("policies read again", version=book.version, sets=len(book.sets))
        return book


def _answer(asked: Message, outcome: Book | PolicyFileError) -> Message:
    if isinstance(outcome, PolicyFileError):
        return refuse(asked, Code.BAD_BACKEND, f"{outcome}; the policies stay as they are")
    change = PolicyChange(outcome.version, _LASTS)
    return reply_to(asked, Code.OK, {"value": write_body(change)})
