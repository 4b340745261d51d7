"""One live P2P link: reading, writing, and the detection of silence (P2P-20).

A received message is given to the bus before it is acknowledged, so that the other end keeps
exactly the messages that the bus does not have.
"""

from collections import deque
from collections.abc import Sequence

import attrs
import trio

from actors.kit.supervision.actor import Delivery, Purpose
from actors.kit.trace import Hop
from actors.runtime.p2p import handshake
from actors.runtime.stubs.stub import StubContext
from fsm.limits.rates import ErrorWindow
from fsm.p2p.link_end import Loss
from fsm.p2p.transfer import Behind, Bye, Control, Numbered, Outgoing, P2PTransferCore, TransferEnd
from specs.errors import BadMessageError
from specs.identity import SenderIdentity
from specs.limits import protocol
from specs.limits.p2p import ACK_DELAY, LINK_LOOK
from specs.message import Message, malformed_answer, refuse, stamped
from specs.reply_code import Code, DropReason
from specs.trace import Op
from transports.codec import BadLine, decode_frame, encode, frames
from transports.errors import CloseReason, FrameTooLargeError, LinkError


class P2PLink:
    """One end of a live link; `run` serves it in a task of the stub.

    Attributes:
        name: Name of the link, the same at both ends.

    Args:
        proven: The name of the open link, and the link.
        context: The context of the stub.
        stub: Address of this end, for `via` and for posts: PQ or PC.
        sender: Identity of the peer, proven by its offer or answer: the sender of all messages of
            the link.
    """

    def __init__(
        self,
        proven: handshake.ProvenLink,
        context: StubContext,
        stub: str,
        sender: SenderIdentity,
    ) -> None:
        self.name, self._pipe = proven
        self._context = context
        self._stub = stub
        self._sender = sender
        self._core = P2PTransferCore(trio.current_time())
        self._malformed = ErrorWindow(protocol.MAX_MALFORMED)
        self._lines: deque[tuple[bytes, Message]] = deque()
        self._wake = trio.Event()
        self._is_waiting = False
        self._had_other_lines = False
        self._is_begun = False
        self._has_said_bye = False
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self._why = ""
        self._close_reason = CloseReason.DONE
        self._hops = {
            op: Hop(context.url, (op,), {"stub": stub, "link": self.name})
            for op in (Op.XMIT, Op.RCV)
        }

    def send(self, message: Message) -> bool:
        """Queue a message for `flush`; return False if too many wait.

        Raises:
            BadMessageError: The message cannot be written; 413: it is too large.
        """
        leaving = stamped(message, self._stub)
        line = encode(leaving)
        if len(line) > protocol.MAX_MESSAGE_BYTES:
            raise BadMessageError(f"larger than {protocol.MAX_MESSAGE_BYTES} bytes", Code.TOO_LARGE)
        if not self._core.send(message):
            return False
        self._lines.append((line, leaving))
        return True

    async def take(self, delivery: Delivery) -> None:
        """Queue a message from the bus for `flush`, by its purpose, or refuse the message."""
        message, purpose, is_taken = delivery.message, delivery.purpose, True
        if delivery.behind is not None:
            self._core.announce(delivery.behind)
        if purpose is Purpose.TURN_BACK:
            is_taken = self._core.turn_back(message)
            await self._hand_back_turned()
        elif purpose is Purpose.SEND:
            try:
                is_taken = self.send(message)
            except BadMessageError as error:
                self._drop(message, DropReason.MALFORMED)
                if message.is_final:
                    instead = malformed_answer(message, error.reason)
                    await self.take(attrs.evolve(delivery, message=instead, behind=None))
                await self._refuse(message, error.code, error.reason)
        if not is_taken:
            self._drop(message, DropReason.OVERFLOW)
            why = f"{protocol.STUB_QUEUE} messages wait for the link already"
            await self._refuse(message, Code.UNAVAILABLE, why, protocol.RETRY_AFTER)

    async def _refuse(
        self, message: Message, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        if message.is_request:
            refusal = refuse(message, code, why, retry_after)
            await self._context.bus.post(refusal, self._stub)

    def flush(self) -> None:
        """Write the queue as far as possible without waiting; the writing task writes the rest.

        An acknowledgement without other lines waits a little for some.
        """
        core = self._core
        if self._scope.cancel_called:
            return  # the waiting messages are given back
        if core.may_wait:
            if not self._is_waiting:
                self._wake.set()
        elif core.has_output:
            if self._pipe.is_clear and not self._has_said_bye:
                self._had_other_lines = True
                self._is_begun = not self._pipe.write_now(self._take_frames())
            if self._is_begun or self._has_said_bye or core.has_output:
                self._wake.set()

    async def _hand_back_turned(self) -> None:
        turned = self._core.take_turned()
        if turned:
            # Only this task has them, so it must not be cancelled now.
            with trio.CancelScope(shield=True):
                await self._context.bus.hand_back(turned, self._stub)

    def take_unacknowledged(self) -> Sequence[Message]:
        """Remove and return the messages that the other end has not acknowledged, in order."""
        return self._core.owed()

    async def say_goodbye(self) -> None:
        """Write the queue and `bye`, wait for the end of the link, and then end it by force."""
        for ask in (self._core.say_goodbye, self._core.insist_on_goodbye):
            with trio.move_on_after(protocol.GOODBYE_TIMEOUT / 2):
                ask()
                self._wake.set()
                await self._ended.wait()
        self.break_off()

    def break_off(self) -> None:
        """Stop using the link now."""
        self._scope.cancel()

    async def run(self) -> tuple[Loss, str]:
        """Serve the link until it ends; return how and why it ended.

        If cancelled, the link is closed.
        """
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write)
                    nursery.start_soon(self._watch)
                    await self._read()
        finally:
            self._ended.set()
            with trio.CancelScope(shield=True):
                await self._pipe.aclose(self._close_reason)
        loss = Loss.ORDERLY if self._core.end is TransferEnd.BYE else Loss.BROKEN
        return loss, self._why or "closed"

    # --- in -----------------------------------------------------------------------------

    async def _read(self) -> None:
        while self._core.end is None:
            try:
                frame = await self._pipe.receive()
            except LinkError as exc:
                if isinstance(exc, FrameTooLargeError):
                    self._close_reason = CloseReason.TOO_LARGE
                    self._break(DropReason.MALFORMED, str(exc))
                self._end(str(exc))
                return
            if self._scope.cancel_called:
                # The stub has released the link; the sender gets no acknowledgement.
                return
            await self._take(frame)
            self.flush()
        self._end(f"the peer ended it: {self._core.end.value}")

    async def _take(self, frame: bytes) -> None:
        """Handle messages and announcements of a frame in order, then other control lines."""
        controls: list[Control] = []
        messages: list[bytes] = []
        if frame.count(b"\n") >= protocol.FRAME_MESSAGES:
            self._break(
                DropReason.OVERFLOW, f"a frame has more than {protocol.FRAME_MESSAGES} lines"
            )
            return
        for line in frame.split(b"\n"):
            if not handshake.is_own_line(line):
                messages.append(line)
                continue
            control = self._read_control(line)
            if isinstance(control, Behind):
                await self._take_messages(messages)
                messages = []
                self._core.spend(trio.current_time())
                if self._core.end is None:
                    await self._context.bus.announce(control, self._stub)
            elif control is not None:
                controls.append(control)
            if self._core.end is not None:
                break
        await self._take_messages(messages)
        for control in controls:
            self._core.heard(control, trio.current_time())
        if self._core.end is TransferEnd.FLOOD:
            self._break(DropReason.OVERFLOW, "the peer writes too many control lines")
        await self._hand_back_turned()

    async def _take_messages(self, lines: Sequence[bytes]) -> None:
        text = b"\n".join(lines)
        for item in decode_frame(text) if text else ():
            if self._core.end is not None:
                return
            await self._take_message(item)

    async def _take_message(self, item: Message | BadLine) -> None:
        if isinstance(item, BadLine):
            if item.replacement is None:
                self._core.skipped(trio.current_time())
            if not self._malformed.add(1, trio.current_time()):
                self._break(DropReason.MALFORMED, "the peer writes too many malformed messages")
                return
            self._context.counters.drop(DropReason.MALFORMED, where=self._context.url)
            if item.answer is not None:
                self.send(item.answer)
            return
        numbered = self._core.received(item, trio.current_time())
        if self._stub in item.via:
            self._drop(item, DropReason.LOOP)
        else:
            arrived = stamped(item, self._stub, self._sender)
            self._trace(Op.RCV, arrived, numbered.seq)
            await self._context.bus.post(arrived, self._stub)
        self._core.taken(numbered)

    def _read_control(self, line: bytes) -> Control | Behind | None:
        try:
            return handshake.read_control(line)
        except BadMessageError as exc:
            self._break(DropReason.MALFORMED, exc.reason)
            return None

    def _break(self, drop: DropReason, why: str) -> None:
        """End the link because the peer has violated the protocol of the link."""
        self._context.counters.drop(drop, where=self._context.url)
        self._core.broken()
        self._why = self._why or why

    # --- out ----------------------------------------------------------------------------

    async def _write(self) -> None:
        try:
            while not self._has_said_bye or self._is_begun:
                await self._write_next()
            self._end("closed by this end")
        except LinkError as exc:
            self._end(str(exc))

    async def _write_next(self) -> None:
        """Finish an unfinished write; otherwise write queued output, or wait for some."""
        if self._is_begun:
            await self._pipe.send_many(())
            self._is_begun = False
        elif not self._core.has_output:
            await self._wait_for_work()
        elif self._core.may_wait:
            await self._delay_acknowledgement()
        else:
            await self._pipe.send_many(self._take_frames())

    async def _delay_acknowledgement(self) -> None:
        """Delay an acknowledgement a moment, so that it travels with the answer."""
        self._is_waiting, self._had_other_lines = True, False
        with trio.move_on_after(ACK_DELAY) as patience:
            await self._wait_for_work()
            while self._core.may_wait:
                await self._wait_for_work()
        self._is_waiting = False
        if patience.cancelled_caught and not self._had_other_lines:
            await self._pipe.send_many(self._take_frames())

    def _take_frames(self) -> tuple[bytes, ...]:
        """Remove and return the next output, as frames."""
        taken = self._core.take_output(protocol.FRAME_MESSAGES, trio.current_time())
        self._has_said_bye = any(isinstance(item, Bye) for item in taken)
        return tuple(frames(self._lines_of(taken)))

    async def _wait_for_work(self) -> None:
        await self._wake.wait()
        self._wake = trio.Event()

    def _lines_of(self, written: list[Outgoing]) -> list[bytes]:
        lines: list[bytes] = []
        for item in written:
            if isinstance(item, Numbered):
                line, leaving = self._lines.popleft()
                self._trace(Op.XMIT, leaving, item.seq)
                lines.append(line)
            elif isinstance(item, Behind):
                lines.append(handshake.write_behind(item))
            else:
                lines.append(handshake.write_control(item))
        return lines

    # --- silence and end ------------------------------------------------------------------

    async def _watch(self) -> None:
        while self._core.end is None:
            # A write meanwhile may make the deadline earlier.
            soon = trio.current_time() + LINK_LOOK
            await trio.sleep_until(min(self._core.deadline(), soon))
            self._core.time_passed(trio.current_time())
            self._wake.set()
        self._end(f"the peer is {self._core.end.value}")

    def _end(self, why: str) -> None:
        self._why = self._why or why
        self._scope.cancel()

    # --- evidence -------------------------------------------------------------------------

    def _trace(self, op: Op, message: Message, seq: int) -> None:
        tracer = self._context.tracer
        if tracer.hops or (tracer.sample and not message.id % tracer.sample):
            tracer.messages.hop(self._hops[op], message, seq)

    def _drop(self, message: Message, reason: DropReason) -> None:
        self._context.counters.drop(reason, message, self._context.url)
        self._context.tracer.message(self._context.url, Op.DROP, message, reason=reason.value)
