"""The session of a message node's stub (3.2, STB-03..09, STB-17, C-66).

The first message connects; while there is no session, messages queue in order. A lost
link is dialled again at once and then with growing pauses, and the session re-opened
with its token, so that the node keeps what it had; a node that has forgotten the
session (410) gives a new one, and the runtime claims and registers again what it had there: until
it says that this is done, only the requests by which it does so leave. A node that challenges the
runtime's key is asked again, with a proof, once for each request. What it has stated of the
runtime is renewed in time. A disconnect that was
asked for is final: later messages are refused, nothing reconnects (I-S10). So is a lasting refusal
of the session of the own node: another login has taken it over, its name is another user's, policy
forbids it, or no login helps.

A node says how many messages a second it accepts. The stub sends no more, so none wait unread in
the buffers of the link; those above the rate wait here, in order, and leave in slices.

If there can be no session, all unanswered requests are answered 503, or with the node's refusal
if it lets the runtime in for no asking; what the queue has no space for is answered 503, too, the
newest first, with the seconds after which there is space.
"""

import math
from collections import deque
from collections.abc import Callable
from typing import Final, assert_never, final

from fsm.effects import Dropped
from fsm.engine import Entity
from fsm.limits.rates import Rate, TokenBucket
from fsm.machines.stub_connection import (
    NODE_LINK,
    STUB_CONNECTION,
    LinkState,
    LinkTrigger,
    State,
    Trigger,
)
from fsm.session import stub_client_io as ev
from fsm.session.stub_client_io import Effect, Queued, Refuse, Released, Write
from specs.addresses.address import domain_of, is_backend, is_below
from specs.bodies.word import SessionMethod
from specs.limits.node import STATEMENT_RETRY
from specs.limits.protocol import (
    LATE,
    LOGIN_PATIENCE,
    OUTBOX_MESSAGES,
    PACE_SHARE,
    PACE_SLICE,
    PONG_TIMEOUT,
    RECONNECT_BASE,
    RECONNECT_TRIES,
    RENEW_TIMEOUT,
    RETRY_AFTER,
    RETRY_COOL_DOWN,
    STUB_QUEUE,
)
from specs.message import Message, MessageType
from specs.reply_code import FIRST_FINAL, LAST_SUCCESS, TURNED_AWAY, Code, DropReason


@final
class _StubOutbox:
    """Two queues in order of arrival, both bounded (STB-17, I-S9).

    Attributes:
        rate: What the node accepts; None: it did not say.
    """

    def __init__(self) -> None:
        self._waiting: deque[Message] = deque()
        self._unwritten: deque[Message] = deque()
        self._held: deque[Message] = deque()
        self.rate: Rate | None = None
        self._bucket: TokenBucket | None = None

    def __len__(self) -> int:
        """The number of messages that wait for the session."""
        return len(self._waiting) + len(self._held)

    @property
    def held(self) -> int:
        """The number of messages that are not written to a link, without those held back.

        Those leave room for the requests that they wait for.
        """
        return len(self._waiting) + len(self._unwritten)

    @property
    def is_holding(self) -> bool:
        """True if messages are held back."""
        return bool(self._held)

    def has_room(self) -> bool:
        """True if one more message may wait for the session."""
        return len(self) < STUB_QUEUE

    def wait(self, message: Message) -> list[Effect]:
        """Let a message wait for the session."""
        self._waiting.append(message)
        return [Queued(message)]

    def hold(self, may_go: Callable[[Message], bool]) -> None:
        """Hold back those that wait and may not go yet."""
        self._held.extend(one for one in self._waiting if not may_go(one))
        self._waiting = deque(one for one in self._waiting if may_go(one))

    def hold_back(self, message: Message) -> list[Effect]:
        """Hold back one more message, unless too many wait already."""
        if not self.has_room():
            return [_overflow(message, STUB_QUEUE, RETRY_AFTER)]
        self._held.append(message)
        return [Queued(message)]

    def end_hold(self) -> None:
        """Let what was held back wait for its turn."""
        self._waiting.extend(self._held)
        self._held.clear()

    def refuse_held(self) -> list[Effect]:
        """Refuse what was held back."""
        held, self._held = self._held, deque()
        return [effect for one in held for effect in (Released(one), _not_renewed(one))]

    def keep_to(self, rate: Rate | None) -> None:
        """Send no more messages than a node accepts; the bucket outlives a re-open.

        The node counts session controls, too, and its clock is another: a part is left to it.

        Args:
            rate: What the node accepts; None: it did not say.
        """
        if rate == self.rate:
            return
        self.rate = rate
        if rate is None:
            self._bucket = None
        else:
            burst = max(1, int(rate.burst * PACE_SHARE))
            self._bucket = TokenBucket(rate.per_second * PACE_SHARE, burst)

    def write(self, message: Message, now: float) -> list[Effect]:
        """Give a message to the link when its turn has come, unless too many wait already."""
        if len(self._unwritten) >= OUTBOX_MESSAGES:
            return [_overflow(message, OUTBOX_MESSAGES)]
        if not self._waiting and self._may_send(now):
            self._unwritten.append(message)
            return [Write(message)]
        if self.has_room():
            return self.wait(message)
        return [_overflow(message, STUB_QUEUE, self.delay())]

    def _may_send(self, now: float) -> bool:
        return self._bucket is None or self._bucket.try_spend(now)

    def delay(self) -> float:
        """Return about how many seconds those that wait take to leave."""
        return RETRY_AFTER if self.rate is None else len(self._waiting) / self.rate.per_second

    def pause(self, now: float) -> float:
        """Return the seconds until a slice of those that wait may leave; infinity: none wait."""
        if not self._waiting or self._bucket is None:
            return math.inf
        return max(self._bucket.pause(now), PACE_SLICE)

    def written(self, count: int) -> None:
        """Forget the oldest messages given to the link: it has sent them."""
        for _ in range(min(count, len(self._unwritten))):
            self._unwritten.popleft()

    def unwritable(self, message: Message) -> None:
        """Forget a message that no link can take."""
        if message in self._unwritten:
            self._unwritten.remove(message)

    def flush(self, now: float) -> list[Effect]:
        """Give what waits to the link, oldest first, as far as the node accepts it."""
        effects: list[Effect] = []
        while self._waiting and self._may_send(now):
            message = self._waiting.popleft()
            self._unwritten.append(message)
            effects += [Released(message), Write(message)]
        return effects

    def keep(self) -> list[Effect]:
        """Take back what the link did not send before it broke; it waits first."""
        kept: list[Effect] = [Queued(message) for message in self._unwritten]
        self._waiting.extendleft(reversed(self._unwritten))
        self._unwritten.clear()
        self.end_hold()
        return kept

    def refuse(
        self, why: str, code: Code = Code.UNAVAILABLE, retry_after: float | None = None
    ) -> list[Effect]:
        """Refuse all messages that wait."""
        self.end_hold()
        waiting, self._waiting = self._waiting, deque()
        effects: list[Effect] = []
        for message in waiting:
            effects += [Released(message), refused(message, code, why, retry_after)]
        return effects


def refused(
    message: Message, code: Code, why: str, retry_after: float | None = None
) -> Refuse | Dropped:
    """Return the effects for a message that cannot be sent: only requests are answered.

    Args:
        message: The message.
        code: Code of the answer.
        why: Reason.
        retry_after: Seconds until another attempt may succeed; None: not known, or never.
    """
    if message.is_request:
        return Refuse(message, code, why, retry_after)
    return Dropped(message, DropReason.SESSION_GONE)


def _not_renewed(message: Message) -> Refuse | Dropped:
    why = "the message node has been started again, and has not everything back yet"
    return refused(message, Code.UNAVAILABLE, why, RETRY_AFTER)


def _overflow(message: Message, limit: int, delay: float = RETRY_AFTER) -> Refuse | Dropped:
    """Return the effects for a message that a full queue has no space for."""
    if message.is_request:
        why = f"{limit} messages wait for the message node already"
        return Refuse(message, Code.UNAVAILABLE, why, delay)
    return Dropped(message, DropReason.OVERFLOW)


@final
class _Backoff:
    """Counts attempts at one thing: the first is at once, then pauses double.

    Attributes:
        tries: Attempts since the last success.
    """

    def __init__(self) -> None:
        self.tries = 0
        self._relapses = 0

    @property
    def is_over(self) -> bool:
        """True if all attempts that were worth waiting for have been made."""
        return self.tries >= RECONNECT_TRIES

    def attempt(self) -> None:
        """Count an attempt."""
        self.tries = min(self.tries + 1, RECONNECT_TRIES)

    def succeed(self) -> None:
        """Begin anew."""
        self.tries = 0

    def lost(self, lasted: float) -> None:
        """Note the loss of a link that lasted some seconds.

        A link that never lasts longer than a first pause is no success, and without this it
        would be tried again and again at once.
        """
        if lasted >= RECONNECT_BASE:
            self._relapses = 0
            return
        self.tries = self._relapses
        self._relapses = min(self._relapses + 1, RECONNECT_TRIES)

    def pause(self, jitter: float) -> float:
        """Return the seconds before the next attempt: half of the pause, to all of it by `jitter`.

        So that many stubs that lost the same peer do not come back together.
        """
        if self.tries == 0:
            return 0.0
        doublings = min(self.tries, RECONNECT_TRIES) - 1
        return RECONNECT_BASE * 2.0**doublings * (0.5 + jitter / 2)


_TALKING: Final = frozenset({LinkState.RENEWING, LinkState.OPEN, LinkState.PINGING})
"""While the session is open."""

_ASKING: Final = frozenset({LinkState.OPENING, LinkState.PROVING})
"""While the session is asked for."""

_RENEWALS: Final = frozenset({MessageType.SUBSCRIBE, MessageType.CREATE, MessageType.UPDATE})
"""The requests by which a runtime claims addresses, sets paths, and registers."""

_FORGOTTEN: Final = frozenset({Code.GONE, Code.UNAUTHENTICATED, Code.NOT_FOUND})
"""Answers to a re-open that say: there is no such session any more."""


@final
class StubClientCore:
    """One node stub: an entity of `stub_connection`, and one of `node_link`.

    Attributes:
        sessions: How many sessions it has opened anew; a re-open is none, unless the node has
            started again and forgotten what the session had.
    """

    def __init__(
        self,
        url: str,
        jitter: Callable[[], float],
        token: str | None = None,
        owner: str | None = None,
        *,
        may_end: bool = False,
        is_again: bool = False,
    ) -> None:
        """Construct the stub; `begin` takes its first step.

        Args:
            url: The stub's address.
            jitter: Between 0 and 1; spreads the attempts of many stubs.
            token: Of a session that an earlier stub had: it is re-opened.
            owner: The runtime, if it has addresses at the node, which it claims again once the
                node has forgotten them; None: it has none.
            may_end: Whether a lasting refusal ends it for good, as that of a runtime by its node.
            is_again: Whether an earlier stub had a session, with what the runtime had at the node.
        """
        self.sessions = 0
        self._owner = owner
        self._renewed = 0
        self._hold_until = math.inf
        self._may_end = may_end
        self._is_again = is_again
        self._refused_logins: dict[str, float] = {}
        self._end_code: Code | None = None
        self._entity = Entity(STUB_CONNECTION, url)
        self._jitter = jitter
        self._link_life = Entity(NODE_LINK, url)
        self._outbox = _StubOutbox()
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
    def state(self) -> State | None:
        """The connection's state."""
        state = self._entity.state
        return None if state is None else State(state)

    @property
    def link(self) -> LinkState | None:
        """The state of the link; None: nothing has begun."""
        state = self._link_life.state
        return state if isinstance(state, LinkState) else None

    @property
    def has_session(self) -> bool:
        """Whether there is a session to re-open; else a new one is asked for."""
        return self._token is not None

    @property
    def queued(self) -> int:
        """The number of messages that wait for the session, or for the rate of the node."""
        return len(self._outbox)

    @property
    def held(self) -> int:
        """The number of messages that wait, or are given to the link and not written yet."""
        return self._outbox.held

    @property
    def pace(self) -> Rate | None:
        """What the node accepts, while messages wait for that; None: none does."""
        return self._outbox.rate if self.link in _TALKING else None

    def begin(self) -> list[ev.Effect]:
        """Take the constructor's step."""
        return [self._entity.step(Trigger.CONSTRUCTED)]

    def deadline(self) -> float:
        """Return when `TimePassed` is due."""
        hold = self._hold_until if self._outbox.is_holding else math.inf
        return min(self._until, self._give_up, self._renew_at, self._slice_at, hold)

    def feed(self, happened: ev.Input, now: float) -> list[ev.Effect]:
        """Take an input; return the effects, in order.

        Args:
            happened: The input.
            now: Seconds on the host's clock.
        """
        effects = self._fed(happened, now)
        if self.link not in _TALKING:
            self._slice_at = math.inf
        elif self._slice_at == math.inf:
            self._slice_at = now + self._outbox.pause(now)
        return effects

    def _fed(self, happened: ev.Input, now: float) -> list[ev.Effect]:
        match happened:
            case ev.SendAsked(message):
                return self._send(message, now)
            case ev.Heard():
                return self._heard(now)
            case ev.Written() | ev.Unwritable():
                return self._passed_on(happened)
            case ev.DisconnectAsked():
                return self._disconnect(now)
            case ev.Renewed(session):
                return self._end_renewal(session, now)
            case _:
                return self._link(happened, now)

    def _passed_on(self, happened: ev.Written | ev.Unwritable) -> list[ev.Effect]:
        if isinstance(happened, ev.Written):
            self._outbox.written(happened.count)
        else:
            self._outbox.unwritable(happened.message)
        return []

    def _link(self, happened: ev.LinkInput, now: float) -> list[ev.Effect]:
        match happened:
            case ev.ConnectAsked():
                return self._connect(now)
            case ev.Dialled():
                return self._dialled(now)
            case ev.DialFailed(why) | ev.LinkLost(why):
                return self._lost(why, now)
            case ev.SessionAnswered():
                return self._session(happened, now)
            case ev.StatementGiven(life):
                self._renew_at = now + max(life / 2, STATEMENT_RETRY)
                return []
            case ev.TimePassed():
                return self._time(now)
            case _:
                assert_never(happened)

    # ---- messages

    def _send(self, message: Message, now: float) -> list[ev.Effect]:
        if self.link is LinkState.RENEWING and not self._is_renewal(message):
            is_late = now >= self._hold_until
            return [_not_renewed(message)] if is_late else self._outbox.hold_back(message)
        if self.link in _TALKING:
            return self._outbox.write(message, now)
        if self.link in {LinkState.ENDED, LinkState.CLOSING} or self.state is State.FAILED:
            if self._end_code is None:
                end = refused(message, Code.UNAVAILABLE, "the stub is closed", RETRY_COOL_DOWN)
            else:
                end = refused(message, self._end_code, self._last_loss)
            return [end]
        if self.link is LinkState.PAUSED and self._is_hopeless(now):
            pause = self._tried + RECONNECT_BASE - now
            why = "the message node cannot be reached"
            return [refused(message, Code.UNAVAILABLE, why, pause)]
        if not self._outbox.has_room():
            return [_overflow(message, STUB_QUEUE)]
        return [*self._outbox.wait(message), *self._connect(now)]

    def _is_renewal(self, message: Message) -> bool:
        """Return whether a message gives the runtime back what it had at the node."""
        source, owner = message.body.get("source"), self._owner or ""
        return (
            message.type in _RENEWALS
            and is_below(message.from_, owner)
            and is_backend(message.to)
            and domain_of(message.to) == domain_of(owner)
            and (source is None or (isinstance(source, str) and is_below(source, owner)))
        )

    def _end_renewal(self, session: int, now: float) -> list[ev.Effect]:
        """Let go what waited for the runtime to have everything at its session again."""
        self._renewed = max(self._renewed, session)
        if self.link is not LinkState.RENEWING or self._renewed < self.sessions:
            return []
        step = self._link_life.step(LinkTrigger.RENEWED)
        self._until = now + self._link_life.patience
        self._outbox.end_hold()
        return [step, *self._outbox.flush(now)]

    def _is_hopeless(self, now: float) -> bool:
        return self._backoff.is_over and now < self._tried + RECONNECT_BASE

    # ---- link and session

    def _connect(self, now: float) -> list[ev.Effect]:
        if self.link is None:
            step = self._entity.step(Trigger.CONNECT)
            self._last_loss = ""
            self._give_up = now + self._entity.patience
            return [step, *self._dial(now)]
        if self.link is LinkState.PAUSED and self._backoff.is_over:
            return self._dial(now)
        return []

    def _dial(self, now: float) -> list[ev.Effect]:
        self._until = math.inf
        self._tried = now
        self._backoff.attempt()
        return [self._link_life.step(LinkTrigger.DIAL), ev.Dial()]

    def _dialled(self, now: float) -> list[ev.Effect]:
        if self.link is not LinkState.DIALLING:
            return [ev.HangUp()]
        step = self._link_life.step(LinkTrigger.DIALLED)
        self._until = now + self._link_life.patience
        return [step, self._ask_session()]

    def _ask_session(self) -> ev.Ask:
        if self._token is None:
            return ev.Ask(SessionMethod.OPEN)
        return ev.Ask(SessionMethod.REOPEN, self._token)

    def _session(self, answer: ev.SessionAnswered, now: float) -> list[ev.Effect]:
        if answer.code < FIRST_FINAL:
            return []
        match answer.method:
            case SessionMethod.OPEN | SessionMethod.REOPEN if self.link in _ASKING:
                return self._opened(answer, now)
            case SessionMethod.OPEN if self.link in _TALKING and answer.code > LAST_SUCCESS:
                # In a form where each link is a session, the node closes refused links.
                return [ev.HangUp(), *self._lost(answer.reason, now)]
            case SessionMethod.CLOSE if self.link is LinkState.CLOSING:
                return self._end("closed")
            case _:
                return self._heard(now)

    def _opened(self, answer: ev.SessionAnswered, now: float) -> list[ev.Effect]:
        if answer.code <= LAST_SUCCESS:
            return self._live(answer, now)
        if answer.challenge is not None and self.link is LinkState.OPENING:
            step = self._link_life.step(LinkTrigger.CHALLENGED)
            self._until = now + self._link_life.patience
            return [step, ev.Ask(answer.method, self._token, answer.challenge)]
        is_reopen, why = answer.method is SessionMethod.REOPEN, answer.reason
        is_displaced = is_reopen and answer.code == Code.CONFLICT
        is_first = self.state is State.IN_PROGRESS
        # An application that has started its runtime again asks for a new login.
        if (is_displaced and is_first) or (is_reopen and answer.code in _FORGOTTEN):
            return self._forgotten(answer, now)
        if not is_first and self._may_end and (is_displaced or self._is_final(answer, now)):
            return [ev.HangUp(), *self._give_up_session(why, Code(answer.code))]
        is_lasting = answer.is_lasting or answer.code in TURNED_AWAY
        if is_first and is_lasting and not answer.is_passing:
            return [ev.HangUp(), *self._fail(why, Code(answer.code))]
        return [ev.HangUp(), *self._lost(why, now)]

    def _is_final(self, answer: ev.SessionAnswered, now: float) -> bool:
        """Return whether a refusal is lasting; so is that of many logins for some time."""
        if answer.is_passing:
            return False
        if answer.code == Code.UNAUTHENTICATED and answer.login:
            self._refused_logins.setdefault(answer.login, now)
        is_hopeless = (
            len(self._refused_logins) >= RECONNECT_TRIES
            and now - min(self._refused_logins.values()) >= LOGIN_PATIENCE
        )
        return answer.is_lasting or answer.code == Code.FORBIDDEN or is_hopeless

    def _give_up_session(self, why: str, code: Code) -> list[ev.Effect]:
        """End for good: all messages are refused with the reason, and nothing is tried again."""
        self._until = self._give_up = self._renew_at = math.inf
        self._end_code, self._last_loss, self._token = code, why, None
        over = self._link_life.step(LinkTrigger.END, why)
        step = self._entity.step(Trigger.ENDED, why)
        return [over, step, *self._outbox.refuse(why, code)]

    def _forgotten(self, answer: ev.SessionAnswered, now: float) -> list[ev.Effect]:
        """Ask for another session: the node has no such one any more."""
        self._token = None
        is_proving = self.link is LinkState.PROVING
        step = [self._link_life.step(LinkTrigger.ASKED_ANEW, answer.reason)] if is_proving else []
        self._until = now + self._link_life.patience
        return [*step, self._ask_session()]

    def _live(self, answer: ev.SessionAnswered, now: float) -> list[ev.Effect]:
        first = self.state is State.IN_PROGRESS
        if answer.is_anew:
            self.sessions += 1
        if (first and not self._is_again) or self._owner is None:
            self._renewed = self.sessions
        is_renewed = self._renewed == self.sessions
        opened = self._link_life.step(
            LinkTrigger.SESSION_OPENED if is_renewed else LinkTrigger.SESSION_EMPTIED
        )
        self._since = now
        self._until = now + self._link_life.patience
        self._hold_until = now + RENEW_TIMEOUT
        self._give_up = math.inf
        self._backoff.succeed()
        self._refused_logins.clear()
        self._token = answer.token or self._token
        trigger = Trigger.ESTABLISHED if first else Trigger.REESTABLISHED
        self._outbox.keep_to(answer.pace)
        if not is_renewed:
            self._outbox.hold(self._is_renewal)
        return [opened, self._entity.step(trigger), *self._outbox.flush(now)]

    def _heard(self, now: float) -> list[ev.Effect]:
        effects: list[ev.Effect] = []
        if self.link is LinkState.PINGING:
            effects.append(self._link_life.step(LinkTrigger.HEARD))
        if self.link in {LinkState.OPEN, LinkState.RENEWING}:
            self._until = now + self._link_life.patience
        return effects

    def _lost(self, why: str, now: float) -> list[ev.Effect]:
        match self.link:
            case LinkState.CLOSING:
                return self._end(why)
            case None | LinkState.PAUSED | LinkState.ENDED:
                return []
            case _:
                return self._pause(why, now)

    def _pause(self, why: str, now: float) -> list[ev.Effect]:
        effects: list[ev.Effect] = [self._link_life.step(LinkTrigger.LOST, why)]
        self._last_loss = why
        self._renew_at = math.inf
        if self.state is State.LIVE:
            effects.append(self._entity.step(Trigger.CLOSED, why))
            effects += self._outbox.keep()
            self._backoff.lost(now - self._since)
        self._until = now + self._backoff.pause(self._jitter())
        if self.state is State.IN_PROGRESS and self._until >= self._give_up:
            return [*effects, *self._fail(why)]
        if self._backoff.is_over:
            effects += self._outbox.refuse(why, retry_after=RECONNECT_BASE)
        return effects

    def _fail(self, why: str, code: Code = Code.UNAVAILABLE) -> list[ev.Effect]:
        self._until = self._give_up = self._renew_at = math.inf
        over = self._link_life.step(LinkTrigger.END, why)
        step = self._entity.step(Trigger.ESTABLISH_FAILED, why)
        # The runtime deploys another stub after that.
        later = RETRY_COOL_DOWN if code is Code.UNAVAILABLE else None
        return [over, step, *self._outbox.refuse(why, code, later)]

    # ---- time and the end

    def _time(self, now: float) -> list[ev.Effect]:
        if now >= self._slice_at:
            self._slice_at = math.inf
            return list(self._outbox.flush(now))
        if self._outbox.is_holding and now >= self._hold_until:
            return list(self._outbox.refuse_held())
        if now >= self._give_up:
            # The last attempt says more than that time is over.
            return [ev.HangUp(), *self._fail(self._last_loss or "no session in time")]
        if now >= self._renew_at:
            self._renew_at = now + STATEMENT_RETRY
            return [ev.Ask(SessionMethod.RENEW)] if self.link in _TALKING else []
        return self._due(now) if now >= self._until else []

    def _due(self, now: float) -> list[ev.Effect]:
        match self.link:
            case LinkState.PAUSED:
                return self._dial(now)
            case LinkState.OPEN:
                step = self._link_life.step(LinkTrigger.PING)
                self._until = now + self._link_life.patience
                return [step, ev.Ask(SessionMethod.PING)]
            case LinkState.PINGING | LinkState.RENEWING if now > self._until + LATE:
                # Late itself: what the node has answered may not be read yet.
                self._until = now + min(now - self._until, PONG_TIMEOUT)
                return []
            case LinkState.PINGING | LinkState.RENEWING as link:
                asked = "a ping" if link is LinkState.PINGING else "what the node has forgotten"
                return [ev.HangUp(), *self._lost(f"{asked} was not answered", now)]
            case LinkState.OPENING | LinkState.PROVING:
                return [ev.HangUp(), *self._lost("no session in time", now)]
            case _:
                return self._end("no answer to the close")

    def _disconnect(self, now: float) -> list[ev.Effect]:
        if self.link in _TALKING:
            step = self._link_life.step(LinkTrigger.CLOSE)
            self._until = now + self._link_life.patience
            return [step, ev.Ask(SessionMethod.CLOSE)]
        if self.link is LinkState.CLOSING:
            return []
        return self._end("disconnect")

    def _end(self, why: str) -> list[ev.Effect]:
        self._until = self._give_up = self._renew_at = math.inf
        effects: list[ev.Effect] = [ev.HangUp()]
        if self.link is not LinkState.ENDED:
            effects.append(self._link_life.step(LinkTrigger.END, why))
        match self.state:
            case State.LIVE:
                effects.append(self._entity.step(Trigger.CLOSED, why))
                effects += self._outbox.keep()
            case State.IN_PROGRESS:
                effects.append(self._entity.step(Trigger.ESTABLISH_FAILED, why))
            case State.CREATED:
                effects.append(self._entity.step(Trigger.CONNECT_IMPOSSIBLE, why))
            case _:
                pass
        return [*effects, *self._outbox.refuse("the stub is closed"), ev.Ended()]
