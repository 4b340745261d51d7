"""`nats-py` on a loop of asyncio in a thread of its own, for `bench.engine.clients`.

Calls and what comes back cross in batches: the first one of a batch wakes the other side, the
others are there when it looks. A call that would leave too much on the way waits.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, final

import nats
import trio
from nats.js.errors import APIError

from transports.engine.contract import Put

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext


_EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
_ON_THE_WAY: Final = 64
"""Calls that the thread has not finished."""


@final
class Bridge:
    """Calls of Trio to the thread, and what comes back."""

    _loop: asyncio.AbstractEventLoop
    _end: asyncio.Event
    _client: "Client"
    _stream: "JetStreamContext"

    def __init__(self, url: str, bucket: str) -> None:
        self._url = url
        self._bucket = bucket
        self._token = trio.lowlevel.current_trio_token()
        self._calls = deque[Callable[[], Coroutine[None, None, None]]]()
        self._back = deque[Callable[[], object]]()
        self._room = trio.Semaphore(_ON_THE_WAY)
        self.is_open = trio.Event()

    # --- in the thread --------------------------------------------------------------------------

    def run(self) -> None:
        """Run the loop until the end."""
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self._client = await nats.connect(self._url)
        self._stream = self._client.jetstream(publish_async_max_pending=4096)
        self._token.run_sync_soon(self.is_open.set)
        await self._end.wait()
        await self._client.close()

    def _begin_calls(self) -> None:
        while self._calls:
            task = self._loop.create_task(self._calls.popleft()())
            task.add_done_callback(lambda done: done.result())

    def _bring(self, call: Callable[[], object]) -> None:
        self._back.append(call)
        if len(self._back) == 1:
            self._token.run_sync_soon(self._drain_back)

    async def _publish(self, subject: str, payloads: Sequence[bytes]) -> None:
        for one in payloads:
            await self._client.publish(subject, one)
        self._bring(self._room.release)

    async def _put_all(self, puts: Sequence[Put], written: list[int], done: trio.Event) -> None:
        futures = [
            await self._stream.publish_async(
                f"$KV.{self._bucket}.{put.key.replace('/', '.')}",
                put.value or b"",
                headers=None if put.expected is None else {_EXPECTED: str(put.expected)},
            )
            for put in puts
        ]
        for one in futures:
            try:
                written.append((await one).seq)
            except APIError:
                written.append(0)
        self._bring(done.set)

    async def _subscribe(
        self, subject: str, take: Callable[[bytes], None], ready: trio.Event
    ) -> None:
        async def came(message: "Msg") -> None:
            self._bring(partial(take, message.data))

        await self._client.subscribe(subject, cb=came)
        await self._client.flush()
        self._bring(ready.set)

    async def _finish(self) -> None:
        self._end.set()

    # --- in Trio --------------------------------------------------------------------------------

    def _drain_back(self) -> None:
        while self._back:
            self._back.popleft()()

    def _call(self, call: Callable[[], Coroutine[None, None, None]]) -> None:
        self._calls.append(call)
        if len(self._calls) == 1:
            self._loop.call_soon_threadsafe(self._begin_calls)

    def close(self) -> None:
        """End the thread."""
        self._call(self._finish)

    async def publish(self, subject: str, payloads: Sequence[bytes]) -> None:
        """Publish payloads."""
        await self._room.acquire()
        self._call(partial(self._publish, subject, payloads))

    async def put_all(self, puts: Sequence[Put]) -> Sequence[int]:
        """Write rows, and return their revisions; 0: a conflict."""
        done, written = trio.Event(), list[int]()
        async with self._room:
            self._call(partial(self._put_all, puts, written, done))
            await done.wait()
        return written

    async def receive(self, subject: str, take: Callable[[bytes], None]) -> None:
        """Have what comes to a subject taken, in Trio."""
        ready = trio.Event()
        self._call(partial(self._subscribe, subject, take, ready))
        await ready.wait()


@asynccontextmanager
async def open_bridge(url: str, bucket: str) -> AsyncIterator[Bridge]:
    """Open a client in a thread, which ends with the context."""
    bridge = Bridge(url, bucket)
    thread = threading.Thread(target=bridge.run)
    thread.start()
    try:
        await bridge.is_open.wait()
        yield bridge
    finally:
        bridge.close()
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(thread.join)
