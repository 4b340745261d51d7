"""The registrations that are followed: what is asked, set, and told of them (REG-16).

A component of the runtime asks `R/registry`: `subscribe` or `unsubscribe`, with one
`<url>/registration` in `resources`. It is answered when the path stands at the node of
the record's domain, and from then on is delivered what that domain's registry tells of
the record (M-30); so is the registry, which forgets what it remembered of it.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias, assert_never, final

import attrs

from actors.runtime.bus.ports import CorePort
from actors.runtime.hop_trace import HopTrace
from actors.runtime.registry.queries import RegistryTalk
from fsm.registry.record_watch import (
    Answer,
    Follow,
    Left,
    NodeForgot,
    RecordWatch,
    RenewWatch,
    SetWatch,
    Unfollow,
    Unwatch,
    UnwatchRecord,
    Watch,
    WatchEffect,
    WatchRemoved,
    WatchSet,
)
from fsm.registry.resolve.inputs import RecordReported
from fsm.registry.resolve.resolve import ResolveCore
from specs.addresses.address import is_backend
from specs.bodies.body import Path, RecordChanged
from specs.bodies.word import RecordStatus
from specs.errors import BadMessageError
from specs.message import Message, MessageType, refuse
from specs.reply_code import Code, DropReason
from transports.bodies import read_body

__all__ = ["RegistrationWatch", "WatchTask", "is_registration"]

_PART = "/registration"

WatchTask: TypeAlias = Callable[[Awaitable[WatchSet | WatchRemoved]], None]
"""Runs what takes time beside the registry's mailbox, and tells the registry the outcome."""


def is_registration(address: str) -> bool:
    """Say whether the status of a record is told at this address."""
    return address.endswith(_PART)


@final
@attrs.define
class RegistrationWatch:
    """Hosts the table of records that are followed; part of the registry's task.

    Attributes:
        ways: Which node leads to a record's domain, and by which stub.
    """

    ways: ResolveCore
    talk: RegistryTalk
    port: CorePort
    hops: HopTrace
    task: WatchTask
    core: RecordWatch = attrs.field(factory=RecordWatch)

    # ---- asked

    async def asked(self, request: Message) -> None:
        """Follow a record for a component of this runtime, or end that."""
        url = await self._named(request)
        if url is None:
            return
        is_wish = request.type is MessageType.SUBSCRIBE
        await self.feed(Watch(request, url) if is_wish else Unwatch(request, url))

    async def _named(self, request: Message) -> str | None:
        """Return the record a request is about; one that may not ask is refused."""
        if not self.ways.is_local(request.from_):
            why = "a registry follows records for its own runtime only"
            await self.port.post(refuse(request, Code.FORBIDDEN, why))
            return None
        try:
            return _record_in(read_body(request, Path))
        except BadMessageError as error:
            await self.port.post(refuse(request, error.code, error.reason))
            return None

    # ---- told

    def heard(self, event: Message) -> RecordReported | None:
        """Take a notification (M-30); one that is not the registry's own word is dropped."""
        url = event.to.removesuffix(_PART)
        reason = self._objection(event, url)
        if reason is None:
            try:
                return RecordReported(url, RecordStatus(read_body(event, RecordChanged).value))
            except BadMessageError:
                reason = DropReason.MALFORMED
        self.hops.dropped(event, reason)
        return None

    def _objection(self, event: Message, url: str) -> DropReason | None:
        if url not in self.core:
            return DropReason.UNSUBSCRIBED
        # The bus has seen that it names the right registry, and came from a node; the stub
        # that it came by, the last in `via`, tells from which.
        is_by_node = event.via[-1:] == (self.ways.node_stub(url),)
        return None if is_by_node else DropReason.FORGED_STATUS

    async def node_forgot(self, domain: str) -> tuple[RecordReported, ...]:
        """Set the paths again that a node has lost; what it would have told is unknown."""
        urls = [url for url in self.core.urls if self.ways.node_of(url) == domain]
        await self.feed(NodeForgot(frozenset(urls)))
        return tuple(RecordReported(url, None) for url in urls)

    # ---- done

    async def feed(
        self, happened: Watch | Unwatch | Left | WatchSet | WatchRemoved | NodeForgot
    ) -> None:
        """Take what happened, and do what follows."""
        for effect in self.core.feed(happened):
            await self._perform(effect)

    async def _perform(self, effect: WatchEffect) -> None:
        match effect:
            case Follow(url, by):
                await self.port.follow(f"{url}{_PART}", by or self.port.url)
            case Unfollow(url, by):
                await self.port.unfollow(f"{url}{_PART}", by or self.port.url)
            case Answer(message):
                await self.port.post(message)
            case SetWatch() | RenewWatch() | UnwatchRecord():
                self.task(self._path(effect))
            case _:
                assert_never(effect)

    async def _path(self, effect: SetWatch | RenewWatch | UnwatchRecord) -> WatchSet | WatchRemoved:
        url, node = effect.url, self.ways.node_of(effect.url)
        match effect:
            case SetWatch():
                return WatchSet(url, await self.talk.watch(f"{url}{_PART}", node))
            case RenewWatch():
                return WatchSet(url, await self.talk.renew_watch(f"{url}{_PART}", node))
            case UnwatchRecord():
                await self.talk.unwatch(f"{url}{_PART}", node)
                return WatchRemoved(url)
            case _:
                assert_never(effect)


def _record_in(path: Path) -> str:
    """Return the record whose status is asked for.

    Raises:
        BadMessageError: It is none, or there are several.
    """
    named, *others = (*path.resources, "")
    if len(others) != 1 or not is_registration(named) or is_backend(named):
        raise BadMessageError("name one resource: an address with /registration behind it")
    return named.removesuffix(_PART)
