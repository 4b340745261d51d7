"""The engine that stores its rows and logs in NATS servers with JetStream.

A row is the last message of a subject in a stream, which the tools of NATS show as a key-value
bucket. A write that expects a revision is a message that expects the last message of its subject;
a lease is a message with a time to live. Payloads between nodes are plain messages.
"""

import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Final

import orjson
import trio
from typing_extensions import override

from specs.limits.engine import NATS_CLAIMS
from transports.engine import contract, nats_rows
from transports.engine.nats_follow import NatsLogNews, NatsStream, NatsWatch
from transports.nats.client import Missing, Request
from transports.nats.connection import Terms
from transports.nats.wire import Delivery, NatsError
from transports.sockets import open_background

_CONFLICTS: Final = (10071, 10164)
_LOG_FULL: Final = "per subject"
"""Part of the error text when a subject has reached its limit of messages."""
_NO_RESPONDERS: Final = b"NATS/1.0 503"
"""Beginning of the headers of NATS's answer to a message that has no subscriber."""


class NatsEngine(contract.Engine):
    """The engine of one node, over NATS; made by `open_engine`."""

    def __init__(self, terms: Terms, group: str) -> None:
        super().__init__()
        self.stream: Final = NatsStream(terms, group, self.counts)
        self._client: Final = self.stream.client
        self._bucket: Final = self.stream.bucket
        self._inboxes: Final = dict[contract.Inbox, None]()

    def close(self) -> None:
        """Fail all calls, and end all channels, from now on. Idempotent."""
        self.stream.close()
        for inbox in self._inboxes:
            inbox.bell.ring()

    # --- rows -----------------------------------------------------------------------------------

    @override
    async def get(self, key: str) -> contract.Row | None:
        await trio.lowlevel.checkpoint()
        self._check_up()
        (row,) = await self._read_stored((key,))
        return None if row is None or row.value is None else row

    async def _read_stored(self, keys: Sequence[str]) -> Sequence[contract.Row | None]:
        """Return the rows with these keys, and markers (without value) of deleted rows.

        Raises:
            EngineDownError: JetStream does not answer.
        """
        subject = self._stored_in(self.stream.rows)
        requests = [
            Request(subject, b'{"last_by_subj":"%b"}' % nats_rows.subject_of(self._bucket, key))
            for key in keys
        ]
        messages = [self._read_message(answer) for answer in await self._client.ask_all(requests)]
        return [
            None if item is None else nats_rows.stored_row(self._bucket, item) for item in messages
        ]

    @staticmethod
    def _stored_in(stream: str) -> bytes:
        """Return the subject for requests that read a message of a stream from its leader."""
        return f"$JS.API.STREAM.MSG.GET.{stream}".encode()

    def _read_message(self, answer: Delivery | Missing) -> nats_rows.StoredMessage | None:
        """Return the stored message in an answer of JetStream; None: there is none.

        Raises:
            EngineDownError: JetStream does not answer.
        """
        if isinstance(answer, Missing):
            raise self._no_answer(answer)
        try:
            return nats_rows.stored_message(nats_rows.read_json(answer))
        except (NatsError, ValueError) as exc:
            self.stream.suspect()
            raise contract.EngineDownError(f"JetStream gives no message: {exc}") from exc

    @override
    async def put_all(self, puts: Sequence[contract.Put]) -> Sequence[contract.Written]:
        await trio.lowlevel.checkpoint()
        if not self.health.is_up:
            return (contract.EngineDownError(self.health.problem),) * len(puts)
        expected = [put.expected for put in puts]
        written = await self._write(puts, expected)
        due: Sequence[int] = range(len(puts))
        for _ in range(NATS_CLAIMS):
            conflicts = [at for at in due if isinstance(written[at], contract.ConflictError)]
            due = await self._settle(puts, conflicts, expected, written) if conflicts else ()
            if not due:
                break
            parts = await self._write([puts[at] for at in due], [expected[at] for at in due])
            for at, part in zip(due, parts, strict=True):
                written[at] = part
        return written

    async def _settle(
        self,
        puts: Sequence[contract.Put],
        conflicts: Sequence[int],
        expected: list[int | None],
        written: list[contract.Written],
    ) -> Sequence[int]:
        """Read the present rows for conflicting writes; return the indices of writes to repeat.

        A write that expects no row conflicts with the marker of a deleted row: it is repeated.

        Args:
            puts: All writes.
            conflicts: Indices of the conflicting writes.
            expected: Expected revision of each write; updated for the writes to repeat.
            written: Outcome of each write; updated with the present row for the other conflicts.
        """
        try:
            rows = await self._read_stored([puts[at].key for at in conflicts])
        except contract.EngineDownError as exc:
            for at in conflicts:
                # It is not known whether there is a row.
                written[at] = contract.EngineDownError(exc.reason)
            return ()
        again = []
        for at, row in zip(conflicts, rows, strict=True):
            is_there = row is not None and row.value is not None
            written[at] = contract.ConflictError(puts[at].key, row if is_there else None)
            if puts[at].expected == 0 and not is_there:
                expected[at] = 0 if row is None else row.revision
                again.append(at)
        return again

    async def _write(
        self, puts: Sequence[contract.Put], expected: Sequence[int | None]
    ) -> list[contract.Written]:
        requests = [
            nats_rows.put_request(self._bucket, put, revision)
            for put, revision in zip(puts, expected, strict=True)
        ]
        # A late renewal loses the lease, so it goes before waiting requests.
        is_lease = all(put.lasts is not None for put in puts)
        ask = self._client.ask_first if is_lease else self._client.ask_all
        answers = await ask(requests)
        return [self._put_result(put, answer) for put, answer in zip(puts, answers, strict=True)]

    def _put_result(self, put: contract.Put, answer: Delivery | Missing) -> contract.Written:
        written = self._number(answer)
        if isinstance(written, tuple):
            if written[0] in _CONFLICTS:
                return contract.ConflictError(put.key, None)
            return contract.EngineDownError(f"JetStream refuses a write: {written[1]}")
        return written

    def _number(
        self, answer: Delivery | Missing
    ) -> int | tuple[int, str] | contract.EngineDownError:
        """Return the number in the stream that an answer of JetStream states, or the error."""
        if isinstance(answer, Missing):
            return self._no_answer(answer)
        if answer.headers.startswith(_NO_RESPONDERS):
            self.stream.suspect()
            return contract.EngineDownError("JetStream is not there")
        try:
            reply = nats_rows.read_json(answer)
            return nats_rows.error_of(reply) or nats_rows.number_in(reply, "seq")
        except NatsError as exc:
            return contract.EngineDownError(str(exc), is_unknown=True)

    def _no_answer(self, missing: Missing) -> contract.EngineDownError:
        reason = self.health.problem or self._client.problem or missing.value
        return contract.EngineDownError(reason, is_unknown=missing is Missing.UNKNOWN)

    def _check_up(self) -> None:
        if not self.health.is_up:
            raise contract.EngineDownError(self.health.problem)

    @override
    def watch(
        self, prefix: str = ""
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[Sequence[contract.Seen]]]:
        contract.check_prefix(prefix)
        return contract.open_feed(NatsWatch(self.stream, prefix).run)

    # --- logs -----------------------------------------------------------------------------------

    @override
    async def append_all(self, appends: Sequence[contract.Append]) -> Sequence[contract.Appended]:
        await trio.lowlevel.checkpoint()
        if not self.health.is_up:
            return (contract.EngineDownError(self.health.problem),) * len(appends)
        parts = [nats_rows.append_requests(self._bucket, append) for append in appends]
        answers = await self._client.ask_all(list(itertools.chain.from_iterable(parts)))
        ends = itertools.accumulate(map(len, parts))
        return [
            self._append_result(append, answers[end - 1])
            for append, end in zip(appends, ends, strict=True)
        ]

    def _append_result(
        self, append: contract.Append, answer: Delivery | Missing
    ) -> contract.Appended:
        written = self._number(answer)
        if isinstance(written, tuple):
            if _LOG_FULL in written[1]:
                return contract.LogFullError(append.log)
            return contract.EngineDownError(f"JetStream refuses an entry: {written[1]}")
        return written

    @override
    async def fetch(self, log: str, after: int, most: int) -> Sequence[contract.Entry]:
        await trio.lowlevel.checkpoint()
        self._check_up()
        endpoint = self._stored_in(self.stream.logs)
        subject = nats_rows.log_subject(self._bucket, log).decode()
        entries: list[contract.Entry] = []
        while len(entries) < most:
            query = orjson.dumps({"seq": after + 1, "next_by_subj": subject})
            (answer,) = await self._client.ask_all([Request(endpoint, query)])
            message = self._read_message(answer)
            if message is None:
                break
            after = message.number
            if not message.is_filler:
                entries.append(contract.Entry(log, message.number, message.payload))
        return entries

    @override
    def follow_logs(
        self,
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[Sequence[contract.Reached]]]:
        return contract.open_feed(NatsLogNews(self.stream).run)

    @override
    async def acknowledge(self, reached: Mapping[str, int]) -> None:
        await trio.lowlevel.checkpoint()
        self._check_up()
        endpoint = f"$JS.API.STREAM.PURGE.{self.stream.logs}".encode()
        requests = [
            Request(
                endpoint,
                orjson.dumps({
                    "filter": nats_rows.log_subject(self._bucket, log).decode(),
                    "seq": position + 1,
                }),
            )
            for log, position in reached.items()
        ]  # fmt: skip
        for answer in await self._client.ask_all(requests):
            if isinstance(answer, Missing):
                raise self._no_answer(answer)
            try:
                error = nats_rows.error_of(nats_rows.read_json(answer))
            except NatsError as exc:
                raise contract.EngineDownError(str(exc)) from exc
            if error is not None:
                self.stream.suspect()
                raise contract.EngineDownError(f"JetStream says: {error[1]}")

    # --- payloads -------------------------------------------------------------------------------

    @override
    async def publish(self, node: str, payloads: Sequence[bytes]) -> None:
        contract.check_payloads(payloads)
        if self.stream.is_closed:
            raise contract.EngineDownError(self.health.problem)
        try:
            await self._client.publish(nats_rows.node_subject(self._bucket, node), payloads)
        except NatsError as exc:
            raise contract.EngineDownError(str(exc)) from exc

    @override
    @asynccontextmanager
    async def inbox(
        self, node: str, lose: contract.Lose | None = None
    ) -> AsyncIterator[trio.MemoryReceiveChannel[Sequence[bytes]]]:
        inbox = contract.Inbox(node, lose)

        def take(delivery: Delivery | None) -> None:
            if delivery is not None:
                inbox.add(delivery.payload)

        subscription = self._client.subscribe(nats_rows.node_subject(self._bucket, node), take)
        self._inboxes[inbox] = None
        try:
            await self._client.flush()
            async with contract.open_feed(partial(self._pass_on, inbox)) as payloads:
                yield payloads
        finally:
            del self._inboxes[inbox]
            self._client.unsubscribe(subscription)

    async def _pass_on(
        self, inbox: contract.Inbox, give: trio.MemorySendChannel[Sequence[bytes]]
    ) -> None:
        with give, suppress(trio.BrokenResourceError):
            while not self.stream.is_closed:
                await inbox.bell.wait()
                while batch := inbox.take():
                    await give.send(batch)

    # --- health ---------------------------------------------------------------------------------

    @property
    @override
    def health(self) -> contract.Health:
        return self.stream.health

    @override
    async def health_changed(self) -> contract.Health:
        return await self.stream.health_changed()


@asynccontextmanager
async def open_engine(terms: Terms, group: str) -> AsyncIterator[NatsEngine]:
    """Open the engine of one node; it connects to the servers by itself, now or later.

    Args:
        terms: Servers and credentials.
        group: Name of the group: the domain of its nodes.

    If cancelled, the connection is closed.
    """
    engine = NatsEngine(terms, group)
    async with open_background() as nursery:
        nursery.start_soon(engine.stream.run)
        try:
            yield engine
        finally:
            engine.close()
