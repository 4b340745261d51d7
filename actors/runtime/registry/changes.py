"""What two registries tell each other over a live link: what lives where (P2P-23..26).

Each side asks the other as soon as the link is live for it, and is told the list of what
lives there and every change of it. Whoever is refused, or gets no answer, uses the link
all the same: it knows less of where entities live, and asks their records.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, assert_never, final

import attrs
import trio

from actors.kit.ids import IdSource
from actors.runtime.bus.ports import CorePort
from actors.runtime.hop_trace import HopTrace
from actors.runtime.registry.queries import RegistryTalk
from fsm.engine import Step
from fsm.registry import changes
from fsm.registry.changes import ChangesFollower, ChangesPublisher, changes_of, registry_of
from fsm.registry.resolve.effects import LinkDown, LinkGone, LinkUp
from fsm.registry.resolve.inputs import Listed
from fsm.registry.resolve.link_entry import LinkEntry
from fsm.registry.resolve.resolve import ResolveCore
from specs.addresses.address import last_segment
from specs.bodies.body import ListChange, Path
from specs.bodies.body import Listed as AddressesListed
from specs.bodies.word import Operation
from specs.errors import BadMessageError
from specs.message import Message, MessageType, reason_in, refuse
from specs.reply_code import LAST_SUCCESS, Code, DropReason
from transports.bodies import read_body, write_body

__all__ = ["ChangesTask", "RegistryChanges", "is_changes"]

_PART: Final = "changes"

ChangesTask: TypeAlias = Callable[[Awaitable[changes.SnapshotRead]], None]
"""Runs what takes time beside the registry's mailbox, and tells the registry the outcome."""


def is_changes(message: Message) -> bool:
    """Say whether an event tells what changes in a runtime, or a request is about that."""
    if message.is_event:
        return last_segment(message.to) == _PART
    resources = message.body.get("resources")
    first = resources[0] if isinstance(resources, list) and resources else None
    return isinstance(first, str) and last_segment(first) == _PART


@final
@attrs.define
class RegistryChanges:
    """Hosts both ends of the registries' talk; part of the registry's task.

    Attributes:
        runtime: The own one.
        ways: The links there are, and where entities live.
        learn: Takes what was learnt of where entities live.
        answer: Sends an answer by the way known now, before what is told after it.
    """

    runtime: str
    ways: ResolveCore
    talk: RegistryTalk
    port: CorePort
    ids: IdSource
    hops: HopTrace
    task: ChangesTask
    learn: Callable[[Listed], Awaitable[None]]
    answer: Callable[[Message], Awaitable[None]]
    publisher: ChangesPublisher = attrs.field(init=False)
    follower: ChangesFollower = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.publisher = ChangesPublisher(self.runtime)
        self.follower = ChangesFollower(self.runtime)

    # ---- asked and told

    async def asked(self, request: Message) -> None:
        """Let the other registry follow, or end that; nobody else may (M-08, M-10)."""
        entry = self._speaker(request)
        try:
            resources = read_body(request, Path).resources
        except BadMessageError as error:
            await self.port.post(refuse(request, error.code, error.reason))
            return
        if entry is None:
            why = "what lives here is told to another registry, over a link to its runtime"
            await self.port.post(refuse(request, Code.FORBIDDEN, why))
        elif resources != (changes_of(self.runtime),):
            await self.port.post(refuse(request, Code.NOT_FOUND, "nothing else is told here"))
        elif request.type is MessageType.SUBSCRIBE:
            await self.feed(changes.Asked(request, entry.remote, entry.link))
        else:
            await self.feed(changes.LeaveAsked(request, entry.remote))

    async def heard(self, event: Message) -> None:
        """Take what another registry tells (M-09); what is not its own word is dropped."""
        entry = self._speaker(event)
        if entry is None or event.to != changes_of(entry.remote):
            self.hops.dropped(event, DropReason.FORGED_STATUS)
            return
        try:
            told = read_body(event, ListChange)
        except BadMessageError:
            self.hops.dropped(event, DropReason.MALFORMED)
            return
        operation = Operation(told.operation)
        await self.feed(changes.Reported(entry.remote, entry.link, operation, told.value))

    def _speaker(self, message: Message) -> LinkEntry | None:
        """Return the link by which another registry speaks for its own runtime; None: it does not.

        The bus stamped the link's address last.
        """
        by = message.via[-1:]
        found = next((entry for entry in self.ways.links() if (entry.link,) == by), None)
        is_own_word = found is not None and message.from_ == registry_of(found.remote)
        return found if is_own_word else None

    # ---- done

    async def feed(self, happened: changes.Input) -> None:
        """Take what happened, and do what follows."""
        for effect in self._decide(happened):
            await self._perform(effect)

    def _decide(self, happened: changes.Input) -> list[changes.Effect]:
        now = trio.current_time()
        match happened:
            case LinkUp() | LinkDown() | LinkGone():
                published = self.publisher.feed(happened, now)
                return [*published, *self.follower.feed(happened)]
            case changes.SnapshotRead() | changes.Reported():
                return self.follower.feed(happened)
            case _:
                return self.publisher.feed(happened, now)

    def end(self, happened: LinkGone) -> None:
        """Tell how it ends with a link, when nothing can be done any more."""
        for effect in self._decide(happened):
            if isinstance(effect, Step):
                self.hops.step(effect)

    def deadline(self) -> float:
        """Return when to be fed `TimePassed`."""
        return self.publisher.deadline()

    async def _perform(self, effect: changes.Effect) -> None:
        match effect:
            case Step():
                self.hops.step(effect)
            case Listed():
                await self.learn(effect)
            case changes.Ask(remote, ask):
                self.task(self._snapshot(remote, ask))
            case changes.Answer(message):
                await self.answer(message)
            case changes.Publish(operation, url):
                await self.port.post(self._change(operation, url))
            case _:
                await self._set_path(effect)

    async def _set_path(
        self, effect: changes.Follow | changes.Unfollow | changes.Listen | changes.Unlisten
    ) -> None:
        match effect:
            case changes.Follow(link):
                await self.port.send_out(changes_of(self.runtime), link)
            case changes.Unfollow(link):
                await self.port.keep_in(changes_of(self.runtime), link)
            case changes.Listen(remote):
                await self.port.follow(changes_of(remote), self.port.url)
            case changes.Unlisten(remote):
                await self.port.unfollow(changes_of(remote), self.port.url)
            case _:
                assert_never(effect)

    def _change(self, operation: Operation, url: str) -> Message:
        sender, to = self.port.url, changes_of(self.runtime)
        body = write_body(ListChange((url,), operation.value))
        return Message(self.ids.next(sender), MessageType.UPDATE, sender, to, body)

    async def _snapshot(self, remote: str, ask: int) -> changes.SnapshotRead:
        answer = await self.talk.follow_changes(remote)
        if answer.code > LAST_SUCCESS:
            return changes.SnapshotRead(remote, ask, None, reason_in(answer))
        try:
            return changes.SnapshotRead(remote, ask, read_body(answer, AddressesListed).value)
        except BadMessageError as error:
            return changes.SnapshotRead(remote, ask, None, error.reason)
