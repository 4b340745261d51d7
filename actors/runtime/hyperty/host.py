"""The actor that runs one hyperty for one life."""

import math
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from typing import Final, TypeVar

import attrs
import trio
from typing_extensions import override

from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.supervision.supervisor import Crash, Workers
from actors.runtime.hyperty import bodies
from actors.runtime.hyperty.hyperty import (
    Hyperty,
    HypertyMaker,
    Invited,
    Refused,
)
from actors.runtime.hyperty.transfer import KeptBodies
from actors.runtime.hyperty.typed import Sendable
from actors.runtime.objects.participant import Participant
from fsm.bus.chunks import WholeBody
from fsm.limits.shares import WorkShares, peer_of
from specs.addresses.address import is_below, scheme_of
from specs.bodies.chunk import CHUNK, CHUNKS
from specs.bodies.object import Forward, Invitation
from specs.child import CHILDREN, SUBSCRIPTION
from specs.errors import BadMessageError
from specs.limits.bus import CONCURRENT, PEER_WAITING, WAITING
from specs.limits.protocol import (
    ANSWER_WITHIN_MOST,
    GOODBYE_TIMEOUT,
    PROGRESS_PERIOD,
    RETRY_AFTER,
)
from specs.limits.transfer import TRANSFER_SILENCE
from specs.message import (
    ANSWER_WITHIN,
    GIVEN_UP,
    Message,
    MessageType,
    key_given_up,
    refuse,
    reply_to,
)
from specs.reply_code import Code
from transports.bodies import read_body

_STOPPED: Final = "the hyperty was stopped"
_EARLY: Final = 64
"""Number of requests that are remembered because they were given up before they came."""
_INVITING: Final = f"/{SUBSCRIPTION}"

T = TypeVar("T")


@attrs.define(eq=False)
class _Work:
    """A request that is handled or waits to be.

    Attributes:
        request: The request.
        whole: Its body, if it came in chunks; None: it did not.
        peer: The runtime that has sent the request.
        context: Context variables at the arrival of the request.
        is_given_up: Whether the requester no longer waits: the request gets no answer.
    """

    request: Message
    whole: WholeBody | None
    peer: str
    context: Context = attrs.field(factory=copy_context)
    is_given_up: bool = False


def _make_hyperty(make: HypertyMaker) -> Hyperty:
    """Make a hyperty.

    Raises:
        TypeError: `make` has returned something else.
    """
    hyperty = make()
    result: object = hyperty
    if not isinstance(result, Hyperty):
        raise TypeError(f"{make!r} makes no hyperty, but {type(result).__name__}")
    return hyperty


class HypertyHost(Actor[Delivery]):
    """Runs one hyperty for one life.

    An exception of a handler ends the message at hand and nothing else. An exception of
    `started` or of spawned work is a crash, as of any actor.

    Args:
        make: Makes the hyperty.
        participant: The hyperty, through all its lives.
        record_error: Records an exception of a handler; returns its correlation id.
    """

    def __init__(
        self,
        make: HypertyMaker,
        participant: Participant,
        record_error: Callable[[Exception, str], str],
    ) -> None:
        self._hyperty = _make_hyperty(make)
        self._participant = participant
        self._record_error = record_error
        self._port = participant.port
        self._shares: WorkShares[_Work] = WorkShares(CONCURRENT, WAITING, PEER_WAITING)
        self._workers = Workers(self, self._answer)
        self._bodies = KeptBodies(participant)
        self._answer_within = self._hyperty.answer_within
        if self._answer_within is None:
            self._answer_within = participant.runtime.answer_within
        self._given_up_early: deque[tuple[str, int]] = deque(maxlen=_EARLY)
        self._is_watching = False
        self._hyperty.enter(participant, self)

    @override
    async def start(self) -> None:
        await self._hyperty.started()

    @override
    async def handle(self, message: Delivery) -> None:
        request, whole = message.message, None
        if request.is_request and is_below(request.to, self._port.url):
            in_chunks = not request.body.keys().isdisjoint((CHUNK, CHUNKS))
            if in_chunks and request.type not in bodies.SPECIAL:
                assembled = await self._take_chunk(request)
                if assembled is None:
                    return
                request, whole = assembled
            # A hyperty of this runtime has made the body for this one receiver.
            is_own = not message.is_foreign and scheme_of(request.from_) == "hyperty"
            copy = request if is_own or whole is not None else bodies.own_copy(request)
            work = _Work(copy, whole, peer_of(copy))
            if self._given_up_early and (copy.from_, copy.id) in self._given_up_early:
                self._given_up_early.remove((copy.from_, copy.id))
                work.is_given_up = not self._is_shielded(copy)
            may_begin, rejected = self._shares.enter(work.peer, work)
            if may_begin:
                self._workers.give(work, work.context)
            if rejected is not None:
                await self._give_up(rejected, "too many requests wait for it", RETRY_AFTER)
        elif GIVEN_UP in request.body and (key := key_given_up(request)) is not None:
            from_, _, number = key
            self._cancel_handler(from_, number)
        else:
            await self._run_handler(self._handle_event, request)

    def _cancel_handler(self, from_: str, number: int) -> None:
        """Cancel the handler of a request that its requester has given up, unless it is shielded.

        Args:
            from_: The requester, which has been verified as the sender of the request was.
            number: Id of the request.
        """
        for work in (*self._workers.list_jobs(), *self._shares.list_waiting()):
            if work.request.id == number and work.request.from_ == from_:
                if not self._is_shielded(work.request):
                    work.is_given_up = True
                    self._workers.cancel(work)
                return
        # It has been answered, or comes later by another path.
        self._given_up_early.append((from_, number))

    def _is_shielded(self, request: Message) -> bool:
        """Return whether the handler of a request goes on though nobody waits."""
        handler = self._hyperty.handlers.find(request)
        return self._hyperty.shield or (handler is not None and handler.wanted.shield)

    async def _give_up(self, work: "_Work", why: str, retry_after: float | None = None) -> None:
        if work.whole is not None:
            self._bodies.release(work.whole)
        await self._port.post(refuse(work.request, Code.UNAVAILABLE, why, retry_after))

    # ---- bodies in chunks

    async def _take_chunk(self, message: Message) -> tuple[Message, WholeBody] | None:
        """Store a chunk and return None; or return a request with its assembled body (P2P-21)."""
        if CHUNK in message.body:
            answer = self._bodies.answer(message)
        else:
            try:
                return self._bodies.whole(message)
            except BadMessageError as exc:
                answer = refuse(message, exc.code, exc.reason)
        await self._port.post(answer)
        self._watch()
        return None

    def _watch(self) -> None:
        """Start the task that forgets bodies of silent peers, if there are bodies."""
        if not self._is_watching and self._bodies.deadline() < math.inf:
            self._is_watching = True
            self.spawn(self._forget_silent)

    async def _forget_silent(self) -> None:
        while (due := self._bodies.deadline()) < math.inf:
            # Another body may have to be forgotten earlier.
            await trio.sleep_until(min(due, trio.current_time() + TRANSFER_SILENCE))
            self._bodies.tick()
        self._is_watching = False

    @override
    async def stop(self) -> None:
        self._bodies.clear()
        until = trio.current_time() + GOODBYE_TIMEOUT
        for work in self._shares.clear():
            with trio.move_on_at(until):
                await self._give_up(work, _STOPPED)

    async def _run_handler(
        self, handler: Callable[[Message], Awaitable[T]], message: Message
    ) -> T | tuple[Code, str]:
        """Run a handler for a message; an exception of the application ends this message only.

        After an exception, return code and reason for the requester, without its text.

        This is the only place that calls handlers of the application. If cancelled, an exception
        that was raised at the same time is recorded all the same.
        """
        correlations: list[str] = []

        def record(error: Exception) -> None:
            correlations.append(self._record_error(error, f"{message.type} to {message.to}"))

        with Crash(record) as crash:
            return await handler(message)
        code, why = Code.INTERNAL, "the hyperty failed on it"
        if isinstance(crash.error, BadMessageError) and crash.error.code == Code.TOO_LARGE:
            code, why = Code.TOO_LARGE, f"the answer is too large: {crash.error.reason}"
        return code, f"{why}; error {correlations[0]}"

    async def _handle_event(self, message: Message) -> None:
        """Handle an event, or a notice that the hyperty does not answer."""
        if CHILDREN in message.to and await self._participant.pass_child_notice(message):
            return
        if message.is_event and await self._participant.discoverer.take_report(message):
            return
        if (message.is_event or _is_notice(message)) and not self._pass_notice(message):
            await self._hyperty.on_event(bodies.own_copy(message))

    def _pass_notice(self, message: Message) -> bool:
        """Pass on a notice of an observed or reported object; return whether the message is one."""
        observers = self._participant.take_observer_notice(message)
        if observers is None:
            return self._participant.pass_notice(message)
        if observers.is_behind:
            self.spawn(self._participant.read_observers, message.from_, observers)
        return True

    async def _answer(self, work: "_Work") -> None:
        """Handle a request and send exactly one answer, also after a crash or a cancellation.

        A request that its requester has given up gets no answer.
        """
        request, whole = work.request, work.whole
        answer: Message | None = None
        try:
            if not work.is_given_up:
                result = await self._run_handler(self._reply_to, request)
                answer = result if isinstance(result, Message) else refuse(request, *result)
        finally:
            for _, following in self._shares.leave(work.peer):
                self._workers.give(following, following.context)
            if whole is not None:
                self._bodies.release(whole)
            if answer is None:
                answer = refuse(request, Code.UNAVAILABLE, _STOPPED)
            if not (work.is_given_up or self._port.try_answer(answer)):
                until = trio.current_time() + GOODBYE_TIMEOUT
                with trio.CancelScope(deadline=until, shield=True):
                    await self._port.post(answer)

    async def _reply_to(self, request: Message) -> Message:
        """Call the handler for a request; return the answer to send."""
        try:
            value = await self._call_handler(request)
        except Refused as refusal:
            return bodies.copy_message(refuse(request, refusal.code, refusal.why))
        except BadMessageError as exc:
            return bodies.copy_message(refuse(request, exc.code, exc.reason))
        head = request.id, MessageType.RESPONSE, request.to, request.from_
        try:
            return bodies.compose(
                head, {"code": int(Code.OK), "value": value}, self._participant.identity
            )
        except BadMessageError as exc:
            if exc.code != Code.TOO_LARGE:
                raise
        answer = reply_to(request, Code.OK, bodies.as_body({"value": value}))
        body = bodies.large_body(answer, request.type, self._participant.runtime.transfers.limit)
        try:
            return self._bodies.hold(request, answer, body)
        except BadMessageError as exc:
            return refuse(request, exc.code, exc.reason)
        finally:
            self._watch()

    async def _call_handler(self, request: Message) -> Sendable:
        """Call the handler for a request, by verb and sender; return the value of the answer."""
        match request.type:
            case MessageType.FORWARD:
                return await self._handle_forward(request)
            case MessageType.CREATE if request.from_.endswith(_INVITING):
                await self._hyperty.on_invited(_read_invitation(request))
                return None
            case MessageType.UPDATE if request.from_ == self._participant.manager:
                self._participant.pass_snapshot(request)
                return None
            case MessageType.UNSUBSCRIBE if self._participant.is_watching(request):
                self._participant.pass_expulsion(request)
                return None
            case _ if ANSWER_WITHIN in request.body or self._answer_within is not None:
                return await self._handle_in_time(request)
            case _:
                return await self._handle_request(request)

    async def _handle_in_time(self, request: Message) -> Sendable:
        """Call the handler of a request for as long as it may take, and keep its requester waiting.

        A shielded handler has the time of its hyperty, also if its requester names a shorter one.

        Raises:
            Refused: The handler has taken too long, and was cancelled.
        """
        limit = self._time_for(request)
        if limit is None:
            return await self._handle_request(request)
        waiting = trio.CancelScope(deadline=trio.current_time() + limit)
        self.spawn(self._prolong, request, waiting)
        try:
            own = math.inf if self._answer_within is None else self._answer_within
            with trio.move_on_after(own if self._is_shielded(request) else limit):
                return await self._handle_request(request)
        finally:
            waiting.cancel()
        raise Refused(Code.TIMEOUT, f"its handler has not ended within {limit:g} s")

    def _time_for(self, request: Message) -> float | None:
        """Return the seconds that the handler of a request may take; None: any time."""
        wish = request.body.get(ANSWER_WITHIN)
        if isinstance(wish, bool) or not isinstance(wish, int | float) or not wish > 0:
            return self._answer_within
        return min(float(wish), ANSWER_WITHIN_MOST)

    async def _prolong(self, request: Message, waiting: trio.CancelScope) -> None:
        """Send provisional answers to a request until the wait for its handler is over."""
        with waiting:
            while True:
                await trio.sleep(PROGRESS_PERIOD)
                await self._hyperty.progress(request)

    async def _handle_request(self, request: Message) -> Sendable:
        """Call the handler that takes a request of the application, or else `on_request`."""
        handler = self._hyperty.handlers.find(request)
        if handler is None:
            return await self._hyperty.on_request(request)
        return await handler.call(self._hyperty, request)

    async def _handle_forward(self, request: Message) -> Sendable:
        """Let the hyperty decide about an observer (M-39), or handle another forwarded request."""
        if request.from_ not in self._participant.reported:
            match request.body:
                # An older runtime would give its object away to whoever answers 200.
                case {"message": {"body": {"resource": request.from_, "delegate": _}}}:
                    raise Refused(Code.FORBIDDEN, "objects are not handed over")
                case _:
                    return await self._handle_request(request)
        subscription = read_body(request, Forward).message
        if subscription.from_ != self._participant.url:
            await self._hyperty.on_subscribe(request.from_, subscription.from_)
        return None


def _read_invitation(request: Message) -> Invited:
    """Read an invitation, which only the sync manager of an object sends (M-34)."""
    invitation = read_body(request, Invitation)
    url = request.from_.removesuffix(_INVITING)
    return Invited(url, invitation.source, invitation.schema, invitation.value, request)


def _is_notice(request: Message) -> bool:
    """Return whether a message is the notice of an observed object to its observers (M-47).

    The sync manager of the observer answers a notice. A message of another sender is none.
    """
    observed, _, _ = request.to.rpartition("/")
    return request.is_request and is_below(request.from_, observed)
