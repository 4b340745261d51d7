"""The base class of the P2P requester and handler stubs: the host of their effects.

All inputs come by the stub's one mailbox: deliveries of the bus, and reports of its own tasks
(listeners, dials, links). Requests are posted and not awaited; their answers come back as
deliveries, so that the order of what a link brings is kept. The tasks of one end of a link
listen and dial until the end is withdrawn or offers anew; new tasks with new candidates follow.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TypeAlias, final

import attrs
import trio
from typing_extensions import override

from actors.kit.errors import ActorStoppedError
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor
from actors.kit.supervision.delivery import Delivery, Purpose
from actors.runtime.p2p.data_channel import CHANNEL_SECRET, DataChannel
from actors.runtime.p2p.handshake import (
    Meeting,
    Offered,
    ProvenLink,
    dial_candidate,
    greet,
    machine_secret,
    open_candidates,
    welcome,
)
from actors.runtime.p2p.link import (
    Happened,
    KeysFetched,
    LinkEnd,
    LinkEnded,
    LinkProven,
    LinkUse,
    P2PLink,
    P2PMessage,
    Understand,
)
from actors.runtime.p2p.signalling import LinkObjects, Signalling
from actors.runtime.stubs.stub import StubContext
from fsm.engine import Step
from fsm.intent import is_p2p_part
from fsm.p2p import link_io as do
from fsm.p2p.dialling import ChannelAnswer, DialPolicy
from fsm.p2p.link_io import (
    CandidatesReady,
    Dial,
    DialFailed,
    DisconnectAsked,
    HearIce,
    IceFound,
    LinkOpened,
    Listen,
    Opening,
    SideInput,
)
from fsm.p2p.negotiation import Role
from specs.bodies.sync import Candidate, ConnectionData
from specs.errors import BadMessageError
from specs.limits.p2p import PENDING_PROOFS
from specs.limits.protocol import RETRY_AFTER, STUB_QUEUE
from specs.limits.webrtc import CHANNEL_TIMEOUT
from specs.message import Message, malformed_answer, refuse, reply_to
from specs.reply_code import Code, DropReason
from specs.trace import Fact, Kind, Op
from transports.errors import CloseReason, DialError, LinkError
from transports.link import Kind as LinkKind
from transports.link import Link

__all__ = ["LinkWork", "Report"]

Report: TypeAlias = Callable[[Happened | LinkProven], Awaitable[None]]
"""Sends a message to the stub."""

_log = get_logger("actors.runtime")

_Job: TypeAlias = Callable[[], Awaitable[None]]

_JOBS = 16
"""Jobs that may wait: one to listen, and dials, which come one at a time."""


@final
class LinkWork:
    """Runs what one end asks for in one negotiation, in tasks that end with that."""

    def __init__(
        self,
        context: StubContext,
        policy: DialPolicy,
        end: LinkEnd,
        report: Report,
        left_out: set[LinkKind] | None = None,
    ) -> None:
        self._context = context
        self._role = Role.REQUESTER if end.name == context.url else Role.HANDLER
        self._policy = policy
        self._end = end.name
        self._remote = end.remote
        self._negotiation = end.negotiation
        self._tls = end.tls
        self._report = report
        self._kinds_left_out = set[LinkKind]() if left_out is None else left_out
        self._scope = trio.CancelScope()
        self._channel = DataChannel()
        self._jobs, self._taken = trio.open_memory_channel[_Job](_JOBS)

    def do(self, wanted: Listen | Dial | HearIce) -> None:
        """Open the own candidates and let the peer in; dial one of the peer, or try one of ICE."""
        match wanted:
            case Listen():
                self._jobs.send_nowait(partial(self._listen, wanted))
            case Dial():
                self._jobs.send_nowait(partial(self._dial, wanted))
            case HearIce(candidate):
                self._channel.hear(candidate)

    def cancel(self) -> None:
        """Stop listening and dialling."""
        self._scope.cancel()

    async def run(self) -> None:
        """Work until cancelled."""
        with self._jobs, self._taken, self._scope:
            async with trio.open_nursery() as nursery:
                async for job in self._taken:
                    nursery.start_soon(job)

    async def _dial(self, dial: Dial) -> None:
        try:
            link = await self._dialled(dial.candidate)
        except LinkError:
            await self._tell(DialFailed(dial.attempt))
        else:
            await self._hand_over(link, Opening.DIALLED)

    async def _dialled(self, candidate: Candidate | ChannelAnswer) -> ProvenLink:
        network, entropy = self._context.network, self._context.entropy
        if isinstance(candidate, Candidate):
            return await dial_candidate(network, candidate, self._tls, entropy)
        with trio.move_on_after(CHANNEL_TIMEOUT):
            pipe = await self._channel.dialled(candidate.sdp)
            return await greet(pipe, CHANNEL_SECRET, self._tls, entropy)
        raise DialError(LinkKind.WEBRTC, f"no data channel within {CHANNEL_TIMEOUT:g} s")

    async def _hand_over(self, link: ProvenLink, opening: Opening) -> None:
        """Give a link to the stub; one that it does not take any more is closed."""
        try:
            await self._report(LinkProven(self._end, link, opening, self._negotiation))
        except BaseException:
            await trio.aclose_forcefully(link.pipe)
            raise

    async def _listen(self, wanted: Listen) -> None:
        context, channel = self._context, self._channel
        meeting = Meeting(self._policy, self._remote, self._tls)
        async with (
            open_candidates(
                context.network, context.config, meeting, context.entropy, self._leave_out
            ) as offered,
            channel.open(context, self._role, wanted.offer),
            trio.open_nursery() as nursery,
        ):
            for each in offered:
                nursery.start_soon(self._accept, each)
            candidates = tuple(each.candidate for each in offered)
            await self._tell(CandidatesReady(candidates, self._negotiation, channel.sdp))
            nursery.start_soon(channel.hear_all)
            if wanted.offer is not None:
                nursery.start_soon(self._accept_channel)
            await channel.report_all(self._found)

    def _leave_out(self, kind: LinkKind, why: str) -> None:
        """Warn of a kind of candidate that cannot be opened here; others are tried."""
        if kind not in self._kinds_left_out:
            self._kinds_left_out.add(kind)
            stub = self._context.url
            _log.warning("no link of this kind is offered", kind=kind.value, why=why, stub=stub)

    async def _found(self, candidate: str) -> None:
        await self._tell(IceFound(candidate, self._negotiation))

    async def _tell(self, what: SideInput) -> None:
        await self._report(Happened(self._end, what))

    async def _accept_channel(self) -> None:
        with suppress(LinkError):
            pipe = await self._channel.accepted()
            link = await welcome(pipe, CHANNEL_SECRET, self._tls, self._context.entropy)
            if link is not None:
                await self._hand_over(link, Opening.ACCEPTED)

    async def _accept(self, offered: Offered) -> None:
        """Let some at a time prove themselves; for one more the one that is longest there goes.

        So a silent dialler keeps no other out: the peer has proven itself at once.
        """
        proving: deque[trio.CancelScope] = deque()
        async with trio.open_nursery() as nursery:
            while (pipe := await self._accepted(offered)) is not None:
                if len(proving) == PENDING_PROOFS:
                    proving.popleft().cancel()
                patience = trio.CancelScope()
                proving.append(patience)
                nursery.start_soon(self._welcome, pipe, offered.candidate, proving, patience)

    async def _accepted(self, offered: Offered) -> Link | None:
        """Return the next connection; None: the listener has ended."""
        try:
            return await offered.listener.accept()
        except LinkError as exc:
            self._leave_out(LinkKind(offered.candidate.kind), str(exc))
            return None

    async def _welcome(
        self,
        pipe: Link,
        candidate: Candidate,
        proving: deque[trio.CancelScope],
        patience: trio.CancelScope,
    ) -> None:
        link = None
        with patience:
            link = await welcome(pipe, candidate.secret, self._tls, self._context.entropy)
        with suppress(ValueError):
            proving.remove(patience)
        if link is not None:
            await self._hand_over(link, Opening.ACCEPTED)


__all__ = ["EndEffects", "P2PStub"]

EndEffects: TypeAlias = Iterable[tuple[str, do.SideEffect]]
"""Effects, each with the end it is for; empty: for none."""


class P2PStub(Actor[P2PMessage]):
    """A stub with any number of ends of P2P links; subclasses bring the core."""

    def __init__(self, context: StubContext, description: str) -> None:
        kinds = tuple(kind.value for kind in context.config.kinds)
        self.context = context
        self.policy = DialPolicy(kinds, machine_secret(), context.config.links)
        self.signalling = Signalling(context)
        self.objects = LinkObjects(self.signalling, description, context)
        self._ends: dict[str, tuple[LinkEnd, LinkWork]] = {}
        self._asked: dict[int, tuple[LinkEnd, Understand]] = {}
        self._invitations: dict[str, Message] = {}
        self._command: Message | None = None
        self._unread: set[Link] = set()
        self._unwritten: set[P2PLink] = set()
        self._left_out: set[LinkKind] = set()

    # --- what subclasses say --------------------------------------------------------------

    @abstractmethod
    def decide(self, end: str, happened: SideInput) -> EndEffects:
        """Feed the core of one end.

        Args:
            end: Name of the end.
            happened: The input.
        """

    @abstractmethod
    def end_for(self, delivery: Delivery) -> str:
        """Return the end that a message of others is to go out by."""

    @abstractmethod
    async def take_own(self, message: Message) -> None:
        """Take a request to the stub itself.

        Raises:
            BadMessageError: Its body is not what the catalogue says; it is answered so.
        """

    # --- in -------------------------------------------------------------------------------

    @override
    async def handle(self, message: P2PMessage) -> None:
        match message:
            case Delivery():
                await self._delivered(message)
            case LinkProven():
                await self._proven(message)
            case Happened(end, what) | LinkEnded(end, what):
                await self.perform(self.decide(end, what))
            case KeysFetched(name):
                held, _ = self._ends.get(name, (None, None))
                if held is not None:
                    await self._feed_input(held, self.objects.seen_again(held))

    @override
    async def drained(self) -> None:
        for link in self._unwritten:
            link.flush()
        self._unwritten.clear()

    async def _delivered(self, delivery: Delivery) -> None:
        message = delivery.message
        watcher, is_own = self.objects.watcher(message), message.to == self.context.url
        if watcher is not None:
            if is_own:
                await self.answer(message, Code.OK)
            await self._feed_input(watcher, self.objects.changed(watcher, message))
        elif is_own:
            await self._taken(delivery)
        else:
            await self._send(delivery)

    async def _taken(self, delivery: Delivery) -> None:
        message, objection = delivery.message, _objection(delivery)
        if message.is_response:
            await self._answered(message)
        elif objection is not None:
            await self.answer(message, Code.FORBIDDEN, objection)
        else:
            try:
                await self.take_own(message)
            except BadMessageError as exc:
                await self.answer(message, exc.code, exc.reason)

    async def _answered(self, answer: Message) -> None:
        asked = self._asked.pop(answer.id, None) if answer.is_final else None
        if asked is None:
            return
        end, understand = asked
        await self._feed_input(end, understand(answer))
        if end.name not in self._ends:
            # It came too late: what was made for an end that is gone goes, too.
            await self._on_objects(end, do.Withdraw())

    async def _feed_input(self, end: LinkEnd, what: SideInput | None) -> None:
        for reading, message, understand in self.objects.take_reads():
            await self._ask(reading, message, understand)
        for asking, data in self.objects.take_unverified():
            self.spawn(self._fetch_keys, asking, data)
        if what is not None:
            await self.perform(self.decide(end.name, what))

    async def _fetch_keys(self, end: LinkEnd, data: ConnectionData) -> None:
        await self.context.guard().fetch_keys(data)
        with suppress(ActorStoppedError):
            await self.me.tell(KeysFetched(end.name))

    @final
    async def copies_overdue(self) -> None:
        """Read again, or give up, what was not answered in time (`objects.deadline`)."""
        for end, what in self.objects.overdue():
            await self._feed_input(end, what)

    # --- messages of others ---------------------------------------------------------------

    async def _send(self, delivery: Delivery) -> None:
        message, name = delivery.message, self.end_for(delivery)
        end, _ = self._ends.get(name, (None, None))
        if name in message.via and delivery.purpose is Purpose.SEND:
            self._dropped(message, DropReason.LOOP)
        elif end is not None and end.link is not None:
            await self._write(end.link, delivery, name)
        elif delivery.purpose is not Purpose.ANNOUNCE:
            await self.context.bus.hand_back((message,), name)

    async def _write(self, link: P2PLink, delivery: Delivery, name: str) -> None:
        message = delivery.message
        self._unwritten.add(link)
        try:
            is_taken = await link.take(delivery)
        except BadMessageError as error:
            self._dropped(message, DropReason.MALFORMED)
            if message.is_final:
                instead = malformed_answer(message, error.reason)
                await self._write(link, attrs.evolve(delivery, message=instead, behind=None), name)
            await self._refuse(message, name, error.code, error.reason)
            return
        if not is_taken:
            self._dropped(message, DropReason.OVERFLOW)
            why = f"{STUB_QUEUE} messages wait for the link already"
            await self._refuse(message, name, Code.UNAVAILABLE, why, RETRY_AFTER)

    async def _refuse(
        self, message: Message, name: str, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        if message.is_request:
            await self.context.bus.post(refuse(message, code, why, retry_after), name)

    # --- effects --------------------------------------------------------------------------

    @final
    async def perform(self, effects: EndEffects) -> None:
        """Do what a core says, in order."""
        for name, effect in effects:
            end, work = self._ends.get(name, (None, None))
            self._trace_step(effect)
            if isinstance(effect, do.Answered):
                await self._answer_command(effect)
            elif end is not None and work is not None:
                await self._perform(end, work, effect)

    async def _perform(self, end: LinkEnd, work: LinkWork, effect: do.SideEffect) -> None:
        match effect:
            case do.Announce(state, why):
                event = self.signalling.status(end.remote, end.name, state, why)
                await self.context.bus.post(event)
            case do.AnswerInvitation(url, code, why):
                await self._answer_invitation(url, code, why)
            case do.Listen() | do.Dial() | do.HearIce():
                work.do(effect)
            case do.Pin(peer):
                end.pin(peer)
            case do.Renew(negotiation):
                work.cancel()
                end.negotiation = negotiation
                self.add_end(end)
                await self._on_objects(end, effect)
            case do.Ended():
                work.cancel()
                await self.end_removed(end.name)
                del self._ends[end.name]
            case do.UseLink() | do.ReleaseLink() | do.CloseLink():
                await self._on_link(end, effect)
            case _:
                await self._on_objects(end, effect)

    async def end_removed(self, name: str) -> None:
        """Clean up after an end that is done."""

    async def _on_objects(self, end: LinkEnd, effect: do.SideEffect) -> None:
        for message, understand in self.objects.requests(end, effect):
            await self._ask(end, message, understand)

    async def _ask(self, end: LinkEnd, message: Message, understand: Understand) -> None:
        self._asked[message.id] = (end, understand)
        await self.context.bus.post(message)

    async def _answer_invitation(self, url: str, code: Code, why: str) -> None:
        invitation = self._invitations.pop(url, None)
        if invitation is not None:
            await self.answer(invitation, code, why)

    async def _answer_command(self, answer: do.Answered) -> None:
        command, self._command = self._command, None
        if command is not None:
            self.spawn(self._answer_at_last, command, answer)

    async def _answer_at_last(self, command: Message, answer: do.Answered) -> None:
        await self.objects.withdrawn()
        await self.answer(command, answer.code, answer.why)

    @final
    async def answer(self, request: Message, code: Code, why: str = "") -> None:
        """Answer a request to the stub.

        Args:
            request: The request.
            code: Reply code.
            why: The reason.
        """
        answer = reply_to(request, code, {"description": why} if why else None)
        await self.context.bus.post(answer)

    @final
    async def command(self, request: Message, effects: EndEffects) -> None:
        """Do what a command of the registry leads to; its answer is among the effects.

        Args:
            request: The request.
            effects: Effects of the command.
        """
        self._command = request
        await self.perform(effects)

    @final
    async def invited(self, url: str, invitation: Message, effects: EndEffects) -> None:
        """Do what an invitation leads to; it is answered when the core says so.

        Args:
            url: Address of the peer's object.
            invitation: The invitation.
            effects: Effects of the invitation.
        """
        self._invitations[url] = invitation
        await self.perform(effects)

    @final
    def add_end(self, end: LinkEnd) -> None:
        """Hold one more end, or let what one does begin anew."""
        work = LinkWork(self.context, self.policy, end, self._hear, self._left_out)
        self._ends[end.name] = (end, work)
        self.spawn(work.run)

    # --- links ----------------------------------------------------------------------------

    async def _hear(self, report: Happened | LinkProven) -> None:
        """Put the report of a task into the mailbox; a link in it is closed with the stub."""
        if not isinstance(report, LinkProven):
            await self.me.tell(report)
            return
        self._unread.add(report.link.pipe)
        try:
            await self.me.tell(report)
        except BaseException:
            self._unread.discard(report.link.pipe)
            raise

    async def _proven(self, event: LinkProven) -> None:
        self._unread.discard(event.link.pipe)
        end, _ = self._ends.get(event.end, (None, None))
        if end is None:
            await event.link.pipe.aclose(CloseReason.GOING_AWAY)
            return
        end.proven[event.link.name] = event.link
        opened = LinkOpened(event.link.name, event.opening, event.negotiation)
        await self.perform(self.decide(end.name, opened))

    async def _on_link(
        self, end: LinkEnd, effect: do.UseLink | do.ReleaseLink | do.CloseLink
    ) -> None:
        match effect:
            case do.UseLink(name):
                self._trace_link(Op.OPEN, end, name)
                context = self.context
                use = LinkUse(
                    end.name,
                    context.url,
                    context.bus,
                    context.tracer,
                    context.counters,
                    end.identity,
                )
                end.link = P2PLink(end.proven.pop(name), use)
                self.spawn(self._run, end.name, end.link)
            case do.CloseLink(name) if name in end.proven:
                await end.proven.pop(name).pipe.aclose(CloseReason.GOING_AWAY)
            case do.CloseLink():
                if end.link is not None:
                    await end.link.say_goodbye()
                await self._release(end)
            case do.ReleaseLink():
                await self._release(end)

    async def _run(self, end: str, link: P2PLink) -> None:
        ended = LinkEnded(end, await link.run())
        # A stub that is being undeployed has said why it closes already.
        with suppress(ActorStoppedError):
            await self.me.tell(ended)

    async def _release(self, end: LinkEnd) -> None:
        link, end.link = end.link, None
        if link is None:
            return
        link.break_off()
        self._trace_link(Op.CLOSE, end, link.name)
        # Also if nothing is owed: the bus must know that no message is outstanding by this link.
        await self.context.bus.hand_back(link.owed(), end.name)

    @override
    async def closing(self) -> None:
        with suppress(ActorStoppedError):
            for name in list(self._ends):
                await self.perform(self.decide(name, DisconnectAsked("the stub is removed")))

    @override
    async def stop(self) -> None:
        # After a crash nothing can be done any more, but every entity reaches an end.
        for name, (end, _) in self._ends.items():
            self.objects.give_up(end)
            for _, effect in self.decide(name, DisconnectAsked("the stub is gone")):
                self._trace_step(effect)
            self._unread.update(proven.pipe for proven in end.proven.values())
        for pipe in self._unread:
            await trio.aclose_forcefully(pipe)

    # --- evidence -------------------------------------------------------------------------

    def _trace_step(self, effect: do.SideEffect) -> None:
        if isinstance(effect, Step):
            self.context.tracer.step(self.context.url, effect)

    def _trace_link(self, op: Op, end: LinkEnd, link: str) -> None:
        own = self.context.config.runtime
        fact = Fact(k=Kind.LINK, op=op, link=link, a=own, b=end.remote, kind="p2p", stub=end.name)
        self.context.tracer.record(self.context.url, fact)

    def _dropped(self, message: Message, reason: DropReason) -> None:
        self.context.counters.drop(reason, message, self.context.url)
        self.context.tracer.message(self.context.url, Op.DROP, message, reason=reason.value)


def _objection(delivery: Delivery) -> str | None:
    """Return why a stub does not take an invitation of another runtime.

    It comes by the node, which has checked its sender (P2P-29).
    """
    message = delivery.message
    if not delivery.is_foreign or not message.is_request:
        return None
    is_by_link = is_p2p_part(message.via[-1]) if message.via else False
    return "an invitation comes by the node, and by no link" if is_by_link else None
