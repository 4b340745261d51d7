"""The domain registry of a node whose records are kept behind a REST interface (CON-02).

Changes of status are reported when a request of this node makes them, and when the server lists
them. When a session ends, its records become disconnected, as in the registry of a node.
"""

from functools import partial

import trio
from typing_extensions import override

from actors.kit.back_ends import requests
from actors.kit.http_client import HttpClient, HttpError, ServerUrl
from actors.kit.ids import IdSource
from actors.kit.log import get_logger
from actors.node.connectors.service import Plan, Replied, RetryWorker, Say, Service
from actors.node.registry.registry import notification
from fsm.registry.records import Create, Find, Read, Touch
from specs.limits.node import BACKEND_TIMEOUT, REGISTRY_POLL, RETRY_QUEUE_PAUSE
from specs.message import Message

_log = get_logger("actors.node")


class RestRegistry(Service):
    """Relay requests to a registry behind a REST interface."""

    def __init__(self, address: str, server: ServerUrl, ids: IdSource) -> None:
        self._address = address
        self._ids = ids
        self._retries = RetryWorker("records to disconnect", self._disconnect)
        self._records = requests.RestRecords(HttpClient(server), self._retries.cancel)
        self._say: Say | None = None

    @override
    def plan(self, asked: requests.Asked) -> Plan | Replied:
        match requests.read_request(asked):
            case Create() as create:
                return Plan(partial(self._create, create), create.url)
            case Touch() as touch:
                return Plan(partial(self._touch, touch), touch.url)
            case Read() as read:
                return Plan(partial(self._read, read), read.url)
            case Find() as find:
                return Plan(partial(self._read, find))

    @override
    def forget_runtime(self, runtime: str) -> None:
        for url in self._records.remove_runtime(runtime):
            self._retries.schedule(url)

    @override
    async def run(self, say: Say) -> None:
        self._say = say
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._retries.run)
            nursery.start_soon(self._poll)

    @override
    async def closing(self) -> None:
        await self._retries.settle()

    @override
    async def aclose(self) -> None:
        await self._records.aclose()

    # ---- requests

    async def _create(self, request: Create) -> Replied:
        return self._read_reply(request.url, await self._records.create(request))

    async def _touch(self, request: Touch) -> Replied:
        return self._read_reply(request.url, await self._records.touch(request))

    async def _read(self, request: Read | Find) -> Replied:
        answer = await self._records.read(request)
        return Replied(answer.code, requests.answer_body(answer))

    def _read_reply(self, url: str, reply: requests.RecordReply) -> Replied:
        answer, status = reply
        notices = () if status is None else (self._notice(url, status),)
        return Replied(answer.code, requests.answer_body(answer), notices)

    # ---- changes of status

    def _notice(self, url: str, status: str) -> Message:
        return notification(self._ids.next(self._address), self._address, url, status)

    async def _notify(self, url: str, status: str) -> None:
        if self._say is not None:
            self._say(self._notice(url, status))

    async def _disconnect(self, url: str) -> None:
        status = await self._records.disconnect(url)
        if status is not None:
            await self._notify(url, status)

    async def _poll(self) -> None:
        """Poll the server for changes of status."""
        pause = REGISTRY_POLL
        while True:
            await trio.sleep(pause)
            try:
                with trio.move_on_after(BACKEND_TIMEOUT):
                    for url, status in await self._records.read_changes():
                        await self._notify(url, status)
                pause = REGISTRY_POLL
            except (HttpError, requests.BackEndError) as exc:
                if pause == REGISTRY_POLL:
                    _log.warning("changes cannot be read", why=exc.reason)
                pause = min(2 * pause, RETRY_QUEUE_PAUSE)
