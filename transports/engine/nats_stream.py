"""The stream that holds the rows of a group: found, or made; lost, and found again."""

import time
from typing import Final, final

import orjson
import trio

from specs.limits.engine import NATS_REPLICAS, NATS_RETRY
from transports.engine.contract import Counts, Health
from transports.engine.due import Bell
from transports.engine.nats_rows import Json, bucket_of, error_of, part_of, read_json, stream_terms
from transports.nats.client import NatsClient, Request
from transports.nats.connection import Terms
from transports.nats.errors import NatsError

__all__ = ["NatsStream"]

_NO_STREAM: Final = 10059
_EXISTS: Final = 10058
_NOT_CLUSTERED: Final = 10074


@final
class NatsStream:
    """The stream of a group, and whether it can be used.

    Args:
        terms: How servers are reached.
        group: Name of the group.
        counts: Where outages are counted.

    Attributes:
        bucket: Name of the bucket for the tools of NATS.
        name: Name of the stream.
        health: Whether it can be used.
        is_closed: Whether the handle is closed.
    """

    def __init__(self, terms: Terms, group: str, counts: Counts) -> None:
        self.client: Final = NatsClient(terms, self._client_moved)
        self.bucket: Final = bucket_of(group)
        self.name: Final = f"KV_{self.bucket}".encode()
        self.health = Health(is_up=False, problem=self.client.problem)
        self.is_closed = False
        self._counts: Final = counts
        self._moved = trio.Event()
        self._bell: Final = Bell()
        self._is_verified = False

    async def run(self) -> None:
        """Keep the connection and the stream, for ever."""
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
        """Look whether the stream is still there."""
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
        return read_json(await self.client.ask(Request(f"$JS.API.{what}".encode(), payload)))

    async def state(self) -> Json:
        """Return what JetStream says of the stream.

        Raises:
            NatsError: It does not answer, or has no such stream.
        """
        found = await self.api(f"STREAM.INFO.{self.name.decode()}")
        _check(found)
        return found

    def _client_moved(self) -> None:
        self._counts.unsure = self.client.unsure
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
        """Find the stream, or make it.

        Raises:
            NatsError: JetStream does not answer, refuses, or has another stream of this name.
        """
        found = await self.api(f"STREAM.INFO.{self.name.decode()}")
        if (error_of(found) or (0,))[0] == _NO_STREAM:
            await self._make()
            found = await self.state()
        _check(found)
        settings = part_of(found, "config")
        if settings.get("allow_msg_ttl") is not True or settings.get("max_msgs_per_subject") != 1:
            raise NatsError(f"the bucket {self.bucket} was made by another program")

    async def _make(self) -> None:
        first = time.time_ns() // 1000  # above all revisions of a stream that was here before
        for replicas in (NATS_REPLICAS, 1):
            terms = stream_terms(self.bucket, first, replicas)
            error = error_of(await self.api(f"STREAM.CREATE.{terms['name']}", terms))
            if error is None or error[0] == _EXISTS:
                return
            if error[0] != _NOT_CLUSTERED:
                raise NatsError(f"JetStream makes no bucket: {error[1]}")


def _check(found: Json) -> None:
    error = error_of(found)
    if error is not None:
        raise NatsError(f"JetStream says: {error[1]}")
