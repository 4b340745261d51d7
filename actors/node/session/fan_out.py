"""Deliver a message to many sessions, a few of them at a time (MN-12).

A message is encoded once for all links of a class. Each session gets its messages in order, also
those that do not come from here.
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
    """Messages for the same set of many sessions, partly delivered.

    Attributes:
        runtimes: Addresses of all receiving runtimes.
        waiting: Runtimes whose sessions do not have the messages yet.
        rest: Yields the remaining runtimes; some may already have the messages.
        size: Bytes of the encoded messages.
        wrapped: Encoded messages for each class of links.
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
        """Return whether a message may be added: for the same sessions, before the first delivery.

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
    """Queue of messages for many sessions; delivers to a few sessions at a time.

    Attributes:
        waiting: Deliveries that are not complete, in order.

    Args:
        sessions: The sessions, by address of the runtime.
        budget: Counts the memory of the queued messages, and of the list of sessions.
        trace: Records each written message.
        put: Delivers a message to the session of a runtime.
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
        """Remove and return the queued messages for the session of a runtime, in order.

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
        """Deliver the queued messages for the session of a runtime now.

        Idempotent.

        Args:
            runtime: Address of the runtime; None: there is no session.
        """
        if (self._fan_outs or self._being_put) and runtime is not None:
            self._put_all(runtime, self.take(runtime))

    def write(self, clock: Callable[[], float], until: float) -> None:
        """Write queued messages to links of their sessions until a time, without waiting.

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
        """Put all queued messages into the queues of their links."""
        while self._fan_outs:
            self._put(self._fan_outs[0])

    def _is_written(self, runtime: str, fan_out: _FanOut) -> bool:
        """Deliver the messages to one session; return whether they were written at once."""
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
        """Deliver messages to a session in order, after those that a call further up is delivering.

        A delivery may end a link, and this may cause another message for the same session, which
        has to come last.
        """
        pending = deque(entries)
        self._being_put[runtime] = pending
        while pending:
            self._put_one(runtime, pending.popleft())
        if self._being_put.get(runtime) is pending:
            del self._being_put[runtime]

    def _remove_first(self, fan_out: _FanOut) -> None:
        """Remove the first delivery, which is complete, unless a nested call has removed it."""
        if self._fan_outs and self._fan_outs[0] is fan_out:
            del self._fan_outs[0]
            self._budget.count(-PLACE * len(fan_out.runtimes))
            for entry in fan_out.entries:
                self._budget.release(entry)
