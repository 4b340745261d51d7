"""Searches of domain registries: in pages (M-26..M-28), and followed (M-29, M-30).

`RecordSearch` is one search. `Watching` repeats a search and follows the status of the found
entries. It has no task between two calls, so an abandoned watch leaves only subscriptions, each
of which ends at its next report. `Discoverer` makes both for one component.
"""

import math
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Final, Self, Unpack, final
from weakref import WeakSet

import attrs
import trio
from typing_extensions import override

from actors.kit.arguments import check_attribute
from fsm.registry import discovery
from fsm.registry.records import UNKNOWN
from specs.addresses.address import canonical, domain_name, domain_of, domain_registry
from specs.bodies.link import Path
from specs.bodies.registry import FoundRecord, ReadRecord, RecordChanged
from specs.errors import BadMessageError, ProtoflyError
from specs.jsonvalue import Json, JsonObject, freeze
from specs.limits.discovery import EMPTY_PAGES, FOUND_AT_ONCE, WATCH_PERIOD, WATCHED_ENTRIES
from specs.message import Message, MessageType, reason_in
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import read_body, read_object, write_body


@attrs.frozen
class RegistryReader:
    """Reads at the registry of one domain.

    Attributes:
        domain: The domain. Records of addresses in other domains are ignored.
        read: Sends a read with this body, and returns its answer.
    """

    domain: str
    read: Callable[[JsonObject], Awaitable[Message]]

    def entry(self, value: Json) -> discovery.FoundEntry | None:
        """Return the hyperty or object that a record describes; None: it describes none."""
        with suppress(BadMessageError):
            if isinstance(value, dict):
                entry = discovery.entry_of(read_object(value, FoundRecord, "record"))
                return entry if domain_of(entry.url) == self.domain else None
        return None


@final
class SearchError(ProtoflyError, public=True):
    """A registry did not answer a search or read, or refused it.

    Attributes:
        code: Code of its answer.
        reason: Reason in the answer; may be empty.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"the registry answered {code}: {reason}")
        self.code = code
        self.reason = reason


@final
class RecordSearch:
    """The results of a search, newest first, as an asynchronous iterator.

    A page is read when its first entry is needed. Entries that are registered after the first
    page was read are not among them. If no entry is live, the iterator returns those whose
    hyperties or objects are away; their `status` says so. Records of a wrong form, and those of
    other domains, are left out. `await` returns the first `FOUND_AT_ONCE` entries.

    Args:
        registry: Reads at the registry.
        search: The search; its `after` is not used.
    """

    def __init__(self, registry: RegistryReader, search: ReadRecord) -> None:
        self._registry: Final = registry
        self._search: Final = search
        self._page: deque[discovery.FoundEntry] = deque()
        self._after: str | None = None
        self._is_over = False

    def __aiter__(self) -> Self:
        return self

    def __await__(self) -> Generator[object, object, tuple[discovery.FoundEntry, ...]]:
        return self.first(FOUND_AT_ONCE).__await__()

    async def first(self, most: int) -> tuple[discovery.FoundEntry, ...]:
        """Return the next entries, `most` at most.

        If cancelled, those that were read are lost.

        Raises:
            SearchError: The registry does not answer, or refuses.
            ActorStoppedError: The runtime has closed.
        """
        entries: list[discovery.FoundEntry] = []
        if most > 0:
            async for entry in self:
                entries.append(entry)
                if len(entries) == most:
                    break
        return tuple(entries)

    async def __anext__(self) -> discovery.FoundEntry:
        """Return the next entry.

        If cancelled, the entry is the next one of a later call.

        Raises:
            SearchError: The registry does not answer, or refuses; a later call asks again.
            ActorStoppedError: The runtime has closed.
        """
        empty = 0
        while not self._page and not self._is_over:
            if empty == EMPTY_PAGES:
                raise SearchError(Code.BAD_BACKEND, f"{empty} pages have no entry in them")
            await self._read_page()
            empty += 1
        if not self._page:
            raise StopAsyncIteration
        return self._page.popleft()

    async def _read_page(self) -> None:
        """Read the next page."""
        body = write_body(self._search)
        if self._after is not None:
            body["after"] = self._after
        answer = await self._registry.read(body)
        value = answer.body.get("value")
        if _has_none(answer):
            value = []
        elif answer.code > LAST_SUCCESS and answer.code != Code.TIMEOUT:
            raise SearchError(answer.code, reason_in(answer))
        if not isinstance(value, list):
            raise SearchError(answer.code, reason_in(answer) or "it has no list of records")
        for each in value:
            entry = self._registry.entry(each)
            if entry is not None:
                self._page.append(entry)
        following = answer.body.get("next")
        self._after = following if isinstance(following, str) and value else None
        self._is_over = self._after is None


_STATUS: Final = "/registration"

_LASTING: Final = frozenset({Code.MALFORMED, Code.UNAUTHENTICATED, Code.FORBIDDEN})
"""Codes of answers after which it is useless to repeat a search."""


@attrs.define(eq=False)
class Discoverer:
    """Searches in the name of one component of a runtime, and takes status reports for it.

    Attributes:
        domain: Domain whose registry is searched unless another one is named.
        registry: Address of the runtime's registry, which follows records for its components.
        ask: Sends a request of the component and returns its final answer.
        post: Sends a request whose answer is not awaited.
    """

    domain: str
    registry: str
    ask: Callable[[str, MessageType, JsonObject], Awaitable[Message]]
    post: Callable[[str, MessageType, JsonObject], Awaitable[None]]
    _watching: dict[str, WeakSet["Watching"]] = attrs.field(factory=dict, init=False)

    def discover(
        self,
        *,
        domain: str | None = None,
        limit: int | None = None,
        **criteria: Unpack[discovery.Criteria],
    ) -> RecordSearch:
        """Search a domain registry; nothing is sent before the first entry is wanted.

        Args:
            domain: Domain of the registry; None: the own one.
            limit: How many records a page has at most; None: as many as the registry likes.
            criteria: What all of the entries have.

        Raises:
            TypeError: A criterion is of a wrong kind, or unknown, or none is given.
            ValueError: A criterion is empty.
            BadUrlError: User, reporter or domain is no address.
            BadMessageError: The limit is none.
        """
        query = discovery.query_of(criteria)
        return RecordSearch(self.reader(domain), query.read(limit))

    def watch(
        self, *, domain: str | None = None, **criteria: Unpack[discovery.Criteria]
    ) -> "Watching":
        """Follow a search; nothing is sent before the first change is wanted.

        Args:
            domain: Domain of the registry; None: the own one.
            criteria: What all of the entries have.

        Raises:
            TypeError: A criterion is of a wrong kind, or unknown, or none is given.
            ValueError: A criterion is empty.
            BadUrlError: User, reporter or domain is no address.
        """
        query = discovery.query_of(criteria)
        return Watching(self, self.reader(domain), query.read())

    async def record(self, url: str, attribute: str | None = None) -> Json:
        """Read one record, or one attribute of it, in the registry of its domain (M-25).

        Args:
            url: Address of the hyperty or data object.
            attribute: Dotted path in the record; None: the whole record.

        If cancelled, nothing has changed.

        Raises:
            TypeError: The attribute is no text.
            ValueError: It is empty.
            BadUrlError: `url` is no address.
            SearchError: The registry refuses, or does not answer; 404: it has no such record, or
                the record lacks the attribute.
            ActorStoppedError: The runtime has closed.
        """
        check_attribute(attribute)
        address = canonical(url)
        read = write_body(ReadRecord(address, attribute=attribute))
        answer = await self.reader(domain_of(address)).read(read)
        value = answer.body.get("value")
        if answer.code == Code.TIMEOUT and isinstance(value, list) and value:
            return freeze(value[0])
        if answer.code > LAST_SUCCESS:
            raise SearchError(answer.code, reason_in(answer))
        return freeze(value)

    def reader(self, domain: str | None) -> RegistryReader:
        """Return a reader for the registry of a domain.

        Raises:
            TypeError: The domain is no text.
            BadUrlError: It is no domain.
        """
        if domain is not None and not isinstance(domain, str):
            raise TypeError(f"domain is a text, not {domain!r}")
        searched = self.domain if domain is None else domain_name(domain)
        return RegistryReader(
            searched, partial(self.ask, domain_registry(searched), MessageType.READ)
        )

    # ---- reports

    async def take_report(self, message: Message) -> bool:
        """Handle a report about a watched record (M-30); return whether the message was one.

        If cancelled, a subscription that nobody needs may stay until the next report.
        """
        if not self._watching or message.type is not MessageType.UPDATE:
            return False
        url = message.to.removesuffix(_STATUS)
        watching = self._watching.get(url)
        if url == message.to or watching is None:
            return False
        with suppress(BadMessageError):
            status = read_body(message, RecordChanged).value
            for each in watching:
                each.take_status(url, status)
        if not watching:
            await self._leave(url)
        return True

    async def sweep(self) -> None:
        """Unsubscribe the records that only abandoned `watch` iterators followed.

        If cancelled, some of the subscriptions may stay.
        """
        for url in [url for url, watching in self._watching.items() if not watching]:
            await self._leave(url)

    async def follow(self, url: str, watching: "Watching") -> None:
        """Subscribe to the status of a record.

        Args:
            url: Address of the record.
            watching: Gets the reports.

        If cancelled, the reports may come all the same.
        """
        watchers = self._watching.setdefault(url, WeakSet())
        watchers.add(watching)
        # A refusal shows in the next search.
        await self.post(self.registry, MessageType.SUBSCRIBE, _path(url))

    async def unfollow(self, url: str, watching: "Watching") -> None:
        """End the subscription to a record, unless other watchers need it. Idempotent.

        Args:
            url: Address of the record.
            watching: Got the reports.

        If cancelled, the subscription may stay until the next report.
        """
        watchers = self._watching.get(url)
        if watchers is not None:
            watchers.discard(watching)
            if not watchers:
                await self._leave(url)

    async def _leave(self, url: str) -> None:
        self._watching.pop(url, None)
        await self.post(self.registry, MessageType.UNSUBSCRIBE, _path(url))


def _has_none(answer: Message) -> bool:
    """Return whether the registry itself answered that it has no record; a router may say 404, too.

    The answers of registries have one fixed description, or none.
    """
    return answer.code == Code.NOT_FOUND and reason_in(answer) in {"", UNKNOWN.why}


def _path(url: str) -> JsonObject:
    return write_body(Path((f"{url}{_STATUS}",)))


@attrs.frozen
class _WatchPort(discovery.WatchPort):
    """Collects the changes and requests that the core of a watch produces, until the next call."""

    changes: deque[discovery.EntryChange] = attrs.field(factory=deque)
    orders: deque[tuple[str, str]] = attrs.field(factory=deque)

    @override
    def report(self, change: discovery.EntryChange) -> None:
        self.changes.append(change)

    @override
    def follow(self, url: str) -> None:
        self.orders.append(("follow", url))

    @override
    def leave(self, url: str) -> None:
        self.orders.append(("leave", url))

    @override
    def read(self, url: str) -> None:
        self.orders.append(("read", url))


@final
class Watching:
    """The changes of the results of a search: an asynchronous iterator and context manager.

    It begins with all entries of the search, each as `appeared`. Later registrations appear
    within `WATCH_PERIOD` seconds; the status of a known entry comes at once. A reader that is
    behind gets the latest status of each entry. The newest `WATCHED_ENTRIES` entries are known.
    The iteration ends with `aclose`, or with the runtime.

    Args:
        discoverer: Gets the reports.
        registry: Reads at the registry.
        search: The search.
    """

    def __init__(
        self, discoverer: Discoverer, registry: RegistryReader, search: ReadRecord
    ) -> None:
        self._discoverer: Final = discoverer
        self._registry: Final = registry
        self._search: Final = search
        self._port: Final = _WatchPort()
        self._core: Final = discovery.DiscoveryWatch(self._port)
        self._reports: dict[str, str] = {}
        self._has_work = trio.Event()
        self._due = -math.inf
        self._is_first = True
        self._is_closed = False

    @property
    def is_partial(self) -> bool:
        """Whether the search finds more entries than are known."""
        return self._core.is_partial

    def __aiter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def __anext__(self) -> discovery.EntryChange:
        """Return the next change; wait for it.

        If cancelled, the change is the next one of a later call.

        Raises:
            SearchError: The registry does not answer the first search, or refuses one; a later
                call asks again.
            ActorStoppedError: The runtime has closed.
        """
        await trio.lowlevel.checkpoint()
        while not self._is_closed:
            await self._perform()
            if self._port.changes:
                return self._port.changes.popleft()
            if self._reports:
                url, status = next(iter(self._reports.items()))
                del self._reports[url]
                self._core.take_status(url, status)
            elif trio.current_time() >= self._due:
                await self._search_again()
            else:
                self._has_work = trio.Event()
                with trio.move_on_at(self._due):
                    await self._has_work.wait()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the iteration and the subscriptions. Idempotent.

        If cancelled, subscriptions may stay until the next report of each.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        self._is_closed = True
        self._has_work.set()
        for url in self._core.urls:
            await self._discoverer.unfollow(url, self)

    def take_status(self, url: str, status: str) -> None:
        """Note the status of a record that a status event reports.

        Args:
            url: Address of the record.
            status: Its status.
        """
        self._reports.pop(url, None)
        self._reports[url] = status
        self._has_work.set()

    async def _perform(self) -> None:
        """Send the requests of the watch's core; if cancelled, the next call continues."""
        orders = self._port.orders
        while orders:
            match orders[0]:
                case "follow", url:
                    await self._discoverer.follow(url, self)
                case "leave", url:
                    await self._discoverer.unfollow(url, self)
                case _, url:
                    await self._read(url)
            orders.popleft()

    async def _search_again(self) -> None:
        await self._discoverer.sweep()
        try:
            entries = await RecordSearch(self._registry, self._search).first(WATCHED_ENTRIES + 1)
        except SearchError as error:
            if self._is_first or error.code in _LASTING:
                raise
            # The node may be coming back, and answer a later search.
            self._due = trio.current_time() + WATCH_PERIOD
            return
        self._is_first = False
        self._due = trio.current_time() + WATCH_PERIOD
        is_partial = len(entries) > WATCHED_ENTRIES
        self._core.take_search(entries[:WATCHED_ENTRIES], is_partial=is_partial)

    async def _read(self, url: str) -> None:
        """Read a record that the search does not find any more (M-25)."""
        answer = await self._registry.read(write_body(ReadRecord(url)))
        value = answer.body.get("value")
        entry = self._registry.entry(value[0] if isinstance(value, list) and value else value)
        if _has_none(answer) or (entry is not None and entry.url == url):
            self._core.take_record(url, entry)
