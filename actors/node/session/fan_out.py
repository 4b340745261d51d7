"""Messages that many sessions get, handed to some of them at a time (MN-12).

What several links of one class get is made into bytes once. A message that waits here for a
session is the end of what waits for that session: later messages to it go out behind.
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
        runtimes: Addresses of all their runtimes.
        waiting: Those that have not got them.
        rest: Those that come next, in order; some may have got them before their time.
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
        """Return whether another message can join: the same sessions get it, and none has any.

        Args:
            runtimes: Addresses of the runtimes.
            size: Bytes of its line.
        """
        return (
            len(self.waiting) == len(self.runtimes)
            and len(self.entries) < FRAME_MESSAGES
            and self.size + size <= WRITE_BYTES
            and self.runtimes == runtimes
        )


class FanOuts:
    """The messages that not all of their many sessions have got; part of the bus's task.

    Attributes:
        waiting: What not all have yet, in order.

    Args:
        sessions: The sessions, by address of the runtime.
        budget: What waits here counts in it, with a place for each session.
        trace: Notes what is written.
        put: Puts a message into the outbox of a runtime's link, or does what else is to be done.
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
        self._at_hand: Final = dict[str, deque[OutboundMessage]]()

    def add(self, runtimes: Sequence[str], entry: OutboundMessage) -> None:
        """Have a message handed to the sessions of runtimes.

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
            # What comes of it may be another message for many.
            self._put(self._fan_outs[0])
        self._fan_outs.append(_FanOut(runtimes, [entry], size))
        self._budget.count(PLACE * len(runtimes))

    def take(self, runtime: str) -> Sequence[OutboundMessage]:
        """Take out what waits for the session of a runtime, in order.

        Args:
            runtime: Address of the runtime.
        """
        at_hand = self._at_hand.get(runtime, ())
        taken = list(at_hand)
        if at_hand:
            at_hand.clear()
        for out in self._fan_outs:
            if runtime in out.waiting:
                out.waiting.remove(runtime)
                taken += out.entries
        return taken

    def settle(self, runtime: str | None) -> None:
        """Hand the session of a runtime what waits for it. Idempotent.

        Args:
            runtime: Address of the runtime; None: there is no session.
        """
        if (self._fan_outs or self._at_hand) and runtime is not None:
            self._put_all(runtime, self.take(runtime))

    def write(self, clock: Callable[[], float], until: float) -> None:
        """Write to the next links; never waits.

        Args:
            clock: Returns seconds.
            until: Time by which to stop.
        """
        puts = FAN_OUT_PUTS
        while self._fan_outs:
            one = self._fan_outs[0]
            for runtime in one.rest:
                if runtime not in one.waiting:
                    continue
                one.waiting.remove(runtime)
                if self._is_written(runtime, one):
                    if clock() >= until:
                        return
                    continue
                # Where nothing is written at once, nothing depends on the clock: simulated
                # runs of the same seed are the same.
                puts -= 1
                if not puts:
                    return
            self._over(one)

    def hand_over(self) -> None:
        """Put the rest into the outboxes."""
        while self._fan_outs:
            self._put(self._fan_outs[0])

    def _is_written(self, runtime: str, one: _FanOut) -> bool:
        """Hand over what a session gets; return whether its link was written to."""
        # What a node of another domain may get is looked at one by one.
        session = None if is_node(runtime) else self._sessions.get(runtime)
        port = None if session is None else session.port
        if port is None or not port.write_shared(one.entries, one.wrapped):
            self._put_all(runtime, one.entries)
            return False
        for entry in one.entries:
            self._trace.passed(Op.XMIT, entry.message, port.name)
        return True

    def _put(self, one: _FanOut) -> None:
        for runtime in one.rest:
            if runtime in one.waiting:
                one.waiting.remove(runtime)
                self._put_all(runtime, one.entries)
        self._over(one)

    def _put_all(self, runtime: str, entries: Sequence[OutboundMessage]) -> None:
        """Put entries in order, those first that are being put for the same session.

        To put one may end a link, and what comes of that may be a message for this session: it
        has to come behind all of them.
        """
        at_hand = deque(entries)
        self._at_hand[runtime] = at_hand
        while at_hand:
            self._put_one(runtime, at_hand.popleft())
        if self._at_hand.get(runtime) is at_hand:
            del self._at_hand[runtime]

    def _over(self, one: _FanOut) -> None:
        """Forget the first, which all have got; what came of that may have forgotten it already."""
        if self._fan_outs and self._fan_outs[0] is one:
            del self._fan_outs[0]
            self._budget.count(-PLACE * len(one.runtimes))
            for entry in one.entries:
                self._budget.release(entry)
