"""Hyperties: what an application writes.

What a hyperty is registered with, beyond its address (REG-07).
"""

from abc import ABC
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVarTuple, final

import attrs

from actors.kit.supervision.actor import Actor
from actors.kit.supervision.delivery import Delivery
from actors.runtime.hyperty.client import Voice
from actors.runtime.objects.context import Seat
from specs.errors import ProtoflyError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message
from specs.reply_code import Code

__all__ = ["Delegated", "Hyperty", "HypertyMaker", "Invited", "Profile", "Refused"]


@final
@attrs.frozen
class Profile:
    """A hyperty as its owner describes it.

    Attributes:
        name: For people; need not be unique.
        descriptor: Catalogue address of what it is.
        resources: What it offers, such as `chat`; others search by it.
        data_schemes: Schemes of the data objects it deals with; likewise.
        address: The address it has to have again, kept by `Runtime.rest`; None: one
            that is kept for the same descriptor if there is one, else a new one.
    """

    name: str
    descriptor: str | None = None
    resources: tuple[str, ...] = ()
    data_schemes: tuple[str, ...] = ()
    address: str | None = None


Ts = TypeVarTuple("Ts")


@final
class Refused(ProtoflyError):  # noqa: N818 - it is an answer, not a failure
    """What a hyperty raises to answer with a refusal.

    Attributes:
        code: The reply code.
        why: Half a sentence for people.
    """

    def __init__(self, code: Code, why: str) -> None:
        super().__init__(f"{int(code)} {why}")
        self.code = code
        self.why = why


@final
@attrs.frozen
class Invited:
    """An invitation to observe a data object.

    Attributes:
        url: The object; to be observed by `observe`.
        reporter: Who reports it.
        schema: Catalogue address of its data schema.
        shown: What the reporter shows of it beforehand, such as its `name`.
        message: The request that invites.
    """

    url: str
    reporter: str
    schema: str
    shown: JsonObject
    message: Message


@final
@attrs.frozen
class Delegated:
    """A data object that its reporter wants to hand over.

    Attributes:
        url: The object; to be taken by `taken_over`.
        reporter: Who reports it so far.
        message: The request that asks.
    """

    url: str
    reporter: str
    message: Message


class Hyperty(Voice, ABC):
    """The base class of hyperties: override what yours is for.

    An exception of a handler (`on_...`) ends one message: a request is answered 500, and the
    log has it. An exception of `started`, or of what was spawned, ends a life: the hyperty is
    made anew, with the same address.

    Attributes:
        url: Its address; there from before `started` is called.
    """

    _host: Actor[Delivery]

    async def started(self) -> None:
        """Get ready; runs before the first message.

        What takes longer, or goes on, is spawned here: see `spawn`.
        """

    async def on_request(self, message: Message) -> Json:
        """Answer a request: what is returned becomes the `value` of a 200.

        Requests begin in the order they came and then run side by side, up to a bound.

        Raises:
            Refused: To answer with another code.
        """
        raise Refused(Code.MALFORMED, f"{self.url} takes no {message.type.value}")

    async def on_event(self, message: Message) -> None:
        """Take an event; the next one waits until this returns.

        What is said to the observers of an object comes here, too, if the hyperty has
        subscribed to it by messages of its own, not by `observe`. Nobody waits for an
        answer.
        """

    async def on_subscribe(self, url: str, observer: str) -> None:
        """Decide whether somebody may observe an object of `report`.

        Who was invited or allowed may, the hyperty itself, and everybody if the object is
        public: nobody is asked. Who was expelled is asked about in any case. To let
        everybody in, return. No answer in time is a refusal.

        Args:
            url: The object.
            observer: The hyperty that wants to.

        Raises:
            Refused: It may not, and is told why; what this does unless it is overridden.
        """
        raise Refused(Code.FORBIDDEN, f"{observer} is not invited to {url}")

    async def on_invited(self, invited: Invited) -> None:
        """Take an invitation: to return accepts it, and obliges to nothing.

        To observe, spawn what does: this must return soon.

        Raises:
            Refused: To decline. Unless this is overridden, it is a request like others.
        """
        await self.on_request(invited.message)

    async def on_delegated(self, delegated: Delegated) -> None:
        """Decide whether to report somebody's data object from now on: to return takes it.

        To go on with it, spawn what enters `taken_over`: this must return soon.

        Raises:
            Refused: To decline; what this does unless it is overridden.
        """
        raise Refused(Code.FORBIDDEN, f"{self.url} does not take over {delegated.url}")

    @final
    def spawn(self, work: Callable[[*Ts], Awaitable[None]], *args: *Ts) -> None:
        """Run work in a task of this hyperty, beside what it is asked.

        Its crash is the hyperty's; it is cancelled when the hyperty stops, or is made
        anew.
        """
        self._host.spawn(work, *args)

    @final
    def enter(self, seat: Seat, host: Actor[Delivery]) -> None:
        """Take its seat; called by the host before `started`."""
        self._seat = seat
        self._host = host


HypertyMaker: TypeAlias = Callable[[], Hyperty]
"""Makes a hyperty, anew for each of its lives; a class will do."""
