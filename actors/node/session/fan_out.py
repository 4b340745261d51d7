"""Messages for many sessions, delivered to some of them at a time (MN-12).

The bytes of a message are made once for all links of one class. A message that waits here for a
session precedes all later messages for that session.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Final

from actors.node.session.session import Session
from actors.node.trace import ComponentTrace
from fsm.session.node_session_io import OutboundMessage
from fsm.session.outbox_budget import PLACE, OutboxBudget
from specs.addresses.address import is_node
from specs.limits.protocol import FAN_OUT_PUTS, FAN_OUTS, FRAME_MESSAGES, WRITE_BYTES
from specs.trace import Op
from transports.link import Link


class _FanOut:
    """Messages, and the sessions that get all of them.

    Attributes:
        runtimes: Addresses of all receiving runtimes.
        waiting: Runtimes that have not got the messages.
        rest: Runtimes that come next, in order; some may have got the messages early.
        size: Bytes of the lines.
        wrapped: The bytes that carry the messages, for each class of links.
    """

    wrapped: dict[type[Link], bytes]

    def __init__(self, runtimes: Sequence[str], entries: list[OutboundMessage], size: int) -> None:
        self.runtimes: Final = runtimes
        self.entries: Final = entries
        self.size = size
        self.waiting: Final = set(runtimes)
        self.rest: Final = iter(runtimes)
        self.wrapped = {}

    def takes(self, runtimes: Sequence[str], size: int) -> bool:
        """Return whether another message can join: for the same sessions, before any delivery.

        Args:
            runtimes: Addresses of the runtimes.
            size: Bytes of the line of the message.
        """
        return (
            len(self.waiting) == len(self.runtimes)
            and len(self.entries) < FRAME_MESSAGES
            and self.size + size <= WRITE_BYTES
            and self.runtimes == runtimes
        )


class FanOuts:
    """The messages that some of their many sessions have not got; the task of the bus calls it.

    Attributes:
        waiting: The fan-outs that are not complete, in order.

    Args:
        sessions: The sessions, by address of the runtime.
        budget: Counts the waiting messages, with a place for each session.
        trace: Records each written message.
        put: Puts a message into the outbox of a runtime's link, or handles it otherwise.
    """

    def __init__(
        self,
        sessions: Mapping[str, Session],
        budget: OutboxBudget,
        trace: ComponentTrace,
        put: Callable[[str, OutboundMessage], None],
    ) -> None:
        self._sessions: Final = sessions
        self._budget: Final = budget
        self._trace: Final = trace
        self._put_one: Final = put
        self._fan_outs: Final = deque[_FanOut]()
        self.waiting: Final[Sized] = self._fan_outs
        self._being_put: Final = dict[str, deque[OutboundMessage]]()

    def add(self, runtimes: Sequence[str], entry: OutboundMessage) -> None:
        """Queue a message for the sessions of runtimes.

        Args:
            runtimes: Addresses of the runtimes, each once.
            entry: The message.
        """
        self._budget.hold(entry)
        size = len(entry.line)
        last = self._fan_outs[-1] if self._fan_outs else None
        if last is not None and last.takes(runtimes, size):
            last.entries.append(entry)
            last.size += size
            return
        while len(self._fan_outs) >= FAN_OUTS:
            # A delivery may cause another message for many sessions.
            self._put(self._fan_outs[0])
        self._fan_outs.append(_FanOut(runtimes, [entry], size))
        self._budget.count(PLACE * len(runtimes))

    def take(self, runtime: str) -> Sequence[OutboundMessage]:
        """Remove and return the messages that wait for the session of a runtime, in order.

        Args:
            runtime: Address of the runtime.
        """
        pending = self._being_put.get(runtime, ())
        taken = list(pending)
        if pending:
            pending.clear()
        for out in self._fan_outs:
            if runtime in out.waiting:
                out.waiting.remove(runtime)
                taken += out.entries
        return taken

    def settle(self, runtime: str | None) -> None:
        """Deliver the messages that wait for the session of a runtime. Idempotent.

        Args:
            runtime: Address of the runtime; None: there is no session.
        """
        if (self._fan_outs or self._being_put) and runtime is not None:
            self._put_all(runtime, self.take(runtime))

    def write(self, clock: Callable[[], float], until: float) -> None:
        """Write to the next links; never wait.

        Args:
            clock: Returns seconds.
            until: Time by which to stop.
        """
        puts = FAN_OUT_PUTS
        while self._fan_outs:
            fan_out = self._fan_outs[0]
            for runtime in fan_out.rest:
                if runtime not in fan_out.waiting:
                    continue
                fan_out.waiting.remove(runtime)
                if self._is_written(runtime, fan_out):
                    if clock() >= until:
                        return
                    continue
                # If no link is written to at once, the clock decides nothing: simulations of
                # the same seed stay equal.
                puts -= 1
                if not puts:
                    return
            self._remove_first(fan_out)

    def hand_over(self) -> None:
        """Put all remaining messages into the outboxes."""
        while self._fan_outs:
            self._put(self._fan_outs[0])

    def _is_written(self, runtime: str, fan_out: _FanOut) -> bool:
        """Deliver the messages to one session; return whether its link was written to."""
        # For the node of another domain, each message is checked by itself.
        session = None if is_node(runtime) else self._sessions.get(runtime)
        port = None if session is None else session.port
        if port is None or not port.write_shared(fan_out.entries, fan_out.wrapped):
            self._put_all(runtime, fan_out.entries)
            return False
        for entry in fan_out.entries:
            self._trace.record_pass(Op.XMIT, entry.message, port.name)
        return True

    def _put(self, fan_out: _FanOut) -> None:
        for runtime in fan_out.rest:
            if runtime in fan_out.waiting:
                fan_out.waiting.remove(runtime)
                self._put_all(runtime, fan_out.entries)
        self._remove_first(fan_out)

    def _put_all(self, runtime: str, entries: Sequence[OutboundMessage]) -> None:
        """Put messages in order, after those that are just being put for the same session.

        A put may end a link, and the end may cause a message for this session, which has to come
        behind all of them.
        """
        pending = deque(entries)
        self._being_put[runtime] = pending
        while pending:
            self._put_one(runtime, pending.popleft())
        if self._being_put.get(runtime) is pending:
            del self._being_put[runtime]

    def _remove_first(self, fan_out: _FanOut) -> None:
        """Remove the completed first fan-out, unless a nested call has already removed it."""
        if self._fan_outs and self._fan_outs[0] is fan_out:
            del self._fan_outs[0]
            self._budget.count(-PLACE * len(fan_out.runtimes))
            for entry in fan_out.entries:
                self._budget.release(entry)
