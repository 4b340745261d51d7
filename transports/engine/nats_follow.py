"""Readers of the NATS streams of an engine, which report new rows and log entries, in order.

Each reader uses an ordered consumer of JetStream, and makes a new consumer after an outage.
"""

import secrets
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Final, Generic, TypeAlias

import orjson
import trio
from typing_extensions import override

from specs.limits import engine
from transports.engine import nats_rows
from transports.engine.contract import Bell, Counts, Current, Health, Item, Reached, Row, Seen
from transports.nats.client import NatsClient, Request
from transports.nats.connection import Terms
from transports.nats.wire import Delivery, NatsError, status

# The streams of the rows and logs of a group: looked up or created, and again after an outage.

_NO_STREAM: Final = 10059
_EXISTS: Final = 10058
_NOT_CLUSTERED: Final = 10074
_NEEDED: Final = ("max_msgs_per_subject", "allow_msg_ttl", "discard_new_per_subject")
"""Settings of a stream that rows or logs need."""


class NatsStream:
    """The two streams of a group, for rows and for logs; created if they do not exist.

    Args:
        terms: Servers and credentials.
        group: Name of the group.
        counts: Counters of outages.

    Attributes:
        bucket: Name of the bucket for the tools of NATS.
        rows: Name of the stream of rows.
        logs: Name of the stream of logs.
        health: Whether the streams can be used.
        is_closed: Whether the handle is closed.
    """

    def __init__(self, terms: Terms, group: str, counts: Counts) -> None:
        self.client: Final = NatsClient(terms, self._client_moved)
        self.bucket: Final = nats_rows.bucket_of(group)
        self.rows: Final = f"KV_{self.bucket}"
        self.logs: Final = f"LOG_{self.bucket}"
        self.health = Health(is_up=False, problem=self.client.problem)
        self.is_closed = False
        self._counts: Final = counts
        self._moved = trio.Event()
        self._bell: Final = Bell()
        self._is_verified = False

    async def run(self) -> None:
        """Keep the connection and the streams until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.client.run)
            while True:
                await self._bell.wait()
                while self.client.server_id is not None and not self._is_verified:
                    self._is_verified = True  # unless it is suspected meanwhile
                    try:
                        for terms in (nats_rows.stream_terms, nats_rows.log_terms):
                            await self._find(terms)
                    except NatsError as exc:
                        self._is_verified = False
                        self._set_health(Health(is_up=False, problem=str(exc)))
                        await trio.sleep(engine.NATS_RETRY)
                    if self._is_verified:
                        self._set_health(Health(is_up=True))

    def close(self) -> None:
        """Stop using the streams. Idempotent."""
        self.is_closed = True
        self._set_health(Health(is_up=False, problem="this handle is closed"))

    def suspect(self) -> None:
        """Let `run` check again whether the streams exist, after a failed request."""
        self._is_verified = False
        self._bell.ring()

    async def health_changed(self) -> Health:
        """Wait until `health` changes, and return it."""
        await self._moved.wait()
        return self.health

    async def api(self, operation: str, terms: nats_rows.Json | None = None) -> nats_rows.Json:
        """Send a request to JetStream, and return its answer, which may be an error.

        Raises:
            NatsError: There is no answer.
        """
        payload = b"" if terms is None else orjson.dumps(terms)
        with trio.move_on_after(engine.NATS_PATIENCE):
            return nats_rows.read_json(
                await self.client.ask(Request(f"$JS.API.{operation}".encode(), payload))
            )
        raise NatsError(self.client.problem or "JetStream does not answer")

    async def state(self, name: str) -> nats_rows.Json:
        """Return the state of a stream.

        Raises:
            NatsError: JetStream does not answer, or has no such stream.
        """
        state = await self.api(f"STREAM.INFO.{name}")
        _check(state)
        return state

    def _client_moved(self) -> None:
        self._counts.unsure, self._counts.refused = self.client.unsure, self.client.refused
        if self.client.server_id is None and not self.is_closed:
            self._is_verified = False
            self._set_health(Health(is_up=False, problem=self.client.problem))
        self._bell.ring()

    def _set_health(self, health: Health) -> None:
        if health == self.health:
            return
        if self.health.is_up and not self.is_closed:
            self._counts.outages += 1
        self.health = health
        self._moved.set()
        self._moved = trio.Event()

    async def _find(self, terms: Callable[[str, int, int], nats_rows.Json]) -> None:
        """Check that a stream exists and has the right settings, or create the stream.

        Raises:
            NatsError: JetStream does not answer, refuses, or has another stream of this name.
        """
        wanted = terms(self.bucket, 0, 0)
        name = str(wanted["name"])
        state = await self.api(f"STREAM.INFO.{name}")
        if (nats_rows.error_of(state) or (0,))[0] == _NO_STREAM:
            await self._make(terms)
            state = await self.state(name)
        _check(state)
        settings = nats_rows.part_of(state, "config")
        # Entries of logs expire after some time; rows never do.
        is_other = bool(settings.get("max_age")) is not bool(wanted["max_age"])
        if is_other or any(
            settings.get(each) != wanted[each] for each in _NEEDED if each in wanted
        ):
            raise NatsError(f"the stream {name} was made by another program")

    async def _make(self, terms: Callable[[str, int, int], nats_rows.Json]) -> None:
        first = time.time_ns() // 1000  # above the numbers of any earlier stream
        for replicas in (engine.NATS_REPLICAS, 1):
            wanted = terms(self.bucket, first, replicas)
            error = nats_rows.error_of(await self.api(f"STREAM.CREATE.{wanted['name']}", wanted))
            if error is None or error[0] == _EXISTS:
                return
            if error[0] != _NOT_CLUSTERED:
                raise NatsError(f"JetStream makes no stream: {error[1]}")


def _check(answer: nats_rows.Json) -> None:
    error = nats_rows.error_of(answer)
    if error is not None:
        raise NatsError(f"JetStream says: {error[1]}")


Numbered: TypeAlias = tuple[int, Delivery]
"""A message of a stream, after its number in the stream."""

_SHORT_ACK: Final = 9
"""Words in the subject of an acknowledgement; in a JetStream domain there are two more."""

_HEARTBEAT: Final = 100
_OVER: Final = (404, 408)
"""Status codes of a pull that ends without messages, or by its timeout."""

_FULL: Final = (b"MaxBytes", b"Batch Completed")
"""Texts of a server about a pull that has reached its limit."""

_PULL: Final = orjson.dumps({
    "batch": engine.WATCH_BATCH,
    "max_bytes": engine.NATS_PULL_BYTES,
    "expires": int(engine.NATS_PULL_LIFE * nats_rows.NANO),
    "idle_heartbeat": int(engine.NATS_HEARTBEAT * nats_rows.NANO),
})  # fmt: skip


class Reading:
    """State of one consumer: checks that no message is missing, and whether all old ones came.

    Args:
        inbox: Prefix of the subjects to which the consumer delivers.
        made: When the stream was made.
        last: Number of the last message of the stream when the consumer began.
        awaited: Number of the last message to read; 0: there is none. A restarted server may lack
            messages for a while, and then reports too early that none are left.
        is_whole: Whether the consumer begins with the last message of every subject, so that known
            rows without a message were deleted.
    """

    def __init__(self, inbox: bytes, made: str, last: int, awaited: int, *, is_whole: bool) -> None:
        self.made: Final = made
        self.last: Final = last
        self.awaited: Final = awaited
        self.is_whole: Final = is_whole
        self.seen: Final = set[str]()
        self.is_caught_up = False
        self.is_current = False
        self._inbox: Final = inbox
        self._next = 1
        self._pulls = 0
        self._left = 0

    def pull(self) -> bytes | None:
        """Return the reply subject for the next request for messages.

        None: messages of the last request are still to come.
        """
        if self._left > 0:
            return None
        self._pulls += 1
        self._left = engine.WATCH_BATCH
        return b"%b%d" % (self._inbox, self._pulls)

    def number(self, delivery: Delivery) -> int | None:
        """Process a delivery; return the number of the message, None if it is a status.

        Raises:
            NatsError: The consumer is gone, or an earlier message was lost.
        """
        code = status(delivery.headers)
        if code:
            self._take_status(code, delivery)
            return None
        words = delivery.reply.split(b".")
        at = 5 if len(words) == _SHORT_ACK else 7
        try:
            number, place = int(words[at]), int(words[at + 1])
        except (IndexError, ValueError) as exc:
            raise NatsError("a message without its number came") from exc
        if place != self._next:
            raise NatsError("a message was lost")
        self._next += 1
        self._left -= 1
        self.is_caught_up |= number >= self.awaited
        return number

    def _take_status(self, code: int, delivery: Delivery) -> None:
        if code == _HEARTBEAT:
            self.is_caught_up = True
        elif delivery.subject == b"%b%d" % (self._inbox, self._pulls):
            if code in _OVER:
                self.is_caught_up = True
            elif not any(word in delivery.headers for word in _FULL):
                raise NatsError("the consumer is gone")
            self._left = 0


class NatsFollower(ABC, Generic[Item]):
    """Base of readers that send the events of a stream to a channel, also after outages.

    A consumer delivers messages on request, so that a slow reader makes only itself wait.

    Args:
        stream: The streams of the handle.
        name: Name of the stream.
        pattern: Pattern of the subjects to read.
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
    def _first_number(self, made: str, last: int) -> int | None:
        """Return the number of the first message to read.

        Args:
            made: When the stream was made; another stream has other messages.
            last: Number of the last message of the stream.

        Returns:
            The number; None: the last message of each subject is read.
        """

    @abstractmethod
    def _items(self, reading: Reading, messages: Sequence[Numbered]) -> Iterator[Item]:
        """Yield the events for the reader that messages cause; also called before the first one."""

    async def run(self, give: trio.MemorySendChannel[Sequence[Item]]) -> None:
        """Send events until the reader or the handle is closed."""
        with give, suppress(trio.BrokenResourceError):
            while not self._stream.is_closed:
                if not self._stream.health.is_up:
                    await self._stream.health_changed()
                    continue
                try:
                    await self._follow(give)
                except NatsError:
                    self._stream.suspect()
                    await trio.sleep(engine.NATS_RETRY)

    async def _follow(self, give: trio.MemorySendChannel[Sequence[Item]]) -> None:
        """Send events until the consumer is lost, which is an error."""
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
                for at in range(0, len(batch), engine.WATCH_BATCH + 1):
                    await give.send(batch[at : at + engine.WATCH_BATCH + 1])
                reply = reading.pull()
                if reply is not None:
                    client.tell(b"$JS.API.CONSUMER.MSG.NEXT.%b" % consumer, _PULL, reply)
                # Check all messages before any is reported: a lost one must leave no gap.
                messages = list(_number_all(reading, await self._next()))
        finally:
            client.unsubscribe(number)
            client.tell(b"$JS.API.CONSUMER.DELETE.%b" % consumer)

    async def _begin(self, inbox: bytes, token: str) -> Reading:
        """Make a consumer that begins at the right message, and return its state."""
        state = await self._stream.state(self._name)
        made, last = (
            str(state.get("created")),
            nats_rows.number_in(nats_rows.part_of(state, "state"), "last_seq"),
        )
        first = self._first_number(made, last)
        begin: dict[str, object] = {"deliver_policy": "last_per_subject"}
        if first is not None:
            begin = {"deliver_policy": "by_start_sequence", "opt_start_seq": max(first, 1)}
        # The leader of the stream answers; it has all messages.
        at = await self._stream.api(f"STREAM.MSG.GET.{self._name}", {"last_by_subj": self._pattern})
        message = nats_rows.stored_message(at)
        awaited = 0 if message is None else message.number
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
                    "inactive_threshold": int(2 * engine.NATS_PULL_LIFE * nats_rows.NANO),
                },
            },
        )
        _check(answer)
        reading = Reading(inbox, made, last, awaited, is_whole=first is None)
        reading.is_caught_up = awaited < max(first or 0, 1)
        return reading

    def _take(self, delivery: Delivery | None) -> None:
        self._deliveries.append(delivery)
        self._bell.ring()

    async def _next(self) -> Sequence[Delivery]:
        """Wait for the next deliveries."""
        while not self._deliveries:
            with trio.move_on_after(3 * engine.NATS_HEARTBEAT) as patience:
                await self._bell.wait()
            if patience.cancelled_caught:
                raise NatsError("the consumer says nothing")
        deliveries = [delivery for delivery in self._deliveries if delivery is not None]
        is_lost = len(deliveries) < len(self._deliveries)
        self._deliveries.clear()
        if is_lost:
            raise NatsError("the connection was lost")
        return deliveries


def _number_all(reading: Reading, deliveries: Iterable[Delivery]) -> Iterator[Numbered]:
    for delivery in deliveries:
        number = reading.number(delivery)
        if number is not None:
            yield number, delivery


# Readers of the streams of NATS: for rows, and for the positions of logs.


class NatsWatch(NatsFollower[Seen]):
    """Reader that reports changes of rows, also after outages.

    After an outage the reading continues if server and stream are the same, and the markers of
    deleted rows still exist. Otherwise all rows are read again, and compared with the known ones.

    Args:
        stream: The streams of the handle.
        prefix: Prefix of the keys of the rows.
    """

    def __init__(self, stream: NatsStream, prefix: str) -> None:
        super().__init__(stream, stream.rows, nats_rows.pattern_of(stream.bucket, prefix).decode())
        self._known: Final = dict[str, int]()
        self._place: tuple[str, str | None] | None = None
        self._reached = 0
        self._given = 0
        self._heard_at = 0.0

    @override
    def _first_number(self, made: str, last: int) -> int | None:
        place, self._place = self._place, None
        goes_on = (
            place == (made, self._stream.client.server_id)
            and last >= self._reached
            and trio.current_time() - self._heard_at < engine.NATS_MARK_LIFE / 2
        )
        return self._reached + 1 if goes_on else None

    @override
    def _items(self, reading: Reading, messages: Sequence[Numbered]) -> Iterator[Seen]:
        self._heard_at = trio.current_time()
        for number, message in messages:
            yield from self._news(reading, nats_rows.row_of(self._stream.bucket, message, number))
        if reading.is_caught_up and not reading.is_current:
            reading.is_current = True
            yield from self._missed_deletions(reading)
            yield Current()
            self._reached = max(self._reached, reading.last)
            self._place = reading.made, self._stream.client.server_id

    def _news(self, reading: Reading, row: Row) -> Iterator[Row]:
        """Yield a row unless the reader knows it."""
        self._reached = row.revision
        if reading.is_whole and not reading.is_current:
            reading.seen.add(row.key)
        known = self._known.pop(row.key, None)
        if row.value is not None:
            self._known[row.key] = row.revision
            is_new = row.revision != known
        else:
            # The reader may know a row that was not reported, as its own write.
            is_new = known is not None or row.revision > self._given
        self._given = max(self._given, row.revision)
        if is_new:
            yield row

    def _missed_deletions(self, reading: Reading) -> Iterator[Row]:
        """Yield deletions for the known rows that a complete reading has not found."""
        if reading.is_whole:
            for key in [key for key in self._known if key not in reading.seen]:
                yield Row(key, None, max(reading.last, self._known.pop(key) + 1))
            reading.seen.clear()


class NatsLogNews(NatsFollower[Reached]):
    """Reader that reports which logs get entries; after an outage, the reading begins again.

    The last message of a log may be a filler: for an entry that is still to come, or that did not
    fit. The filler's position then stands for the entries before the filler.

    Args:
        stream: The streams of the handle.
    """

    def __init__(self, stream: NatsStream) -> None:
        pattern = nats_rows.log_pattern(stream.bucket).decode()
        super().__init__(stream, stream.logs, pattern, has_payloads=False)

    @override
    def _first_number(self, made: str, last: int) -> int | None:
        return None

    @override
    def _items(self, reading: Reading, messages: Sequence[Numbered]) -> Iterator[Reached]:
        last = {message.subject: number for number, message in messages}
        for subject, number in sorted(last.items(), key=itemgetter(1)):
            yield nats_rows.log_of(self._stream.bucket, subject), number
