"""A message node's connections to foreign domains: one stub for each, in its own sandbox process.

The first message for a domain starts a sandbox with the stub; later messages wait, in order and
within limits (MN-19, STB-11). If the sandbox cannot be started, or its stub cannot connect, the
waiting messages are answered 503, and the next attempt comes after a pause (STB-14). If a sandbox
crashes, its unanswered requests are answered 503, and the next message starts another sandbox,
which resumes the session. Too many crashes begin a pause (MN-20, R11). The name of a stub is never
used twice (STB-15).

A stub that was idle for a while is removed, unless a request is open or a subscription exists in
its domain (PFY-03). Messages that come while the stub ends wait for the next stub.

A stub may report only its own status; it forwards other messages and adds its address to `via`. The
node checks each forwarded message again, as if it came over the network (T16).
"""

import math
from collections.abc import Container
from typing import Final, Protocol

import attrs

from fsm.bus.transactions import HeldPaths, OutstandingCore
from fsm.engine import Entity, Step
from fsm.limits.rates import CrashCount
from fsm.limits.shares import Share, UserQueue, user_of
from fsm.machines.stub_connection import State
from fsm.machines.stub_deployment import STUB_DEPLOYMENT, Trigger
from fsm.machines.stub_deployment import State as Deployment
from fsm.session.node_session_io import OutboundMessage
from specs.addresses.address import domain_of, is_below, status_of
from specs.limits import protocol
from specs.limits.foreign_code import FOREIGN_DOMAINS
from specs.message import GIVEN_UP, Message
from specs.reply_code import LAST_SUCCESS, Code, DropReason


class ForeignPort(Protocol):
    """Calls of `ForeignCore` to its host, which runs the sandboxes and sends the messages."""

    def step(self, step: Step) -> None:
        """Trace a state machine transition of a deployment."""

    def open(self, stub: str, domain: str, token: str | None) -> None:
        """Start a sandbox for a stub; then call `sandbox_ready` or `sandbox_gone`.

        Args:
            stub: Address of the stub.
            domain: The foreign domain.
            token: Token of an earlier stub's session; None: no session can be resumed.
        """

    def deliver(self, stub: str, entry: OutboundMessage) -> None:
        """Deliver a message to a stub; otherwise call `sandbox_full` or `sandbox_unreachable`."""

    def end(self, stub: str, why: str) -> None:
        """End a sandbox in any state; then call `sandbox_gone`."""

    def pass_on(self, domain: str, stub: str, message: Message) -> None:
        """Check and route a message that a stub has forwarded, as if it came over the network."""

    def refuse(self, message: Message, code: Code, why: str, retry_after: float | None) -> None:
        """Answer a request that cannot be delivered to the domain with an error."""

    def answer(self, stub: str, message: Message, code: Code, why: str) -> None:
        """Answer a request that a stub had no right to send; the answer goes into the sandbox."""

    def renew(self, domain: str) -> None:
        """Repeat the subscriptions at the node of a domain, which may have lost them."""

    def drop(self, message: Message, reason: DropReason) -> None:
        """Count a message that is discarded."""


@attrs.define(slots=True)
class _ForeignHistory:
    """Data about a foreign domain that is kept when its sandbox ends.

    Attributes:
        started: Number of sandboxes that were started so far.
        token: Token of the last stub's session.
        crashes: Recent crashes of sandboxes.
        until: Time at which the pause ends.
        why: Reason of the pause.
    """

    started: int = 0
    token: str | None = attrs.field(default=None, repr=False)
    crashes: CrashCount = attrs.field(factory=CrashCount)
    until: float = -math.inf
    why: str = ""

    def rest(self, until: float, why: str) -> None:
        """Begin a pause in which no sandbox is started for the domain."""
        self.until, self.why = until, why

    def count_crash(self, why: str, now: float) -> None:
        """Count a crash of a sandbox; too many crashes begin a pause."""
        if self.crashes.count_crash(now):
            self.rest(
                now + protocol.SANDBOX_COOL_DOWN, f"its sandbox crashes again and again: {why}"
            )


class _ForeignSandbox:
    """A sandbox process with the stub to one foreign domain, starting, running or ending.

    Attributes:
        deployment: State machine of the deployment.
        state: State of the stub's connection; None: not reported yet.
        why: Reason of the end of the sandbox.
        offences: Number of messages that the stub had no right to send.
        is_ending: Whether the end of the sandbox was ordered.
        is_released: Whether the end was ordered because the stub was idle; new messages then wait
            for the next stub.
        used: Time at which the stub last transported a message.
        outstanding: Requests that were delivered to the stub and are not answered yet.
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
        limits = Share(protocol.STUB_QUEUE, protocol.OUTBOX_BYTES)
        self._waiting: UserQueue[OutboundMessage] = UserQueue(
            "messages that wait for a stub", limits
        )
        self.outstanding = OutstandingCore()

    def wait(self, entry: OutboundMessage) -> str | None:
        """Queue a message for the stub; return the reason if the queue is full, or None."""
        refused = self._waiting.put(entry, user_of(entry.message, self._own), len(entry.line))
        return None if refused is None else refused.why

    def release(self) -> list[OutboundMessage]:
        """Remove and return all waiting messages, oldest first."""
        return self._waiting.take()

    def is_about_itself(self, message: Message) -> bool:
        """Return whether a message is the stub's own: a status event, or an answer to a command."""
        to_status = message.to == status_of(self.stub)
        return message.from_ == self.stub and (to_status or message.is_response)

    def has_brought(self, message: Message) -> bool:
        """Return whether a message came through this stub, by the last address in `via`."""
        return message.via[-1:] == (self.stub,)


_TOO_LATE: Final = "it took too long"
_BAD: Final = "it used addresses without a right to them"
_SENTENCE: Final = 200
_LEAVING: Final = "the node is going down"


class ForeignCore:
    """Runs the stubs of a message node to foreign domains: start, queues, crashes, idle stubs.

    `now` is always in seconds on the host's clock.

    Args:
        node: The address of the node; addresses of stubs begin with it.
        domains: The foreign domains to which stubs may connect.
        port: The host.
        idle: Seconds without a message after which a stub is released (PFY-03).
    """

    def __init__(
        self, node: str, domains: Container[str], port: ForeignPort, idle: float = math.inf
    ) -> None:
        self._node = node
        self._domains = domains
        self._port = port
        self._sandboxes: dict[str, _ForeignSandbox] = {}
        self._stubs: dict[str, _ForeignSandbox] = {}
        self._past: dict[str, _ForeignHistory] = {}
        self._deadlines: dict[str, float] = {}
        self._idle = idle
        self._held = HeldPaths()
        self._is_leaving = False

    # ---- towards the domain

    def send(self, domain: str, entry: OutboundMessage, now: float) -> None:
        """Deliver or queue a message for a foreign domain, or refuse it; start a stub if needed."""
        message = entry.message
        if any(is_below(each, self._name(domain)) for each in message.via):
            self._port.drop(message, DropReason.LOOP)
            return
        no = self._no_route(domain, now)
        if no is not None:
            code, reason, retry_after = no
            self._refuse(message, code, f"no route to {domain}: {reason}", retry_after)
            return
        self._held.record_message(message)
        sandbox = self._sandboxes.get(domain)
        if sandbox is None:
            self._open(domain, entry, now)
        elif sandbox.is_released or sandbox.deployment.state is not Deployment.DEPLOYED:
            why = sandbox.wait(entry)
            if why is not None:
                self._refuse_full(message, why)
        else:
            self._deliver(sandbox, entry, now)

    def _name(self, domain: str) -> str:
        return f"{self._node}/protostub/{domain}"

    def _no_route(self, domain: str, now: float) -> tuple[Code, str, float | None] | None:
        """Return code, reason and seconds to wait if a domain cannot be reached now, or None."""
        if domain not in self._domains:
            return Code.NOT_FOUND, "it is not configured", None
        sandbox, past = self._sandboxes.get(domain), self._past.get(domain)
        if past is None and len(self._past) >= FOREIGN_DOMAINS:
            return Code.TOO_LARGE, f"this node has tried {FOREIGN_DOMAINS} other domains", None
        why, until = "", now
        if self._is_leaving:
            why, until = _LEAVING, now + protocol.RETRY_COOL_DOWN
        elif sandbox is not None and sandbox.is_ending and not sandbox.is_released:
            why, until = sandbox.why, now + protocol.RETRY_COOL_DOWN
        elif sandbox is None and past is not None:
            why, until = past.why, past.until
        return (Code.UNAVAILABLE, why, until - now) if now < until else None

    def _open(self, domain: str, entry: OutboundMessage, now: float) -> None:
        past = self._past.setdefault(domain, _ForeignHistory())
        past.started += 1
        name = self._name(domain)
        stub = name if past.started == 1 else f"{name}/{past.started}"
        sandbox = self._sandboxes[domain] = self._stubs[stub] = _ForeignSandbox(
            stub, domain, domain_of(self._node)
        )
        sandbox.wait(entry)
        self._port.step(sandbox.deployment.step(Trigger.LOAD))
        self._deadlines[stub] = now + sandbox.deployment.patience
        self._port.open(stub, domain, past.token)

    def _deliver(self, sandbox: _ForeignSandbox, entry: OutboundMessage, now: float) -> None:
        sandbox.used = now
        if entry.message.is_request:
            sandbox.outstanding.ask(entry.message, now)
        elif GIVEN_UP in entry.message.body:
            sandbox.outstanding.end_given_up(entry.message)
        self._port.deliver(sandbox.stub, entry)

    def _refuse(
        self, message: Message, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        """Answer a request that cannot be delivered with an error; drop any other message."""
        if message.is_request:
            self._port.refuse(message, code, why, retry_after)
        else:
            self._port.drop(message, DropReason.SESSION_GONE)

    def _refuse_full(self, message: Message, why: str) -> None:
        """Answer a request with an error, or drop another message, because the queue is full."""
        if message.is_request:
            self._port.refuse(message, Code.UNAVAILABLE, why, protocol.RETRY_AFTER)
        else:
            self._port.drop(message, DropReason.OVERFLOW)

    # ---- from a sandbox

    def sandbox_ready(self, stub: str, now: float) -> None:
        """Deliver the waiting messages to a stub whose sandbox is now running."""
        sandbox = self._stubs.get(stub)
        if sandbox is None or sandbox.deployment.state is not Deployment.DEPLOYING:
            return
        del self._deadlines[stub]
        self._port.step(sandbox.deployment.step(Trigger.LOADED))
        for entry in sandbox.release():
            self._deliver(sandbox, entry, now)

    def sandbox_status(self, stub: str, state: State, why: str) -> None:
        """Note the new state of a stub's connection; end the sandbox if the connection failed."""
        sandbox = self._stubs.get(stub)
        if sandbox is None:
            return
        sandbox.state = state
        if state is State.FAILED and not sandbox.is_ending:
            self._end(sandbox, why or "it could not connect")

    def sandbox_unreachable(self, stub: str, message: Message) -> None:
        """Refuse a message that could not be delivered, since the sandbox is starting or ending."""
        if stub in self._stubs:
            self._stubs[stub].outstanding.forget(message)
            self._refuse(message, Code.UNAVAILABLE, "its sandbox is not there")

    def sandbox_full(self, stub: str, message: Message) -> None:
        """Refuse a message for which the sandbox, or the pipe to it, has no room."""
        if stub in self._stubs:
            self._stubs[stub].outstanding.forget(message)
            self._refuse_full(message, "its stub has no space")

    def sandbox_session(self, stub: str, token: str, *, is_anew: bool) -> None:
        """Store the token of a stub's session, so that the next stub can resume the session.

        Args:
            stub: Address of the stub.
            token: The token.
            is_anew: Whether the session is new, or has lost its subscriptions.
        """
        sandbox = self._stubs.get(stub)
        if sandbox is None:
            return
        past = self._past[sandbox.domain]
        known, past.token = past.token, token
        if is_anew and known not in {None, token}:
            self._port.renew(sandbox.domain)

    def sandbox_posted(self, stub: str, message: Message, now: float) -> None:
        """Handle a message that came out of a stub's sandbox: check, forward or refuse it."""
        sandbox = self._stubs.get(stub)
        if sandbox is None:
            return
        if sandbox.is_about_itself(message):
            if not message.is_response and message.body.get("value") != sandbox.state:
                self._count_offence(sandbox, message, DropReason.FORGED_STATUS)
            return
        request = sandbox.outstanding.asked(message)
        if sandbox.has_brought(message):
            sandbox.used = now
            if request is not None and message.code <= LAST_SUCCESS:
                self._held.record_success(request)
            self._port.pass_on(sandbox.domain, stub, message)
        elif request is not None:
            # The stub itself refuses a request that it should have sent to its domain.
            code = Code.TOO_LARGE if message.code == Code.TOO_LARGE else Code.UNAVAILABLE
            later = message.body.get("retryAfter")
            pause = float(later) if isinstance(later, int | float) else None
            why = message.body.get("description")
            why = why[:_SENTENCE] if isinstance(why, str) else "its stub gave no reason"
            self._port.refuse(request, code, f"no route to {sandbox.domain}: {why}", pause)
        elif message.is_response:
            # Even an honest stub answers requests that are no longer awaited.
            self._port.drop(message, DropReason.UNMATCHED)
        else:
            self._count_offence(sandbox, message, DropReason.UNKNOWN_SOURCE)

    def _count_offence(
        self, sandbox: _ForeignSandbox, message: Message, reason: DropReason
    ) -> None:
        """Refuse a message that a stub had no right to send; end the stub after too many."""
        sandbox.offences += 1
        if message.is_request:
            why = "a stub speaks for its domain only"
            self._port.answer(sandbox.stub, message, Code.UNAUTHENTICATED, why)
        else:
            self._port.drop(message, reason)
        if sandbox.offences >= protocol.PEER_OFFENCES and not sandbox.is_ending:
            self._end(sandbox, _BAD)

    # ---- the end of a sandbox

    def _end(self, sandbox: _ForeignSandbox, why: str) -> None:
        sandbox.is_ending = True
        sandbox.why = why
        self._port.end(sandbox.stub, why)

    def sandbox_gone(self, stub: str, why: str, now: float) -> None:
        """Handle that a sandbox has ended or did not start: refuse its messages, begin a pause."""
        sandbox = self._stubs.pop(stub, None)
        if sandbox is None:
            return
        del self._sandboxes[sandbox.domain]
        why = sandbox.why or why
        past, state = self._past[sandbox.domain], sandbox.deployment.state
        if sandbox.is_released and sandbox.offences < protocol.PEER_OFFENCES:
            # Messages that came in the meantime go by another stub.
            for entry in sandbox.release():
                self.send(sandbox.domain, entry, now)
            return
        for request in sandbox.outstanding.unanswered():
            reason = f"no route to {sandbox.domain}: {why}"
            self._port.refuse(request, Code.UNAVAILABLE, reason, None)
        if state is Deployment.DEPLOYING:
            self._fail_deployment(sandbox, why)
        self._refuse_waiting(sandbox, why)
        if sandbox.offences >= protocol.PEER_OFFENCES:
            past.rest(now + protocol.QUARANTINE, why)
        elif sandbox.is_ending or state is not Deployment.DEPLOYED:
            past.rest(now + protocol.RETRY_COOL_DOWN, why)
        else:
            past.count_crash(why, now)
            self._port.renew(sandbox.domain)

    def _fail_deployment(self, sandbox: _ForeignSandbox, why: str) -> None:
        """End the deployment of a stub as failed, and refuse the waiting messages."""
        self._deadlines.pop(sandbox.stub, None)
        self._port.step(sandbox.deployment.step(Trigger.LOAD_FAILED, why))
        self._refuse_waiting(sandbox, why)

    def _refuse_waiting(self, sandbox: _ForeignSandbox, why: str) -> None:
        reason = f"no route to {sandbox.domain}: {why}"
        for entry in sandbox.release():
            self._refuse(entry.message, Code.UNAVAILABLE, reason, protocol.RETRY_COOL_DOWN)

    def banish(self, domain: str, now: float) -> None:
        """End the stub of a domain that used addresses of others, and begin a pause (S14)."""
        self._past.setdefault(domain, _ForeignHistory()).rest(now + protocol.QUARANTINE, _BAD)
        sandbox = self._sandboxes.get(domain)
        if sandbox is not None and not sandbox.is_ending:
            sandbox.offences = protocol.PEER_OFFENCES
            self._end(sandbox, _BAD)

    def leave(self) -> None:
        """End every sandbox, since the node shuts down; waiting messages are then refused."""
        self._is_leaving = True
        self._deadlines.clear()
        for sandbox in self._sandboxes.values():
            if not sandbox.is_ending:
                self._end(sandbox, _LEAVING)

    # ---- time

    def deadline(self) -> float:
        """Return the time at which `tick` must be called next."""
        idle = min(map(self._idle_at, self._sandboxes.values()), default=math.inf)
        return min(idle, min(self._deadlines.values(), default=math.inf))

    def _idle_at(self, sandbox: _ForeignSandbox) -> float:
        """Return the time at which a stub counts as idle; infinity: it is not running."""
        is_up = sandbox.deployment.state is Deployment.DEPLOYED and not sandbox.is_ending
        return sandbox.used + self._idle if is_up else math.inf

    def tick(self, now: float) -> None:
        """End deployments that take too long, and stubs that are idle."""
        late = [self._stubs[stub] for stub, until in self._deadlines.items() if until <= now]
        idle = [each for each in self._sandboxes.values() if self._idle_at(each) <= now]
        for sandbox in late:
            self._fail_deployment(sandbox, _TOO_LATE)
            self._end(sandbox, _TOO_LATE)
        for sandbox in idle:
            # A stub that open requests or subscriptions need is not ended (PFY-03).
            is_needed = sandbox.outstanding.is_open(now) or self._held.holds(sandbox.domain)
            if is_needed or sandbox.state is not State.LIVE:
                sandbox.used = now
            else:
                sandbox.is_released = True
                self._end(sandbox, "it was idle")
