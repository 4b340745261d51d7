"""Stub of a runtime to a message node: connection, session, queue (STB-03..09, STB-17, C-66).

A stub connects a runtime to a node. Its first message opens the connection; without a session,
messages queue in order. After a lost connection the stub dials again, at once and then with growing
pauses, and re-opens the session with its token, so that the node keeps the session's data. If the
node has lost the session (410), the stub opens a new session, and the runtime claims its addresses
and registers again; until it has finished, the stub sends only the requests for that. If the node
demands a proof of the runtime's key, the stub repeats its request with a proof. It renews the
node's statement about the runtime before that expires. After a requested disconnect, messages are
refused and nothing reconnects (I-S10). The same happens if the runtime's node refuses the session
for good: another login took over, the name is another user's, policy or login forbid the session.

A node states how many messages a second it accepts. The stub sends no more, so no messages wait
unread in the buffers of the connection; other messages wait here and are sent in small groups.

If no session is possible, all waiting requests are answered 503, or with the node's lasting
refusal. If the queue is full, new requests are answered 503 with the seconds until room is free.

`StubMirror` checks the state machine transitions that a stub in a sandbox reports (OBS-06).
"""

import math
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import attrs

from fsm.engine import Entity, Step
from fsm.limits.rates import Rate, TokenBucket
from fsm.machines import stub_connection as machines
from fsm.table import UndeclaredTransitionError
from specs.addresses.address import domain_of, is_backend, is_below
from specs.bodies.word import SessionMethod
from specs.identity import SenderIdentity
from specs.limits import protocol as limits
from specs.limits.node import STATEMENT_RETRY
from specs.message import Message, MessageType
from specs.reply_code import FIRST_FINAL, LAST_SUCCESS, TURNED_AWAY, Code, DropReason


@attrs.frozen(slots=True)
class SessionAnswered:
    """The node's answer to a session control request (open, re-open, renew, ping, close).

    Attributes:
        token: The session's token, if the answer contains one.
        why: The reason of a refusal.
        is_emptied: Whether the node has lost the addresses and subscriptions of the session.
        is_recovered: Whether no waiting message was lost; None: unknown.
        missing: Number of lost messages to the runtime, as far as the node knows.
        is_lasting: Whether another attempt is useless, whatever the code.
        is_passing: Whether the node has stated when another attempt may succeed.
        login: Hash of the login token that was presented; empty: none.
        challenge: The text that the runtime's key must sign, if the answer contains one.
        sender: Runtime and user, as the node names them to the receivers of messages.
        pace: The rate that the node accepts from the session; None: not stated.
    """

    method: SessionMethod
    code: int
    token: str | None = attrs.field(default=None, repr=False)
    why: str = ""
    is_emptied: bool = False
    is_recovered: bool | None = None
    missing: int = 0
    is_lasting: bool = False
    is_passing: bool = False
    login: str = ""
    challenge: str | None = None
    sender: SenderIdentity | None = None
    pace: Rate | None = None

    @property
    def is_anew(self) -> bool:
        """True if the runtime must restore its addresses and subscriptions in the session."""
        return self.method is SessionMethod.OPEN or self.is_emptied

    @property
    def reason(self) -> str:
        """The reason of a refusal, as half a sentence."""
        return self.why or f"the node answered {self.code}"


class StubPort(Protocol):
    """Calls of `StubClientCore` to its host, which does the input and output; none calls the core.

    A link is a network connection to the node.
    """

    def step(self, step: Step) -> None:
        """Trace a state machine transition; also report transitions of the connection."""

    def dial(self) -> None:
        """Open a link to the node; then call `dialled`, or `lose_link` on failure."""

    def hang_up(self) -> None:
        """Stop dialling, or close the link, without a report."""

    def ask(
        self, method: SessionMethod, token: str | None = None, challenge: str | None = None
    ) -> None:
        """Send a session control request; pass the answer to `take_answer`.

        Args:
            method: The method of the request.
            token: Token of the session; None: none, or the token of a login.
            challenge: The text to sign, if the request is repeated with a proof of the key.
        """

    def write(self, message: Message) -> None:
        """Send a message over the link; then call `note_written`, or `forget` on failure."""

    def queued(self, message: Message) -> None:
        """Trace that a message waits for the session."""

    def released(self, message: Message) -> None:
        """Trace that a message no longer waits, since it will now be sent or refused."""

    def refuse(
        self, message: Message, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        """Answer a request with an error instead of sending it.

        Args:
            message: The request.
            code: Code of the answer.
            why: The reason.
            retry_after: Seconds until another attempt may succeed; None: unknown, or never.
        """

    def drop(self, message: Message, reason: DropReason) -> None:
        """Trace that a message is dropped, with the reason (OBS-06)."""

    def ended(self) -> None:
        """Answer the request for a disconnect, since the stub may be undeployed now."""


class _StubOutbox:
    """Queues of a stub's outgoing messages, all limited and in order of arrival (STB-17, I-S9).

    Attributes:
        waiting: Messages that wait for the session, or for the rate limit of the node.
        unwritten: Messages that were given to the link and that it has not sent yet.
        held_back: Messages that wait until the runtime has restored its data at the node.
        rate: The rate that the node accepts; None: not stated.
    """

    def __init__(self, port: StubPort) -> None:
        self._port = port
        self.waiting: deque[Message] = deque()
        self.unwritten: deque[Message] = deque()
        self.held_back: deque[Message] = deque()
        self.rate: Rate | None = None
        self._bucket: TokenBucket | None = None

    def __len__(self) -> int:
        """Return the number of messages that wait for the session."""
        return len(self.waiting) + len(self.held_back)

    def has_room(self) -> bool:
        """Return whether the queue of waiting messages has room for another message."""
        return len(self) < limits.STUB_QUEUE

    def wait(self, message: Message) -> None:
        """Queue a message until the session is open or the rate limit permits."""
        self.waiting.append(message)
        self._port.queued(message)

    def hold(self, may_go: Callable[[Message], bool]) -> None:
        """Move waiting messages that may not be sent during the restoration to `held_back`."""
        self.held_back.extend(each for each in self.waiting if not may_go(each))
        self.waiting = deque(each for each in self.waiting if may_go(each))

    def hold_back(self, message: Message) -> None:
        """Queue a message in `held_back`, or refuse it if too many messages wait."""
        if self.has_room():
            self.held_back.append(message)
            self._port.queued(message)
        else:
            self.overflow(message, limits.STUB_QUEUE)

    def end_hold(self) -> None:
        """Move the messages in `held_back` to the end of the waiting messages."""
        self.waiting.extend(self.held_back)
        self.held_back.clear()

    def refuse_held(self) -> None:
        """Refuse the messages in `held_back`."""
        held, self.held_back = self.held_back, deque()
        for message in held:
            self._port.released(message)
            self.refuse(message, Code.UNAVAILABLE, _NOT_RENEWED, limits.RETRY_AFTER)

    def keep_to(self, rate: Rate | None) -> None:
        """Set the rate limit for sending to what the node accepts.

        A fraction of the rate is kept in reserve, since the node also counts session control
        requests and has another clock.

        Args:
            rate: The rate that the node accepts; None: not stated.
        """
        if rate == self.rate:
            return
        self.rate = rate
        if rate is None:
            self._bucket = None
        else:
            burst = max(1, int(rate.burst * limits.PACE_SHARE))
            self._bucket = TokenBucket(rate.per_second * limits.PACE_SHARE, burst)

    def write(self, message: Message, now: float) -> None:
        """Give a message to the link, or queue the message, or refuse it if queues are full."""
        if len(self.unwritten) >= limits.OUTBOX_MESSAGES:
            self.overflow(message, limits.OUTBOX_MESSAGES)
        elif not self.waiting and self._may_send(now):
            self.unwritten.append(message)
            self._port.write(message)
        elif self.has_room():
            self.wait(message)
        else:
            self.overflow(message, limits.STUB_QUEUE, self.delay())

    def _may_send(self, now: float) -> bool:
        return self._bucket is None or self._bucket.try_spend(now)

    def delay(self) -> float:
        """Return the approximate seconds until all waiting messages have been sent."""
        return limits.RETRY_AFTER if self.rate is None else len(self.waiting) / self.rate.per_second

    def pause(self, now: float) -> float:
        """Return the seconds until the next group of waiting messages may be sent.

        Infinity: no message waits for the rate limit.
        """
        if not self.waiting or self._bucket is None:
            return math.inf
        return max(self._bucket.pause(now), limits.PACE_SLICE)

    def forget_written(self, count: int) -> None:
        """Forget the oldest messages given to the link, which have been sent."""
        for _ in range(min(count, len(self.unwritten))):
            self.unwritten.popleft()

    def unwritable(self, message: Message) -> None:
        """Forget a message that cannot be sent over any link."""
        if message in self.unwritten:
            self.unwritten.remove(message)

    def flush(self, now: float) -> None:
        """Give waiting messages to the link, oldest first, as far as the rate limit permits."""
        while self.waiting and self._may_send(now):
            message = self.waiting.popleft()
            self.unwritten.append(message)
            self._port.released(message)
            self._port.write(message)

    def keep(self) -> None:
        """Queue the messages that a broken link did not send, before all other messages."""
        for message in self.unwritten:
            self._port.queued(message)
        self.waiting.extendleft(reversed(self.unwritten))
        self.unwritten.clear()
        self.end_hold()

    def refuse_all(
        self, why: str, code: Code = Code.UNAVAILABLE, retry_after: float | None = None
    ) -> None:
        """Refuse all waiting messages."""
        self.end_hold()
        waiting, self.waiting = self.waiting, deque()
        for message in waiting:
            self._port.released(message)
            self.refuse(message, code, why, retry_after)

    def refuse(
        self, message: Message, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        """Answer a request that cannot be sent with an error; drop any other message."""
        if message.is_request:
            self._port.refuse(message, code, why, retry_after)
        else:
            self._port.drop(message, DropReason.SESSION_GONE)

    def overflow(self, message: Message, limit: int, delay: float = limits.RETRY_AFTER) -> None:
        """Refuse or drop a message because its queue is full."""
        if message.is_request:
            why = f"{limit} messages wait for the message node already"
            self._port.refuse(message, Code.UNAVAILABLE, why, delay)
        else:
            self._port.drop(message, DropReason.OVERFLOW)


class _Backoff:
    """Computes the pauses between attempts to connect: none before the first, then doubling.

    Attributes:
        tries: Number of attempts since the last success.
    """

    def __init__(self) -> None:
        self.tries = 0
        self._relapses = 0

    @property
    def is_over(self) -> bool:
        """True if so many attempts have failed that messages no longer wait for the next."""
        return self.tries >= limits.RECONNECT_TRIES

    def attempt(self) -> None:
        """Count an attempt to connect."""
        self.tries = min(self.tries + 1, limits.RECONNECT_TRIES)

    def succeed(self) -> None:
        """Reset the count of attempts, since the connection succeeded."""
        self.tries = 0

    def count_loss(self, lasted: float) -> None:
        """Count the loss of a link that lasted some seconds.

        Links that are lost very soon count as failed attempts, so that the pauses grow.
        """
        if lasted >= limits.RECONNECT_BASE:
            self._relapses = 0
            return
        self.tries = self._relapses
        self._relapses = min(self._relapses + 1, limits.RECONNECT_TRIES)

    def pause(self, jitter: float) -> float:
        """Return the seconds before the next attempt.

        The random `jitter` shortens the pause by up to a half, so that many stubs that lost the
        same node do not connect at the same time.
        """
        if self.tries == 0:
            return 0.0
        doublings = min(self.tries, limits.RECONNECT_TRIES) - 1
        return limits.RECONNECT_BASE * 2.0**doublings * (0.5 + jitter / 2)


_TALKING: Final = frozenset(
    {machines.LinkState.RENEWING, machines.LinkState.OPEN, machines.LinkState.PINGING}
)
"""States in which the session is open."""

_LEAVING: Final = frozenset({machines.LinkState.CLOSING, machines.LinkState.ENDED})

_ASKING: Final = frozenset({machines.LinkState.OPENING, machines.LinkState.PROVING})
"""States in which the session is requested."""

_RENEWALS: Final = frozenset({MessageType.SUBSCRIBE, MessageType.CREATE, MessageType.UPDATE})
"""Types of the requests by which a runtime claims addresses, subscribes, and registers."""

_NOT_RENEWED: Final = "the message node has been started again, and has not everything back yet"

_FORGOTTEN: Final = frozenset({Code.GONE, Code.UNAUTHENTICATED, Code.NOT_FOUND})
"""Codes of answers to a re-open that mean that the session does not exist any more."""


class StubClientCore:
    """Stub of a runtime to one message node: keeps the session open, queues and sends messages.

    It has two state machines, `stub_connection` and `node_link`.

    Attributes:
        sessions: Number of opened sessions; a re-opened session counts only if the node has lost
            the session's data.
        link: The state of the network connection; None: not begun.
    """

    def __init__(
        self,
        url: str,
        port: StubPort,
        jitter: Callable[[], float],
        token: str | None = None,
        owner: str | None = None,
        *,
        may_end: bool = False,
        is_again: bool = False,
    ) -> None:
        """Construct the stub; call `begin` before anything else.

        Args:
            url: The stub's address.
            port: The host.
            jitter: Returns a random number between 0 and 1, to spread the attempts of many stubs.
            token: Token of an earlier stub's session, which is re-opened.
            owner: The runtime, if it has addresses at the node, which it claims again after the
                node has lost them; None: it has none.
            may_end: Whether the stub stays and refuses all messages after a lasting refusal, as the
                stub to the runtime's own node does.
            is_again: Whether an earlier stub had a session, and the runtime had data at the node.
        """
        self.sessions = 0
        self.link: machines.LinkState | None = None
        self._port = port
        self._owner = owner
        self._renewed = 0
        self._hold_until = math.inf
        self._may_end = may_end
        self._is_again = is_again
        self._refused_logins: dict[str, float] = {}
        self._end_code: Code | None = None
        self._entity = Entity(machines.STUB_CONNECTION, url)
        self._jitter = jitter
        self._link_life = Entity(machines.NODE_LINK, url)
        self._outbox = _StubOutbox(port)
        self._token = token
        self._backoff = _Backoff()
        self._until = math.inf
        self._give_up = math.inf
        self._last_loss = ""
        self._tried = -math.inf
        self._since = -math.inf
        self._renew_at = math.inf
        self._slice_at = math.inf

    @property
    def state(self) -> machines.State | None:
        """The state of the connection to the node, or None before `begin`."""
        state = self._entity.state
        return None if state is None else machines.State(state)

    @property
    def has_session(self) -> bool:
        """Whether the stub has the token of a session to re-open."""
        return self._token is not None

    @property
    def queued(self) -> int:
        """The number of messages that wait for the session, or for the rate limit of the node."""
        return len(self._outbox)

    @property
    def held(self) -> int:
        """The number of messages that are not sent yet, without those that wait for restoration."""
        # Those are left out so that the requests which restore the data find room.
        return len(self._outbox.waiting) + len(self._outbox.unwritten)

    @property
    def pace(self) -> Rate | None:
        """The rate of messages that the node accepts while the session is open; None: unknown."""
        return self._outbox.rate if self.link in _TALKING else None

    def begin(self) -> None:
        """Start the state machine of the connection."""
        self._step(machines.Trigger.CONSTRUCTED)

    def deadline(self) -> float:
        """Return the time at which `time_over` must be called next."""
        hold = self._hold_until if self._outbox.held_back else math.inf
        return min(self._until, self._give_up, self._renew_at, self._slice_at, hold)

    # ---- messages

    def send(self, message: Message, now: float) -> None:
        """Send, queue or refuse a message to the node."""
        if self.link is machines.LinkState.RENEWING and not self._is_renewal(message):
            if now >= self._hold_until:
                self._outbox.refuse(message, Code.UNAVAILABLE, _NOT_RENEWED, limits.RETRY_AFTER)
            else:
                self._outbox.hold_back(message)
        elif self.link in _TALKING:
            self._outbox.write(message, now)
        elif self.link in _LEAVING or self.state is machines.State.FAILED:
            if self._end_code is None:
                why = "the stub is closed"
                self._outbox.refuse(message, Code.UNAVAILABLE, why, limits.RETRY_COOL_DOWN)
            else:
                self._outbox.refuse(message, self._end_code, self._last_loss)
        elif self.link is machines.LinkState.PAUSED and self._is_hopeless(now):
            pause = self._tried + limits.RECONNECT_BASE - now
            why = "the message node cannot be reached"
            self._outbox.refuse(message, Code.UNAVAILABLE, why, pause)
        elif not self._outbox.has_room():
            self._outbox.overflow(message, limits.STUB_QUEUE)
        else:
            self._outbox.wait(message)
            self.connect(now)
        self._set_slice(now)

    def note_written(self, count: int) -> None:
        """Note that the link has sent the oldest `count` messages that were given to `write`."""
        self._outbox.forget_written(count)

    def forget(self, message: Message) -> None:
        """Forget a message given to `write` that cannot be sent; the host tells the sender."""
        self._outbox.unwritable(message)

    def end_renewal(self, session: int, now: float) -> None:
        """Send the messages that waited until the runtime had restored its data at the node.

        Args:
            session: Number of the session, as counted by `sessions`.
            now: Seconds on the host's clock.
        """
        self._renewed = max(self._renewed, session)
        if self.link is machines.LinkState.RENEWING and self._renewed >= self.sessions:
            self._step_link(machines.LinkTrigger.RENEWED)
            self._until = now + self._link_life.patience
            self._outbox.end_hold()
            self._outbox.flush(now)
            self._set_slice(now)

    def _is_renewal(self, message: Message) -> bool:
        """Return whether a message restores the runtime's data at the node after a loss."""
        source, owner = message.body.get("source"), self._owner or ""
        return (
            message.type in _RENEWALS
            and is_below(message.from_, owner)
            and is_backend(message.to)
            and domain_of(message.to) == domain_of(owner)
            and (source is None or (isinstance(source, str) and is_below(source, owner)))
        )

    def _is_hopeless(self, now: float) -> bool:
        return self._backoff.is_over and now < self._tried + limits.RECONNECT_BASE

    def _set_slice(self, now: float) -> None:
        """Set the time to send the next group of messages that wait for the node's rate limit."""
        if self.link not in _TALKING:
            self._slice_at = math.inf
        elif self._slice_at == math.inf and self._outbox.waiting:
            self._slice_at = now + self._outbox.pause(now)

    # ---- link and session

    def connect(self, now: float) -> None:
        """Open the connection and session if that was not done yet (C-66)."""
        if self.link is None:
            self._step(machines.Trigger.CONNECT)
            self._last_loss = ""
            self._give_up = now + self._entity.patience
            self._dial(now)
        elif self.link is machines.LinkState.PAUSED and self._backoff.is_over:
            self._dial(now)

    def _dial(self, now: float) -> None:
        self._until = math.inf
        self._tried = now
        self._backoff.attempt()
        self._step_link(machines.LinkTrigger.DIAL)
        self._port.dial()

    def dialled(self, now: float) -> None:
        """Request the session from the node, since the link is open now."""
        if self.link is not machines.LinkState.DIALLING:
            self._port.hang_up()
            return
        self._step_link(machines.LinkTrigger.DIALLED)
        self._until = now + self._link_life.patience
        self._ask_session()

    def _ask_session(self) -> None:
        if self._token is None:
            self._port.ask(SessionMethod.OPEN)
        else:
            self._port.ask(SessionMethod.REOPEN, self._token)

    def take_answer(self, answer: SessionAnswered, now: float) -> None:
        """Handle the node's answer to a session control request."""
        if answer.code < FIRST_FINAL:
            return
        match answer.method:
            case SessionMethod.OPEN | SessionMethod.REOPEN if self.link in _ASKING:
                self._take_opening(answer, now)
            case SessionMethod.OPEN if self.link in _TALKING and answer.code > LAST_SUCCESS:
                # In the form in which each link is a session, the node closes refused links.
                self._hang_up(answer.reason, now)
            case SessionMethod.CLOSE if self.link is machines.LinkState.CLOSING:
                self._end("closed")
            case _:
                self.note_life(now)
        self._set_slice(now)

    def _take_opening(self, answer: SessionAnswered, now: float) -> None:
        if answer.code <= LAST_SUCCESS:
            self._begin_session(answer, now)
            return
        if answer.challenge is not None and self.link is machines.LinkState.OPENING:
            self._step_link(machines.LinkTrigger.CHALLENGED)
            self._until = now + self._link_life.patience
            self._port.ask(answer.method, self._token, answer.challenge)
            return
        is_reopen, why = answer.method is SessionMethod.REOPEN, answer.reason
        is_displaced = is_reopen and answer.code == Code.CONFLICT
        is_first = self.state is machines.State.IN_PROGRESS
        is_lasting = answer.is_lasting or answer.code in TURNED_AWAY
        # An application that has restarted its runtime makes a new login.
        if (is_displaced and is_first) or (is_reopen and answer.code in _FORGOTTEN):
            self._ask_anew(answer, now)
        elif not is_first and self._may_end and (is_displaced or self._is_final(answer, now)):
            self._port.hang_up()
            self._give_up_session(why, Code(answer.code))
        elif is_first and is_lasting and not answer.is_passing:
            self._port.hang_up()
            self._fail(why, Code(answer.code))
        else:
            self._hang_up(why, now)

    def _is_final(self, answer: SessionAnswered, now: float) -> bool:
        """Return whether the node's refusal of the session is final, so that retries are useless.

        Repeated refusals of several logins over some time count as final, too.
        """
        if answer.is_passing:
            return False
        if answer.code == Code.UNAUTHENTICATED and answer.login:
            self._refused_logins.setdefault(answer.login, now)
        is_hopeless = (
            len(self._refused_logins) >= limits.RECONNECT_TRIES
            and now - min(self._refused_logins.values()) >= limits.LOGIN_PATIENCE
        )
        return answer.is_lasting or answer.code == Code.FORBIDDEN or is_hopeless

    def _give_up_session(self, why: str, code: Code) -> None:
        """End the session for good: refuse all messages, and do not connect again."""
        self._stop_timers()
        self._end_code, self._last_loss, self._token = code, why, None
        self._step_link(machines.LinkTrigger.END, why)
        self._step(machines.Trigger.ENDED, why)
        self._outbox.refuse_all(why, code)

    def _ask_anew(self, answer: SessionAnswered, now: float) -> None:
        """Request a new session, since the node no longer has the old one."""
        self._token = None
        if self.link is machines.LinkState.PROVING:
            self._step_link(machines.LinkTrigger.ASKED_ANEW, answer.reason)
        self._until = now + self._link_life.patience
        self._ask_session()

    def _begin_session(self, answer: SessionAnswered, now: float) -> None:
        first = self.state is machines.State.IN_PROGRESS
        if answer.is_anew:
            self.sessions += 1
        if (first and not self._is_again) or self._owner is None:
            self._renewed = self.sessions
        is_renewed = self._renewed == self.sessions
        self._step_link(
            machines.LinkTrigger.SESSION_OPENED
            if is_renewed
            else machines.LinkTrigger.SESSION_EMPTIED
        )
        self._since = now
        self._until = now + self._link_life.patience
        self._hold_until = now + limits.RENEW_TIMEOUT
        self._give_up = math.inf
        self._backoff.succeed()
        self._refused_logins.clear()
        self._token = answer.token or self._token
        self._outbox.keep_to(answer.pace)
        if not is_renewed:
            self._outbox.hold(self._is_renewal)
        self._step(machines.Trigger.ESTABLISHED if first else machines.Trigger.REESTABLISHED)
        self._outbox.flush(now)

    def note_statement(self, life: float, now: float) -> None:
        """Plan the renewal of the node's statement about the runtime's key.

        The host calls this before `take_answer`.

        Args:
            life: Seconds until the statement expires.
            now: Seconds on the host's clock.
        """
        self._renew_at = now + max(life / 2, STATEMENT_RETRY)

    def note_life(self, now: float) -> None:
        """Note that data came over the link, so the node is alive."""
        if self.link is machines.LinkState.PINGING:
            self._step_link(machines.LinkTrigger.HEARD)
        if self.link in {machines.LinkState.OPEN, machines.LinkState.RENEWING}:
            self._until = now + self._link_life.patience

    def lose_link(self, why: str, now: float) -> None:
        """Handle that the link was lost, or did not open: dial again after a pause if needed."""
        match self.link:
            case machines.LinkState.CLOSING:
                self._end(why)
            case None | machines.LinkState.PAUSED | machines.LinkState.ENDED:
                pass
            case _:
                self._pause(why, now)
        self._set_slice(now)

    def _hang_up(self, why: str, now: float) -> None:
        self._port.hang_up()
        self.lose_link(why, now)

    def _pause(self, why: str, now: float) -> None:
        self._step_link(machines.LinkTrigger.LOST, why)
        self._last_loss = why
        self._renew_at = math.inf
        if self.state is machines.State.LIVE:
            self._step(machines.Trigger.CLOSED, why)
            self._outbox.keep()
            self._backoff.count_loss(now - self._since)
        self._until = now + self._backoff.pause(self._jitter())
        if self.state is machines.State.IN_PROGRESS and self._until >= self._give_up:
            self._fail(why)
        elif self._backoff.is_over:
            self._outbox.refuse_all(why, retry_after=limits.RECONNECT_BASE)

    def _fail(self, why: str, code: Code = Code.UNAVAILABLE) -> None:
        self._stop_timers()
        self._step_link(machines.LinkTrigger.END, why)
        self._step(machines.Trigger.ESTABLISH_FAILED, why)
        # The runtime deploys another stub after this time.
        later = limits.RETRY_COOL_DOWN if code is Code.UNAVAILABLE else None
        self._outbox.refuse_all(why, code, later)

    # ---- time and the end

    def time_over(self, now: float) -> None:
        """Handle the deadline that has passed, if any."""
        if now >= self._slice_at:
            self._slice_at = math.inf
            self._outbox.flush(now)
        elif self._outbox.held_back and now >= self._hold_until:
            self._outbox.refuse_held()
        elif now >= self._give_up:
            # The reason of the last attempt says more than that the time is over.
            self._port.hang_up()
            self._fail(self._last_loss or "no session in time")
        elif now >= self._renew_at:
            self._renew_at = now + STATEMENT_RETRY
            if self.link in _TALKING:
                self._port.ask(SessionMethod.RENEW)
        elif now >= self._until:
            self._end_wait(now)
        self._set_slice(now)

    def _end_wait(self, now: float) -> None:
        match self.link:
            case machines.LinkState.PAUSED:
                self._dial(now)
            case machines.LinkState.OPEN:
                self._step_link(machines.LinkTrigger.PING)
                self._until = now + self._link_life.patience
                self._port.ask(SessionMethod.PING)
            case machines.LinkState.PINGING | machines.LinkState.RENEWING if (
                now > self._until + limits.LATE
            ):
                # The host called too late: the answer of the node may not be read yet.
                self._until = now + min(now - self._until, limits.PONG_TIMEOUT)
            case machines.LinkState.PINGING | machines.LinkState.RENEWING as link:
                asked = (
                    "a ping"
                    if link is machines.LinkState.PINGING
                    else "what the node has forgotten"
                )
                self._hang_up(f"{asked} was not answered", now)
            case machines.LinkState.OPENING | machines.LinkState.PROVING:
                self._hang_up("no session in time", now)
            case _:
                self._end("no answer to the close")

    def disconnect(self, now: float) -> None:
        """Close the session for good (STB-04)."""
        if self.link in _TALKING:
            self._step_link(machines.LinkTrigger.CLOSE)
            self._until = now + self._link_life.patience
            self._port.ask(SessionMethod.CLOSE)
        elif self.link is not machines.LinkState.CLOSING:
            self._end("disconnect")
        self._set_slice(now)

    def _end(self, why: str) -> None:
        self._stop_timers()
        self._port.hang_up()
        if self.link is not machines.LinkState.ENDED:
            self._step_link(machines.LinkTrigger.END, why)
        match self.state:
            case machines.State.LIVE:
                self._step(machines.Trigger.CLOSED, why)
                self._outbox.keep()
            case machines.State.IN_PROGRESS:
                self._step(machines.Trigger.ESTABLISH_FAILED, why)
            case machines.State.CREATED:
                self._step(machines.Trigger.CONNECT_IMPOSSIBLE, why)
            case _:
                pass
        self._outbox.refuse_all("the stub is closed")
        self._port.ended()

    def _stop_timers(self) -> None:
        self._until = self._give_up = self._renew_at = math.inf

    def _step(self, trigger: machines.Trigger, why: str = "") -> None:
        self._port.step(self._entity.step(trigger, why))

    def _step_link(self, trigger: machines.LinkTrigger, why: str = "") -> None:
        step = self._link_life.step(trigger, why)
        self.link = machines.LinkState(step.new)
        self._port.step(step)


# ---- state machine transitions that a stub in a sandbox reports


_RESTS: Final = {
    machines.State.CREATED: machines.Trigger.CONNECT_IMPOSSIBLE,
    machines.State.IN_PROGRESS: machines.Trigger.ESTABLISH_FAILED,
    machines.State.LIVE: machines.Trigger.CLOSED,
}
"""The last trigger for the connection of a stub whose sandbox has ended."""


class StubMirror:
    """Checks the state machine transitions that an untrusted stub reports, and repeats them here.

    Args:
        stub: Address of the stub.
    """

    def __init__(self, stub: str) -> None:
        self._connection = Entity(machines.STUB_CONNECTION, stub)
        self._link = Entity(machines.NODE_LINK, stub)

    @property
    def state(self) -> machines.State | None:
        """The state of the stub's connection; None: not begun."""
        state = self._connection.state
        return None if state is None else machines.State(state)

    def follow(self, machine: str, cause: str, target: str, why: str) -> Step:
        """Check and repeat a transition that the stub reports.

        Args:
            machine: Name of the state machine.
            cause: The trigger.
            target: The new state.
            why: The reason, for the trace.

        Raises:
            UndeclaredTransitionError: The state machine has no such transition.
        """
        entity = self._link if machine == machines.NODE_LINK.name else self._connection
        if machine != entity.table.name or cause not in set(entity.table.triggers):
            raise _undeclared_step(entity, cause)
        step = entity.step(entity.table.triggers(cause), why)
        if step.new != target:
            raise _undeclared_step(entity, cause)
        return step

    def rest(self, why: str) -> list[Step]:
        """Return the last transitions of link and connection when the stub's sandbox has ended."""
        steps: list[Step] = []
        if self._link.state in _TALKING:
            steps.append(self._link.step(machines.LinkTrigger.LOST, why))
        if not self._link.may_end:
            steps.append(self._link.step(machines.LinkTrigger.END, why))
        state = self.state
        trigger = None if state is None else _RESTS.get(state)
        return steps if trigger is None else [*steps, self._connection.step(trigger, why)]


def _undeclared_step(entity: Entity, cause: str) -> UndeclaredTransitionError:
    return UndeclaredTransitionError(entity.table.name, entity.key, entity.state, cause)
