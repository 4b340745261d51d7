"""What components hand to the Message BUS of a runtime."""

from enum import Enum
from typing import Protocol, final

import attrs
import trio

from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.delivery import Delivery
from actors.kit.supervision.mailbox import Reply
from actors.runtime.bus.delivery import Full
from actors.runtime.bus.fair_queue import Permits
from fsm.bus.transactions import ASKED_ONCE, Terms
from fsm.intent import Intent, LinkHint, intent_of
from fsm.p2p.transfer import Behind
from specs.message import Message
from specs.reply_code import Code


class Origin(Enum):
    """The kind of the submitting component: it decides which `from` is allowed."""

    LOCAL = "local"
    NODE_STUB = "node-stub"
    P2P_STUB = "p2p-stub"


class AnswerSink(Protocol):
    """Takes the final answer to a request."""

    def send(self, value: Message, /) -> None:
        """Take the answer; called once for a request."""


@final
@attrs.frozen(slots=True)
class Turn:
    """To the mailbox of an actor: a task of it has been answered, and goes on now."""

    reply: Reply[Message]
    answer: Message

    async def take(self) -> None:
        """Let the task go on until it waits again."""
        if self.reply.is_open:
            self.reply.send(self.answer)
            # The task runs beside this one at the first checkpoint, and has run at the second.
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()


@final
@attrs.frozen(slots=True)
class AnswerInTurn:
    """An answer that takes its turn behind what came to the mailbox of the requester before it.

    Otherwise a task of an actor would go on before the actor has handled older messages of the
    same sender. Where the mailbox is full, it goes on at once.
    """

    reply: Reply[Message]
    mailbox: ActorRef[Turn]

    def send(self, value: Message, /) -> None:
        """Take the answer."""
        if not self.mailbox.try_tell(Turn(self.reply, value)):
            self.reply.send(value)


@final
@attrs.define(slots=True, eq=False)
class InFlight:
    """A message that is under way in the bus; a request is until its last answer has gone.

    Attributes:
        message: As its component submits it; after the checks, as they let it pass.
        by: Address under which the component submits (BUS-12).
        reply: Where the final answer goes; None: to the listener of `from`.
        terms: How it is asked; `awaited` are the runtimes whose answers are awaited (BUS-09).
        permit: Permit of its component, which gets it back; None: it has none.
        intent: How it may go; None: as messages of its kind do.
        origin: The kind of the component.
        is_outgoing: Whether this runtime sends it, a stub that speaks for itself included.
        is_copy: Whether nobody waits for its answer: it is a copy of another one (BUS-08).
    """

    message: Message
    by: str
    reply: AnswerSink | None = None
    terms: Terms = ASKED_ONCE
    permit: Permits | None = None
    intent: Intent | None = None
    origin: Origin = Origin.LOCAL
    is_outgoing: bool = True
    is_copy: bool = False

    def answer_intent(self, answer: Message) -> Intent:
        """Return how an answer may go; to a request by the node, by it only.

        A request by a link is answered by the link, if it is still there.
        """
        is_by_node = self.origin is not Origin.P2P_STUB and intent_of(self.message) is Intent.NODE
        return Intent.NODE if is_by_node else intent_of(answer)


@final
@attrs.frozen(slots=True)
class Announced:
    """A link has announced what the messages of a pair follow that it brings (C-20)."""

    behind: Behind
    by: str


@final
@attrs.frozen(slots=True)
class Lost:
    """A delivery that its receiver will never handle; `full`: the queue without space for it."""

    delivery: Delivery
    code: Code
    why: str
    full: Full | None = None


class RouteSearch(Protocol):
    """The registry, as a Message BUS asks it; each method returns whether it takes that now."""

    def try_ask(self, to: str, intent: Intent, hint: LinkHint | None) -> bool:
        """Look for a route; `MessageBus.route` or `no_route` follows."""

    def try_ask_owner(self, entity: str, remote: str) -> bool:
        """Look for the owner of an address that `remote` sends from; `set_owner` follows."""

    def try_report_forged(self, link: str) -> bool:
        """End a link whose peer sends from addresses of others (S1)."""
