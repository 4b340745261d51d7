"""An ordered consumer of a stream of NATS, made again when it is lost."""

import secrets
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, Generic, TypeAlias, final

import orjson
import trio

from specs.limits.engine import (
    NATS_HEARTBEAT,
    NATS_PULL_BYTES,
    NATS_PULL_LIFE,
    NATS_RETRY,
    WATCH_BATCH,
)
from transports.engine.due import Bell, Item
from transports.engine.nats_rows import NANO, number_in, part_of
from transports.engine.nats_stream import NatsStream
from transports.nats.errors import NatsError
from transports.nats.wire import Delivery, status

Numbered: TypeAlias = tuple[int, Delivery]
"""A message of the stream, behind its number."""

_SHORT_ACK: Final = 9
"""Words in the subject of an acknowledgement; servers of a JetStream domain put two more in."""

_HEARTBEAT: Final = 100
_OVER: Final = (404, 408)
"""Status codes of a pull that ends because there is nothing, or its time is over."""

_FULL: Final = (b"MaxBytes", b"Batch Completed")
"""What a server says of a pull that has brought as much as it may."""

_PULL: Final = orjson.dumps({
    "batch": WATCH_BATCH,
    "max_bytes": NATS_PULL_BYTES,
    "expires": int(NATS_PULL_LIFE * NANO),
    "idle_heartbeat": int(NATS_HEARTBEAT * NANO),
})  # fmt: skip


@final
class Reading:
    """One consumer: what it has delivered, and whether that is all there was at its beginning.

    Args:
        inbox: Beginning of the subjects to which it delivers.
        made: When the stream was made.
        last: Number of the last message of the stream when it began.
        is_whole: Whether it reads all subjects, so that what it does not deliver is gone.
    """

    def __init__(self, inbox: bytes, made: str, last: int, *, is_whole: bool) -> None:
        self.made: Final = made
        self.last: Final = last
        self.is_whole: Final = is_whole
        self.seen: Final = set[str]()
        self.is_caught_up = False
        self.is_current = False
        self._inbox: Final = inbox
        self._next = 1
        self._pulls = 0
        self._left = 0

    def pull(self) -> bytes | None:
        """Return where to have the next messages delivered; None: some are still to come."""
        if self._left > 0:
            return None
        self._pulls += 1
        self._left = WATCH_BATCH
        return b"%b%d" % (self._inbox, self._pulls)

    def number(self, delivery: Delivery) -> int | None:
        """Take what is delivered; return the number of the message, None if it is none.

        Raises:
            NatsError: The consumer is gone, or a message was lost before.
        """
        code = status(delivery.headers)
        if code:
            self._told(code, delivery)
            return None
        words = delivery.reply.split(b".")
        at = 5 if len(words) == _SHORT_ACK else 7
        try:
            number, place, left = int(words[at]), int(words[at + 1]), int(words[at + 3])
        except (IndexError, ValueError) as exc:
            raise NatsError("a message without its number came") from exc
        if place != self._next:
            raise NatsError("a message was lost")
        self._next += 1
        self._left -= 1
        self.is_caught_up |= left == 0 or number >= self.last
        return number

    def _told(self, code: int, delivery: Delivery) -> None:
        if code == _HEARTBEAT:
            self.is_caught_up = True
        elif delivery.subject == b"%b%d" % (self._inbox, self._pulls):
            if code in _OVER:
                self.is_caught_up = True
            elif not any(word in delivery.headers for word in _FULL):
                raise NatsError("the consumer is gone")
            self._left = 0


class NatsFollower(ABC, Generic[Item]):
    """Reads a stream, and goes on after an outage.

    A consumer delivers messages as they are asked for, so a slow reader lets nothing wait but
    itself.

    Args:
        stream: The streams of the handle.
        name: Name of the stream that is read.
        pattern: Pattern of the subjects that are read.
        has_payloads: Whether payloads are read, too, and not headers alone.
    """

    def __init__(
        self, stream: NatsStream, name: str, pattern: str, *, has_payloads: bool = True
    ) -> None:
        self._stream: Final = stream
        self._name: Final = name
        self._pattern: Final = pattern
        self._has_payloads: Final = has_payloads
        self._deliveries: Final = deque[Delivery | None]()
        self._bell: Final = Bell()

    @abstractmethod
    def _begun_at(self, made: str, last: int) -> int | None:
        """Decide where to begin.

        Args:
            made: When the stream was made; another one has other messages.
            last: Number of its last message.

        Returns:
            The number of the first message to read; None: of each subject the last one.
        """

    @abstractmethod
    def _items(self, reading: Reading, messages: Sequence[Numbered]) -> Iterator[Item]:
        """Yield what messages mean to the reader; also called once before the first of them."""

    async def run(self, give: trio.MemorySendChannel[Sequence[Item]]) -> None:
        """Give items until the reader or the handle is gone."""
        with give, suppress(trio.BrokenResourceError):
            while not self._stream.is_closed:
                if not self._stream.health.is_up:
                    await self._stream.health_changed()
                    continue
                try:
                    await self._follow(give)
                except NatsError:
                    self._stream.suspect()
                    await trio.sleep(NATS_RETRY)

    async def _follow(self, give: trio.MemorySendChannel[Sequence[Item]]) -> None:
        """Give items until the consumer is lost, which is an error."""
        client = self._stream.client
        token = secrets.token_hex(11)
        inbox = b"%b.w.%b." % (client.inbox, token.encode())
        consumer = f"{self._name}.{token}".encode()
        self._deliveries.clear()
        number = client.subscribe(inbox + b"*", self._take)
        try:
            reading = await self._begin(inbox, token)
            messages: list[Numbered] = []
            while True:
                batch = list(self._items(reading, messages))
                for at in range(0, len(batch), WATCH_BATCH + 1):
                    await give.send(batch[at : at + WATCH_BATCH + 1])
                reply = reading.pull()
                if reply is not None:
                    client.tell(b"$JS.API.CONSUMER.MSG.NEXT.%b" % consumer, _PULL, reply)
                # All are read before any is given: one that is lost leaves no gap.
                messages = list(_numbered(reading, await self._next()))
        finally:
            client.unsubscribe(number)
            client.tell(b"$JS.API.CONSUMER.DELETE.%b" % consumer)

    async def _begin(self, inbox: bytes, token: str) -> Reading:
        """Make a consumer."""
        found = await self._stream.state(self._name)
        made, last = str(found.get("created")), number_in(part_of(found, "state"), "last_seq")
        first = self._begun_at(made, last)
        begin: dict[str, object] = {"deliver_policy": "last_per_subject"}
        if first is not None:
            begin = {"deliver_policy": "by_start_sequence", "opt_start_seq": max(first, 1)}
        answer = await self._stream.api(
            f"CONSUMER.CREATE.{self._name}.{token}.{self._pattern}",
            {
                "stream_name": self._name,
                "config": {
                    **begin,
                    "name": token,
                    "filter_subject": self._pattern,
                    "headers_only": not self._has_payloads,
                    "ack_policy": "none",
                    "replay_policy": "instant",
                    "mem_storage": True,
                    "num_replicas": 1,
                    "inactive_threshold": int(2 * NATS_PULL_LIFE * NANO),
                },
            },
        )
        reading = Reading(inbox, made, last, is_whole=first is None)
        reading.is_caught_up = not number_in(answer, "num_pending")
        return reading

    def _take(self, delivery: Delivery | None) -> None:
        self._deliveries.append(delivery)
        self._bell.ring()

    async def _next(self) -> Sequence[Delivery]:
        """Wait for what is delivered next."""
        while not self._deliveries:
            with trio.move_on_after(3 * NATS_HEARTBEAT) as patience:
                await self._bell.wait()
            if patience.cancelled_caught:
                raise NatsError("the consumer says nothing")
        found = [one for one in self._deliveries if one is not None]
        is_lost = len(found) < len(self._deliveries)
        self._deliveries.clear()
        if is_lost:
            raise NatsError("the connection was lost")
        return found


def _numbered(reading: Reading, deliveries: Iterable[Delivery]) -> Iterator[Numbered]:
    for one in deliveries:
        number = reading.number(one)
        if number is not None:
            yield number, one
