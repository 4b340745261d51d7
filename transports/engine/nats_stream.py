"""The streams that hold the rows and logs of a group: found, or made; lost, and found again."""

import time
from collections.abc import Callable
from typing import Final, final

import orjson
import trio

from specs.limits.engine import NATS_PATIENCE, NATS_REPLICAS, NATS_RETRY
from transports.engine.contract import Counts, Health
from transports.engine.due import Bell
from transports.engine.nats_rows import (
    Json,
    bucket_of,
    error_of,
    log_terms,
    part_of,
    read_json,
    stream_terms,
)
from transports.nats.client import NatsClient, Request
from transports.nats.connection import Terms
from transports.nats.errors import NatsError

_NO_STREAM: Final = 10059
_EXISTS: Final = 10058
_NOT_CLUSTERED: Final = 10074
_NEEDED: Final = ("max_msgs_per_subject", "allow_msg_ttl", "discard_new_per_subject")
"""Settings without which a stream does not do what rows or logs need."""


@final
class NatsStream:
    """The streams of a group, and whether they can be used.

    Args:
        terms: How servers are reached.
        group: Name of the group.
        counts: Where outages are counted.

    Attributes:
        bucket: Name of the bucket for the tools of NATS.
        rows: Name of the stream of rows.
        logs: Name of the stream of logs.
        health: Whether they can be used.
        is_closed: Whether the handle is closed.
    """

    def __init__(self, terms: Terms, group: str, counts: Counts) -> None:
        self.client: Final = NatsClient(terms, self._client_moved)
        self.bucket: Final = bucket_of(group)
        self.rows: Final = f"KV_{self.bucket}"
        self.logs: Final = f"LOG_{self.bucket}"
        self.health = Health(is_up=False, problem=self.client.problem)
        self.is_closed = False
        self._counts: Final = counts
        self._moved = trio.Event()
        self._bell: Final = Bell()
        self._is_verified = False

    async def run(self) -> None:
        """Keep the connection and the streams, for ever."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.client.run)
            while True:
                await self._bell.wait()
                while self.client.server_id is not None and not self._is_verified:
                    self._is_verified = True  # unless it is suspected meanwhile
                    try:
                        await self._verify()
                    except NatsError as exc:
                        self._is_verified = False
                        self._set_health(Health(is_up=False, problem=str(exc)))
                        await trio.sleep(NATS_RETRY)
                    if self._is_verified:
                        self._set_health(Health(is_up=True))

    def close(self) -> None:
        """Take no part any more. Idempotent."""
        self.is_closed = True
        self._set_health(Health(is_up=False, problem="this handle is closed"))

    def suspect(self) -> None:
        """Look whether the streams are still there."""
        self._is_verified = False
        self._bell.ring()

    async def health_changed(self) -> Health:
        """Wait until `health` changes, and return it."""
        await self._moved.wait()
        return self.health

    async def api(self, what: str, terms: Json | None = None) -> Json:
        """Ask JetStream, and return its answer, which may be an error.

        Raises:
            NatsError: There is no answer.
        """
        payload = b"" if terms is None else orjson.dumps(terms)
        with trio.move_on_after(NATS_PATIENCE):
            return read_json(await self.client.ask(Request(f"$JS.API.{what}".encode(), payload)))
        raise NatsError(self.client.problem or "JetStream does not answer")

    async def state(self, name: str) -> Json:
        """Return what JetStream says of a stream.

        Raises:
            NatsError: It does not answer, or has no such stream.
        """
        found = await self.api(f"STREAM.INFO.{name}")
        _check(found)
        return found

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

    async def _verify(self) -> None:
        """Find the streams, or make them.

        Raises:
            NatsError: JetStream does not answer, refuses, or has another stream of this name.
        """
        for terms in (stream_terms, log_terms):
            await self._find(terms)

    async def _find(self, terms: Callable[[str, int, int], Json]) -> None:
        wanted = terms(self.bucket, 0, 0)
        name = str(wanted["name"])
        found = await self.api(f"STREAM.INFO.{name}")
        if (error_of(found) or (0,))[0] == _NO_STREAM:
            await self._make(terms)
            found = await self.state(name)
        _check(found)
        settings = part_of(found, "config")
        # Entries of logs go after some time, whichever this is; rows never do.
        is_other = bool(settings.get("max_age")) is not bool(wanted["max_age"])
        if is_other or any(settings.get(one) != wanted[one] for one in _NEEDED if one in wanted):
            raise NatsError(f"the stream {name} was made by another program")

    async def _make(self, terms: Callable[[str, int, int], Json]) -> None:
        first = time.time_ns() // 1000  # above all numbers of a stream that was here before
        for replicas in (NATS_REPLICAS, 1):
            wanted = terms(self.bucket, first, replicas)
            error = error_of(await self.api(f"STREAM.CREATE.{wanted['name']}", wanted))
            if error is None or error[0] == _EXISTS:
                return
            if error[0] != _NOT_CLUSTERED:
                raise NatsError(f"JetStream makes no stream: {error[1]}")


def _check(found: Json) -> None:
    error = error_of(found)
    if error is not None:
        raise NatsError(f"JetStream says: {error[1]}")
