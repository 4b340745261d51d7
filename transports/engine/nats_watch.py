"""What is followed in the streams of NATS: rows, and which logs get entries."""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final, final

import attrs
import trio
from typing_extensions import override

from specs.limits.engine import NATS_MARK_LIFE
from transports.engine.contract import Current, Reached, Row, Seen
from transports.engine.nats_follow import NatsFollower, Numbered, Reading
from transports.engine.nats_rows import log_of, log_pattern, pattern_of, row_of
from transports.engine.nats_stream import NatsStream


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
class NatsWatch(NatsFollower[Seen]):
    """Follows rows over outages.

    After an outage it goes on where it was, if server and stream are the same and the marks of
    deleted rows are still there. Else all rows are read again, and compared.

    Args:
        stream: The streams of the handle.
        prefix: Beginning of the keys of the rows.
    """

    def __init__(self, stream: NatsStream, prefix: str) -> None:
        super().__init__(stream, stream.rows, pattern_of(stream.bucket, prefix).decode())
        self._known: Final = dict[str, int]()
        self._place: _Place | None = None
        self._reached = 0
        self._given = 0
        self._heard_at = 0.0

    @override
    def _begun_at(self, made: str, last: int) -> int | None:
        place, self._place = self._place, None
        goes_on = (
            place == _Place(made, self._stream.client.server_id)
            and last >= self._reached
            and trio.current_time() - self._heard_at < NATS_MARK_LIFE / 2
        )
        return self._reached + 1 if goes_on else None

    @override
    def _items(self, reading: Reading, messages: Sequence[Numbered]) -> Iterator[Seen]:
        self._heard_at = trio.current_time()
        for number, message in messages:
            yield from self._news(reading, row_of(self._stream.bucket, message, number))
        if reading.is_caught_up and not reading.is_current:
            reading.is_current = True
            yield from self._gone(reading)
            yield Current()
            self._reached = max(self._reached, reading.last)
            self._place = _Place(reading.made, self._stream.client.server_id)

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
            # The reader may know a row that was not given: it may have written it itself.
            is_new = known is not None or row.revision > self._given
        self._given = max(self._given, row.revision)
        if is_new:
            yield row

    def _gone(self, reading: Reading) -> Iterator[Row]:
        """Yield the deletions that were missed."""
        if reading.is_whole:
            for key in [key for key in self._known if key not in reading.seen]:
                yield Row(key, None, max(reading.last, self._known.pop(key) + 1))
            reading.seen.clear()


@final
class NatsLogNews(NatsFollower[Reached]):
    """Follows which logs get entries; begins again after an outage, as few logs have any.

    The last message of a log may be a filler: one of an entry that is still to come, or that found
    no room. It stands for the entries before it.

    Args:
        stream: The streams of the handle.
    """

    def __init__(self, stream: NatsStream) -> None:
        pattern = log_pattern(stream.bucket).decode()
        super().__init__(stream, stream.logs, pattern, has_payloads=False)

    @override
    def _begun_at(self, made: str, last: int) -> int | None:
        return None

    @override
    def _items(self, reading: Reading, messages: Sequence[Numbered]) -> Iterator[Reached]:
        last = {message.subject: number for number, message in messages}
        for subject, number in sorted(last.items(), key=itemgetter(1)):
            yield Reached(log_of(self._stream.bucket, subject), number)
