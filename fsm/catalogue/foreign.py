"""The foreign domains of a message node: one stub for each, in a sandbox process of its own.

The first message for a domain has its stub deployed; later messages wait, in order and
within bounds (MN-19, STB-11). If a sandbox cannot be started, or its stub cannot connect,
the domain rests for a while, and the waiting messages are answered 503 (STB-14). The crash
of a sandbox affects no other: requests that it has not answered are answered 503, and the
next message starts another sandbox, which resumes the session; after too many crashes the
domain rests (MN-20, R11). No stub's name is used twice (STB-15).

A stub that was idle for a while is released, unless a request is open or a subscription is held
in its domain (PFY-03). Messages that come while it ends wait for its successor.

A stub reports its own status only, and forwards what it has stamped; the node checks each
forwarded message again, as if it came over the network (T16).
"""

import math
from collections.abc import Container
from typing import Final, assert_never, final

import attrs

from fsm.bus.held_paths import HeldPaths
from fsm.bus.transactions import OutstandingCore
from fsm.catalogue.foreign_io import (
    Answer,
    Banish,
    Deliver,
    Effect,
    End,
    Input,
    Leave,
    Open,
    Pass,
    Refuse,
    Renew,
    SandboxFull,
    SandboxGone,
    SandboxInput,
    SandboxPosted,
    SandboxReady,
    SandboxSession,
    SandboxStatus,
    SandboxUnreachable,
    Send,
    Tick,
)
from fsm.effects import Dropped, Refused
from fsm.engine import Entity
from fsm.limits.error_window import CrashCount
from fsm.limits.user_shares import Share, UserQueue, user_of
from fsm.machines.stub_connection import State
from fsm.machines.stub_deployment import STUB_DEPLOYMENT, Trigger
from fsm.machines.stub_deployment import State as Deployment
from fsm.session.node_session_io import OutboundMessage
from specs.addresses.address import domain_of, is_below, status_of
from specs.limits.foreign_code import FOREIGN_DOMAINS
from specs.limits.protocol import (
    OUTBOX_BYTES,
    PEER_OFFENCES,
    QUARANTINE,
    RETRY_AFTER,
    RETRY_COOL_DOWN,
    SANDBOX_COOL_DOWN,
    STUB_QUEUE,
)
from specs.message import Message
from specs.reply_code import LAST_SUCCESS, Code, DropReason

__all__ = ["ForeignCore"]


@final
@attrs.define(slots=True)
class _ForeignHistory:
    """The history of a domain beyond one sandbox.

    Attributes:
        started: Number of sandboxes so far.
        token: Of the session of the last stub.
        crashes: Recent crashes of sandboxes.
        until: End of the pause.
        why: Reason of the pause.
    """

    started: int = 0
    token: str | None = attrs.field(default=None, repr=False)
    crashes: CrashCount = attrs.field(factory=CrashCount)
    until: float = -math.inf
    why: str = ""

    def rest(self, until: float, why: str) -> None:
        """Dial the domain no more for a while."""
        self.until, self.why = until, why

    def keep(self, domain: str, token: str, *, is_anew: bool) -> list[Effect]:
        """Keep the token of a session, and renew the subscriptions of an earlier one."""
        known, self.token = self.token, token
        return [Renew(domain)] if is_anew and known not in {None, token} else []

    def crashed(self, why: str, now: float) -> None:
        """Count a crash; after too many the domain is not dialled for a while."""
        if self.crashes.crashed(now):
            self.rest(now + SANDBOX_COOL_DOWN, f"its sandbox crashes again and again: {why}")


@final
@attrs.frozen(slots=True)
class _NoRoute:
    """Why nothing is sent to a domain.

    Attributes:
        retry_after: Seconds until it may be; None: never.
    """

    code: Code
    why: str
    retry_after: float | None = None


@final
class _ForeignSandbox:
    """A stub that is being deployed in a sandbox, or runs there.

    Attributes:
        deployment: Its entity.
        state: State of its connection; None: not reported yet.
        why: Reason of that state.
        offences: Number of messages that it posted without the right to.
        is_ending: An end was ordered.
        is_released: It was ordered because the stub was idle: messages wait for its successor.
        used: When a message crossed it last.
        outstanding: Requests that were delivered, and may still be answered.
    """

    def __init__(self, stub: str, domain: str, own: str) -> None:
        self._own = own
        self.stub = stub
        self.domain = domain
        self.deployment = Entity(STUB_DEPLOYMENT, stub)
        self.state: str | None = None
        self.why = ""
        self.offences = 0
        self.is_ending = False
        self.is_released = False
        self.used = math.inf
        limits = Share(STUB_QUEUE, OUTBOX_BYTES)
        self._waiting: UserQueue[OutboundMessage] = UserQueue(
            "messages that wait for a stub", limits
        )
        self.outstanding = OutstandingCore()

    # ---- messages that wait for the deployment

    def wait(self, entry: OutboundMessage) -> Refused | None:
        """Let a message wait; return why there is no space, None if there was."""
        return self._waiting.put(entry, user_of(entry.message, self._own), len(entry.line))

    def release(self) -> list[OutboundMessage]:
        """Take out all that waits, oldest first."""
        return self._waiting.take()

    def unanswered(self, why: str) -> list[Refuse]:
        """Refuse all requests whose answers cannot come from this sandbox any more."""
        return [Refuse(request, Code.UNAVAILABLE, why) for request in self.outstanding.unanswered()]

    # ---- messages of the stub

    def is_about_itself(self, message: Message) -> bool:
        """Return whether the stub speaks as itself: its status, or an answer to a command."""
        to_status = message.to == status_of(self.stub)
        return message.from_ == self.stub and (to_status or message.is_response)

    def has_brought(self, message: Message) -> bool:
        """Return whether a message crossed this stub last."""
        return message.via[-1:] == (self.stub,)


_TOO_LATE: Final = "it took too long"
_BAD: Final = "it used addresses without a right to them"
_SENTENCE: Final = 200
_LEAVING: Final = "the node is going down"


@final
class ForeignCore:
    """One node's table of foreign domains.

    Args:
        node: The address of the node; its stubs are below it.
        domains: The domains it may reach.
        idle: Seconds without a message after which a stub is released (PFY-03).
    """

    def __init__(self, node: str, domains: Container[str], idle: float = math.inf) -> None:
        self._node = node
        self._domains = domains
        self._sandboxes: dict[str, _ForeignSandbox] = {}
        self._stubs: dict[str, _ForeignSandbox] = {}
        self._past: dict[str, _ForeignHistory] = {}
        self._deadlines: dict[str, float] = {}
        self._idle = idle
        self._held = HeldPaths()
        self._is_leaving = False

    def deadline(self) -> float:
        """Return when a `Tick` is due."""
        idle = min(map(self._idle_at, self._sandboxes.values()), default=math.inf)
        return min(idle, min(self._deadlines.values(), default=math.inf))

    def _idle_at(self, sandbox: _ForeignSandbox) -> float:
        """Return when a stub has been idle for long enough; one that cannot be released never."""
        is_up = sandbox.deployment.state is Deployment.DEPLOYED and not sandbox.is_ending
        return sandbox.used + self._idle if is_up else math.inf

    def feed(self, happened: Input, now: float) -> list[Effect]:
        """Take an input; return the effects, in order.

        Args:
            happened: The input.
            now: Seconds on the host's clock.
        """
        match happened:
            case Send(domain, entry):
                return self._send(domain, entry, now)
            case Tick():
                return self._tick(now)
            case Banish(domain):
                return self._banish(domain, now)
            case Leave():
                return self._leave()
            case _:
                sandbox = self._stubs.get(happened.stub)
                return [] if sandbox is None else self._of_sandbox(sandbox, happened, now)

    def _of_sandbox(
        self, sandbox: _ForeignSandbox, happened: SandboxInput, now: float
    ) -> list[Effect]:
        match happened:
            case SandboxReady():
                return self._ready(sandbox, now)
            case SandboxStatus(_, state, why):
                return self._moved(sandbox, state, why)
            case SandboxPosted(_, message):
                return self._spoke(sandbox, message, now)
            case SandboxUnreachable(_, message) | SandboxFull(_, message):
                sandbox.outstanding.forget(message)
                is_full = isinstance(happened, SandboxFull)
                away = (message, Code.UNAVAILABLE, "its sandbox is not there")
                return [_full(message, "its stub has no space") if is_full else _refused(*away)]
            case SandboxSession(_, token, is_anew):
                return self._past[sandbox.domain].keep(sandbox.domain, token, is_anew=is_anew)
            case SandboxGone(_, why):
                return self._gone(sandbox, why, now)
            case _:
                assert_never(happened)

    # ---- towards the domain

    def _send(self, domain: str, entry: OutboundMessage, now: float) -> list[Effect]:
        message = entry.message
        if any(is_below(one, self._name(domain)) for one in message.via):
            return [Dropped(message, DropReason.LOOP)]
        no = self._no_route(domain, now)
        if no is not None:
            return [_refused(message, no.code, f"no route to {domain}: {no.why}", no.retry_after)]
        self._held.sent(message)
        sandbox = self._sandboxes.get(domain)
        if sandbox is None:
            return self._open(domain, entry, now)
        if sandbox.is_released:
            return self._wait(sandbox, entry)
        if sandbox.deployment.state is Deployment.DEPLOYED:
            return [self._deliver(sandbox, entry, now)]
        return self._wait(sandbox, entry)

    @staticmethod
    def _wait(sandbox: _ForeignSandbox, entry: OutboundMessage) -> list[Effect]:
        refused = sandbox.wait(entry)
        return [] if refused is None else [_full(entry.message, refused.why)]

    def _name(self, domain: str) -> str:
        return f"{self._node}/protostub/{domain}"

    def _no_route(self, domain: str, now: float) -> "_NoRoute | None":
        """Return why nothing is sent to a domain now; None: it is."""
        if domain not in self._domains:
            return _NoRoute(Code.NOT_FOUND, "it is not configured")
        sandbox, past = self._sandboxes.get(domain), self._past.get(domain)
        if past is None and len(self._past) >= FOREIGN_DOMAINS:
            return _NoRoute(Code.TOO_LARGE, f"this node has tried {FOREIGN_DOMAINS} other domains")
        why, until = "", now
        if self._is_leaving:
            why, until = _LEAVING, now + RETRY_COOL_DOWN
        elif sandbox is not None and sandbox.is_ending and not sandbox.is_released:
            why, until = sandbox.why, now + RETRY_COOL_DOWN
        elif sandbox is None and past is not None:
            why, until = past.why, past.until
        return _NoRoute(Code.UNAVAILABLE, why, until - now) if now < until else None

    def _open(self, domain: str, entry: OutboundMessage, now: float) -> list[Effect]:
        past = self._past.setdefault(domain, _ForeignHistory())
        past.started += 1
        name = self._name(domain)
        stub = name if past.started == 1 else f"{name}/{past.started}"
        sandbox = self._sandboxes[domain] = self._stubs[stub] = _ForeignSandbox(
            stub, domain, domain_of(self._node)
        )
        sandbox.wait(entry)
        step = sandbox.deployment.step(Trigger.LOAD)
        self._deadlines[stub] = now + sandbox.deployment.patience
        return [step, Open(stub, domain, past.token)]

    def _deliver(self, sandbox: _ForeignSandbox, entry: OutboundMessage, now: float) -> Deliver:
        sandbox.used = now
        if entry.message.is_request:
            sandbox.outstanding.ask(entry.message, now)
        return Deliver(sandbox.stub, entry)

    def _ready(self, sandbox: _ForeignSandbox, now: float) -> list[Effect]:
        if sandbox.deployment.state is not Deployment.DEPLOYING:
            return []
        del self._deadlines[sandbox.stub]
        step = sandbox.deployment.step(Trigger.LOADED)
        return [step, *(self._deliver(sandbox, entry, now) for entry in sandbox.release())]

    # ---- from the domain

    def _moved(self, sandbox: _ForeignSandbox, state: State, why: str) -> list[Effect]:
        sandbox.state = state
        if state is not State.FAILED or sandbox.is_ending:
            return []
        return [self._end(sandbox, why or "it could not connect")]

    def _spoke(self, sandbox: _ForeignSandbox, message: Message, now: float) -> list[Effect]:
        if sandbox.is_about_itself(message):
            is_true = message.is_response or message.body.get("value") == sandbox.state
            return [] if is_true else self._offended(sandbox, message, DropReason.FORGED_STATUS)
        request = sandbox.outstanding.asked(message)
        if sandbox.has_brought(message):
            sandbox.used = now
            if request is not None and message.code <= LAST_SUCCESS:
                self._held.accepted(request)
            return [Pass(sandbox.domain, sandbox.stub, message)]
        if request is None and message.is_response:
            # An honest stub, too, answers requests that are no longer awaited.
            return [Dropped(message, DropReason.UNMATCHED)]
        if request is None:
            return self._offended(sandbox, message, DropReason.UNKNOWN_SOURCE)
        # The stub itself answers: without it there is no route.
        code = Code.TOO_LARGE if message.code == Code.TOO_LARGE else Code.UNAVAILABLE
        later = message.body.get("retryAfter")
        pause = float(later) if isinstance(later, int | float) else None
        return [Refuse(request, code, f"no route to {sandbox.domain}: {_why(message)}", pause)]

    def _offended(
        self, sandbox: _ForeignSandbox, message: Message, reason: DropReason
    ) -> list[Effect]:
        """Refuse a message that a stub had no right to post; end the stub after too many."""
        sandbox.offences += 1
        refusal: Effect = Dropped(message, reason)
        if message.is_request:
            why = "a stub speaks for its domain only"
            refusal = Answer(sandbox.stub, message, Code.UNAUTHENTICATED, why)
        if sandbox.offences < PEER_OFFENCES or sandbox.is_ending:
            return [refusal]
        return [refusal, self._end(sandbox, _BAD)]

    def _banish(self, domain: str, now: float) -> list[Effect]:
        self._past.setdefault(domain, _ForeignHistory()).rest(now + QUARANTINE, _BAD)
        sandbox = self._sandboxes.get(domain)
        if sandbox is None or sandbox.is_ending:
            return []
        sandbox.offences = PEER_OFFENCES
        return [self._end(sandbox, _BAD)]

    def _end(self, sandbox: _ForeignSandbox, why: str) -> End:
        sandbox.is_ending = True
        sandbox.why = why
        return End(sandbox.stub, why)

    # ---- the end of a sandbox

    def _gone(self, sandbox: _ForeignSandbox, why: str, now: float) -> list[Effect]:
        del self._sandboxes[sandbox.domain], self._stubs[sandbox.stub]
        why = sandbox.why or why
        steps: list[Effect] = []
        past = self._past[sandbox.domain]
        if sandbox.deployment.state is Deployment.DEPLOYING:
            steps = self._failed(sandbox, why)
        if sandbox.offences >= PEER_OFFENCES:
            past.rest(now + QUARANTINE, why)
        elif sandbox.is_released:
            return self._succeeded(sandbox, now)
        elif sandbox.is_ending or sandbox.deployment.state is not Deployment.DEPLOYED:
            past.rest(now + RETRY_COOL_DOWN, why)
        else:
            past.crashed(why, now)
            steps.append(Renew(sandbox.domain))
        return [*sandbox.unanswered(f"no route to {sandbox.domain}: {why}"), *steps]

    def _succeeded(self, sandbox: _ForeignSandbox, now: float) -> list[Effect]:
        """Send what has come while a released stub was ending by another stub."""
        waiting = sandbox.release()
        return [effect for entry in waiting for effect in self._send(sandbox.domain, entry, now)]

    def _failed(self, sandbox: _ForeignSandbox, why: str) -> list[Effect]:
        """Note that a stub was not deployed, and refuse the messages that waited for it."""
        self._deadlines.pop(sandbox.stub, None)
        reason, later = f"no route to {sandbox.domain}: {why}", RETRY_COOL_DOWN
        waited = [
            _refused(one.message, Code.UNAVAILABLE, reason, later) for one in sandbox.release()
        ]
        return [sandbox.deployment.step(Trigger.LOAD_FAILED, why), *waited]

    def _tick(self, now: float) -> list[Effect]:
        late = [self._stubs[stub] for stub, until in self._deadlines.items() if until <= now]
        idle = [one for one in self._sandboxes.values() if self._idle_at(one) <= now]
        ended = [
            effect
            for sandbox in late
            for effect in (*self._failed(sandbox, _TOO_LATE), self._end(sandbox, _TOO_LATE))
        ]
        return [*ended, *(effect for sandbox in idle for effect in self._release(sandbox, now))]

    def _release(self, sandbox: _ForeignSandbox, now: float) -> list[Effect]:
        """End an idle stub, unless something depends on it (PFY-03)."""
        is_needed = sandbox.outstanding.is_open(now) or self._held.holds(sandbox.domain)
        if is_needed or sandbox.state is not State.LIVE:
            sandbox.used = now
            return []
        sandbox.is_released = True
        return [self._end(sandbox, "it was idle")]

    def _leave(self) -> list[Effect]:
        """End every sandbox; waiting messages are refused once it has ended."""
        self._is_leaving = True
        self._deadlines.clear()
        running = [sandbox for sandbox in self._sandboxes.values() if not sandbox.is_ending]
        return [self._end(sandbox, _LEAVING) for sandbox in running]


def _why(answer: Message) -> str:
    why = answer.body.get("description")
    return why[:_SENTENCE] if isinstance(why, str) else "its stub gave no reason"


def _full(message: Message, why: str) -> Refuse | Dropped:
    """Return the effects for a message that a full queue has no space for."""
    if message.is_request:
        return Refuse(message, Code.UNAVAILABLE, why, RETRY_AFTER)
    return Dropped(message, DropReason.OVERFLOW)


def _refused(
    message: Message, code: Code, why: str, retry_after: float | None = None
) -> Refuse | Dropped:
    """Return the effect for a message that is not delivered: only requests are answered."""
    if message.is_request:
        return Refuse(message, code, why, retry_after)
    return Dropped(message, DropReason.SESSION_GONE)
