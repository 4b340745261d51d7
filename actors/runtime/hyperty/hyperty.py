"""The base class of hyperties, and what their handlers are given (REG-07)."""

from abc import ABC
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVarTuple, final

import attrs

from actors.kit.supervision.actor import Actor
from actors.kit.supervision.delivery import Delivery
from actors.runtime.hyperty.client import HypertyClient
from actors.runtime.objects.context import HypertyContext
from specs.errors import ProtoflyError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message
from specs.reply_code import Code

__all__ = ["Delegated", "Hyperty", "HypertyMaker", "Invited", "Profile", "Refused"]


@final
@attrs.frozen
class Profile:
    """The description of a hyperty in the domain registry.

    Attributes:
        name: Name for people; need not be unique.
        descriptor: Catalogue address of its descriptor; None: it has none.
        resources: What it offers, such as `chat`; others search by it.
        data_schemes: Schemes of the data objects it uses, such as `comm`; others search by them.
        address: Address it must have, kept by `Runtime.rest` of the runtime; None: one that is
            kept for the same descriptor, else a new one.
    """

    name: str
    descriptor: str | None = None
    resources: tuple[str, ...] = ()
    data_schemes: tuple[str, ...] = ()
    address: str | None = None


Ts = TypeVarTuple("Ts")


@final
class Refused(ProtoflyError):  # noqa: N818 - it is an answer, not a failure
    """Raised by a handler of a hyperty to answer with a refusal.

    Attributes:
        code: Reply code of the answer.
        why: Reason for people, as half a sentence; it is sent to the requester.
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
        url: Address of the object, for `observe`.
        reporter: Address of the hyperty that reports it.
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
    """A data object that its reporter wants to delegate to this hyperty.

    Attributes:
        url: Address of the object, for `taken_over`.
        reporter: Address of the hyperty that reports it so far.
        message: The request that asks.
    """

    url: str
    reporter: str
    message: Message


class Hyperty(HypertyClient, ABC):
    """The base class of hyperties; an application overrides the handlers it needs.

    An exception of a handler (`on_...`) ends one message: a request is answered 500, and the log
    has the exception. An exception of `started` or of spawned work is a crash: the hyperty is
    made anew, with the same address.

    Attributes:
        url: Its address; set before `started` is called.
    """

    _host: Actor[Delivery]

    async def started(self) -> None:
        """Prepare the hyperty; runs before its first message.

        Work that takes longer or goes on is started here by `spawn`.

        If cancelled, with the deployment or the runtime, the hyperty gets no message.
        """

    async def on_request(self, message: Message) -> Json:
        """Handle a request; the returned value becomes the `value` of the answer 200.

        Requests begin in the order in which they came, then run side by side, at most
        `CONCURRENT` at a time. The default refuses each request with 400.

        If cancelled, by a restart or the undeployment of the hyperty, the request is answered 503.

        Raises:
            Refused: To answer with another code.
        """
        raise Refused(Code.MALFORMED, f"{self.url} takes no {message.type.value}")

    async def on_event(self, message: Message) -> None:
        """Handle an event; no answer is sent, and the next message waits until this returns.

        Events of a data object come here if the hyperty has subscribed to them by messages of
        its own; those of `observe` and `report` do not.

        If cancelled, because the hyperty stops, the event is lost.
        """

    async def on_subscribe(self, url: str, observer: str) -> None:
        """Decide whether a hyperty may observe a data object that this one reports.

        Returning accepts. It is not called for hyperties that were invited or allowed, for this
        hyperty itself, and for public objects; it is called for those that were expelled. No
        answer in time is a refusal. The default refuses with 403.

        Args:
            url: Address of the object.
            observer: Address of the hyperty that asks.

        If cancelled, because the hyperty stops, the observer is refused.

        Raises:
            Refused: To refuse; the observer gets the reason.
        """
        raise Refused(Code.FORBIDDEN, f"{observer} is not invited to {url}")

    async def on_invited(self, invited: Invited) -> None:
        """Handle an invitation; returning accepts it, without any obligation.

        Observing belongs into spawned work: this must return soon. The default handles the
        invitation by `on_request`.

        If cancelled, because the hyperty stops, the invitation fails like a request of
        `on_request`.

        Raises:
            Refused: To decline.
        """
        await self.on_request(invited.message)

    async def on_delegated(self, delegated: Delegated) -> None:
        """Decide whether to report a data object from now on; returning accepts.

        Entering `taken_over` belongs into spawned work: this must return soon. The default
        declines with 403.

        If cancelled, because the hyperty stops, the object stays with its reporter.

        Raises:
            Refused: To decline.
        """
        raise Refused(Code.FORBIDDEN, f"{self.url} does not take over {delegated.url}")

    @final
    def spawn(self, work: Callable[[*Ts], Awaitable[None]], *args: *Ts) -> None:
        """Run work in a task of this hyperty, beside its handlers.

        An exception of the work is a crash of the hyperty. The work is cancelled when the
        hyperty stops or is made anew.

        Args:
            work: The async function to run.
            args: Its arguments.

        Raises:
            ActorStoppedError: The hyperty has not started yet, or has stopped.
        """
        self._host.spawn(work, *args)

    @final
    def enter(self, context: HypertyContext, host: Actor[Delivery]) -> None:
        """Take context and host; called by the host before `started`.

        Args:
            context: The context of the hyperty, through all its lives.
            host: The actor of this life; it runs spawned work.
        """
        self._context = context
        self._host = host


HypertyMaker: TypeAlias = Callable[[], Hyperty]
"""Makes a hyperty, anew for each of its lives; a class will do."""
