"""A watch of rows in NATS: an ordered consumer of a stream, made again when it is lost."""

import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, final

import attrs
import orjson
import trio

from specs.limits.engine import (
    NATS_HEARTBEAT,
    NATS_MARK_LIFE,
    NATS_PULL_BYTES,
    NATS_PULL_LIFE,
    NATS_RETRY,
    WATCH_BATCH,
)
from transports.engine.contract import Current, Row, Seen
from transports.engine.due import Bell
from transports.engine.nats_rows import NANO, Json, number_in, part_of, pattern_of, row_of
from transports.engine.nats_stream import NatsStream
from transports.nats.errors import NatsError
from transports.nats.wire import Delivery, status

__all__ = ["NatsWatch"]

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
@attrs.frozen
class _Place:
    """What a watch reads from.

    Attributes:
        made: When the stream was made.
        server: Process of the server.
    """

    made: str
    server: str | None


@final
class _Reading:
    """One consumer: what it has delivered, and whether that is all there was at its beginning.

    Args:
        inbox: Beginning of the subjects to which it delivers.
        last: Number of the last message of the stream when it began.
        is_whole: Whether it reads all rows, so that what it does not deliver is gone.
    """

    def __init__(self, inbox: bytes, last: int, *, is_whole: bool) -> None:
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
        """Return where to have the next rows delivered; None: some are still to come."""
        if self._left > 0:
            return None
        self._pulls += 1
        self._left = WATCH_BATCH
        return b"%b%d" % (self._inbox, self._pulls)

    def revision(self, delivery: Delivery) -> int | None:
        """Take what is delivered; return the revision of the row, None if it is no row.

        Raises:
            NatsError: The consumer is gone, or a row was lost before.
        """
        code = status(delivery.headers)
        if code:
            self._told(code, delivery)
            return None
        words = delivery.reply.split(b".")
        at = 5 if len(words) == _SHORT_ACK else 7
        revision, number, left = int(words[at]), int(words[at + 1]), int(words[at + 3])
        if number != self._next:
            raise NatsError("a row was lost")
        self._next += 1
        self._left -= 1
        self.is_caught_up |= left == 0 or revision >= self.last
        return revision

    def _told(self, code: int, delivery: Delivery) -> None:
        if code == _HEARTBEAT:
            self.is_caught_up = True
        elif delivery.subject == b"%b%d" % (self._inbox, self._pulls):
            if code in _OVER:
                self.is_caught_up = True
            elif not any(word in delivery.headers for word in _FULL):
                raise NatsError("the consumer is gone")
            self._left = 0


@final
class NatsWatch:
    """Follows rows over outages.

    A consumer of the stream delivers rows as they are asked for, so a slow reader lets nothing
    wait but itself. After an outage the watch goes on where it was, if server and stream are the
    same and the marks of deleted rows are still there. Else all rows are read again, and compared.

    Args:
        stream: The stream.
        prefix: Beginning of the keys of the rows.
    """

    def __init__(self, stream: NatsStream, prefix: str) -> None:
        self._stream: Final = stream
        self._pattern: Final = pattern_of(stream.bucket, prefix).decode()
        self._known: Final = dict[str, int]()
        self._deliveries: Final = deque[Delivery | None]()
        self._bell: Final = Bell()
        self._place: _Place | None = None
        self._reached = 0
        self._heard_at = 0.0

    async def run(self, give: trio.MemorySendChannel[Sequence[Seen]]) -> None:
        """Give rows until the reader or the handle is gone."""
        with give, suppress(trio.BrokenResourceError):
            while not self._stream.is_closed:
                if not self._stream.health.is_up:
                    await self._stream.health_changed()
                    continue
                try:
                    await self._follow(give.send)
                except NatsError:
                    self._stream.suspect()
                    await trio.sleep(NATS_RETRY)

    async def _follow(self, send: Callable[[Sequence[Seen]], Awaitable[None]]) -> None:
        """Give rows until the consumer is lost, which is an error."""
        client = self._stream.client
        token = secrets.token_hex(11)
        inbox = b"%b.w.%b." % (client.inbox, token.encode())
        consumer = b"%b.%b" % (self._stream.name, token.encode())
        self._deliveries.clear()
        number = client.subscribe(inbox + b"*", self._take)
        try:
            reading, place = await self._begin(inbox, token)
            batch = list(self._finished(reading, place))
            while True:
                for at in range(0, len(batch), WATCH_BATCH + 1):
                    await send(batch[at : at + WATCH_BATCH + 1])
                reply = reading.pull()
                if reply is not None:
                    client.tell(b"$JS.API.CONSUMER.MSG.NEXT.%b" % consumer, _PULL, reply)
                rows = [*self._rows(reading, await self._next())]
                batch = [*self._news(reading, rows), *self._finished(reading, place)]
        finally:
            client.unsubscribe(number)
            client.tell(b"$JS.API.CONSUMER.DELETE.%b" % consumer)

    async def _begin(self, inbox: bytes, token: str) -> tuple[_Reading, _Place]:
        """Make a consumer."""
        found = await self._stream.state()
        place = _Place(str(found.get("created")), self._stream.client.server_id)
        last = number_in(part_of(found, "state"), "last_seq")
        goes_on = (
            place == self._place
            and last >= self._reached
            and trio.current_time() - self._heard_at < NATS_MARK_LIFE / 2
        )
        self._place = None
        name = self._stream.name.decode()
        made = await self._stream.api(
            f"CONSUMER.CREATE.{name}.{token}.{self._pattern}",
            {"stream_name": name, "config": self._config(token, goes_on=goes_on)},
        )
        reading = _Reading(inbox, last, is_whole=not goes_on)
        reading.is_caught_up = not number_in(made, "num_pending")
        return reading, place

    def _config(self, token: str, *, goes_on: bool) -> Json:
        begin: Json = {"deliver_policy": "last_per_subject"}
        if goes_on:
            begin = {
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": self._reached + 1,
            }
        return {
            **begin,
            "name": token,
            "filter_subject": self._pattern,
            "ack_policy": "none",
            "replay_policy": "instant",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": int(2 * NATS_PULL_LIFE * NANO),
        }

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
        if self._place is not None:
            self._heard_at = trio.current_time()
        return found

    def _rows(self, reading: _Reading, deliveries: Iterable[Delivery]) -> Iterator[Row]:
        for one in deliveries:
            revision = reading.revision(one)
            if revision is not None:
                yield row_of(self._stream.bucket, one, revision)

    def _news(self, reading: _Reading, rows: Iterable[Row]) -> Iterator[Seen]:
        """Yield the rows that the reader does not know."""
        for row in rows:
            self._reached = row.revision
            if reading.is_whole and not reading.is_current:
                reading.seen.add(row.key)
            known = self._known.get(row.key)
            if row.value is not None:
                self._known[row.key] = row.revision
                if known != row.revision:
                    yield row
            elif known is not None:
                del self._known[row.key]
                yield row

    def _finished(self, reading: _Reading, place: _Place) -> Iterator[Seen]:
        """Yield, once it has delivered all there was, what is gone, and `Current`."""
        if reading.is_current or not reading.is_caught_up:
            return
        reading.is_current = True
        if reading.is_whole:
            for key in [key for key in self._known if key not in reading.seen]:
                yield Row(key, None, max(reading.last, self._known.pop(key) + 1))
            reading.seen.clear()
        self._reached = max(self._reached, reading.last)
        self._place, self._heard_at = place, trio.current_time()
        yield Current()
