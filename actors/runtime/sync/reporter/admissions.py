"""Who observes what is reported here: asked, invited, let in and expelled (M-33..M-39, M-45)."""

from typing import final

from actors.runtime.sync.context import observer_of
from actors.runtime.sync.messages import Decided, SenderChecked
from actors.runtime.sync.registration import CHANGES
from actors.runtime.sync.reporter.cores import ReportedCores, ReporterServices
from actors.runtime.sync.reporter.observers import OBSERVERS
from actors.runtime.sync.reporter.pending import told_by
from fsm.sync import reporter_io as core
from fsm.sync.reporter import ReporterCore
from specs.bodies.object import AllowObserver, ExpelObserver
from specs.bodies.sync import InviteObservers, Subscription
from specs.child import parent_of
from specs.message import Message, MessageType
from specs.reply_code import Code
from specs.trace import Op
from transports.bodies import read_body, write_body

__all__ = ["Admissions"]


@final
class Admissions:
    """Takes what observers ask of objects, and what reporters want of observers."""

    def __init__(self, services: ReporterServices, cores: ReportedCores) -> None:
        self._services = services
        self._context = services.context
        self._cores = cores

    # --- reporters ------------------------------------------------------------------------

    async def invite(self, request: Message, body: InviteObservers) -> None:
        """Invite one observer (M-33)."""
        reported = self._cores.find(body.resource)
        if reported is None:
            await self._context.refuse(request, Code.NOT_FOUND, "no such object")
        elif reported.snapshot.reporter != request.from_:
            await self._context.refuse(request, Code.FORBIDDEN, "only the reporter invites")
        elif not await self._services.stored.refused(request, body.resource):
            effects = reported.feed(core.Authorised(body.authorise[0]))
            if not _is_refused(effects):
                self._context.allowed_observer(
                    Op.ADD, body.resource, body.authorise[0], request.from_
                )
            await self._cores.perform(body.resource, request, effects)
            if not _is_refused(effects):
                await self._services.invitations.send(request, body)

    async def answered(self, url: str, answer: Message) -> None:
        """Take an answer to an invitation (M-34), or to the word that an object is gone."""
        if answer.from_ != f"{url}/{CHANGES}":
            await self._services.invitations.answered(url, answer)
        elif answer.is_final:
            await self._cores.feed(url, told_by(answer))

    async def allow(self, request: Message, body: AllowObserver) -> None:
        """Let an observer in without a question, on behalf of the reporter."""
        allowing = core.AllowAsked(request.from_, body.observer)
        await self._obey(request, body.resource, allowing)

    async def expel(self, request: Message, body: ExpelObserver) -> None:
        """Expel an observer, on behalf of the reporter (SYN-21)."""
        expelling = core.ExpelAsked(request.from_, body.observer)
        await self._obey(request, body.resource, expelling)

    async def _obey(
        self, request: Message, url: str, asked: core.AllowAsked | core.ExpelAsked
    ) -> None:
        """Do what a reporter wants; it is traced if it is done (I-D9)."""
        reported = self._cores.all.get(url)
        if reported is None:
            await self._context.refuse(request, Code.NOT_FOUND, "no such object")
        elif not await self._services.stored.refused(request, url):
            effects = reported.feed(asked)
            if not _is_refused(effects):
                done = Op.ADD if isinstance(asked, core.AllowAsked) else Op.DEL
                self._context.allowed_observer(done, url, asked.observer, asked.by)
            await self._cores.perform(url, request, effects)

    async def decided(self, done: Decided) -> None:
        """Take the reporter's decision about an observer."""
        await self._cores.feed(done.url, done.decision)

    # --- observers ------------------------------------------------------------------------

    async def asked(self, url: str, request: Message) -> None:
        """Take a request to one of the objects; to its observers there are no events but ours."""
        reported = self._cores.all[url]
        if request.is_request and await self._services.stored.refused(request, url):
            return
        if parent_of(request.to) == url:
            await self._services.children.said(reported, request)
        elif request.to != f"{url}/{OBSERVERS}":
            if not await self._services.links.is_looked_at(url, request):
                await self._asked(url, reported, request)
        elif request.is_request:
            await self._services.observers.asked(url, reported, request)

    async def _asked(self, url: str, reported: ReporterCore, request: Message) -> None:
        match request.type:
            case MessageType.SUBSCRIBE:
                if not await self._services.links.sent_on(url, observer_of(request), request):
                    await self._subscribe(url, request)
            case MessageType.UNSUBSCRIBE:
                await self._unsubscribe(url, reported, request)
            case MessageType.READ:
                await self._read(reported, request)
            case _:
                await self._context.refuse(request, Code.MALFORMED, "an object does not do this")

    async def _unsubscribe(self, url: str, reported: ReporterCore, request: Message) -> None:
        """Let an observer go; while the object is handed over it is told to ask again."""
        left = core.UnsubscribeAsked(observer_of(request), request.from_)
        effects = reported.feed(left)
        is_gone = not _is_refused(effects)
        if is_gone:
            self._services.links.left(url, left.observer)
        await self._cores.perform(url, request, effects)
        if is_gone:
            await self._context.answer(request, Code.OK)

    async def _subscribe(self, url: str, request: Message) -> None:
        observer, reported = observer_of(request), self._cores.all[url]
        if await self._services.stored.is_kept_out(request, observer, reported):
            return
        if self._services.pending.add(url, observer, request):
            body = read_body(request, Subscription)
            lease = self._context.lease if body.renews else None
            asked = core.SubscribeAsked(observer, request.from_, lease, body.version)
            await self._cores.perform(url, request, reported.feed(asked))
        else:
            why = "its requests wait for the reporter already"
            await self._context.refuse(request, Code.TOO_LARGE, why)

    async def sender_checked(self, checked: SenderChecked) -> None:
        """Go on with an observer that asked by a link, or send it to the node."""
        if checked.request.type is not MessageType.SUBSCRIBE:
            await self._looked_at(checked)
            return
        if not await self._services.links.is_admitted(observer_of(checked.request), checked):
            return
        if checked.url in self._cores.all:
            await self._subscribe(checked.url, checked.request)
        else:
            await self._context.refuse(checked.request, Code.NOT_FOUND, "no such object")

    async def _looked_at(self, checked: SenderChecked) -> None:
        """Let who asked by a link leave or read, if it is who it says (I-D1, S3)."""
        if not await self._services.links.is_proven(checked):
            return
        reported = self._cores.all.get(checked.url)
        if reported is None:
            # Elsewhere by now, or gone: whoever asks again hears which.
            await self._context.refuse(checked.request, Code.UNAVAILABLE, "it was here before")
        else:
            await self._asked(checked.url, reported, checked.request)

    async def _read(self, reported: ReporterCore, request: Message) -> None:
        if reported.is_deleted:
            await self._context.refuse(request, Code.NOT_FOUND, "no such object")
        elif reported.may_read(request.from_):
            shown = self._services.children.with_children(reported.snapshot)
            await self._context.answer(request, Code.OK, value=write_body(shown))
        else:
            await self._context.refuse(request, Code.UNAUTHENTICATED, "not an observer")


def _is_refused(effects: list[core.ReporterEffect]) -> bool:
    return any(isinstance(each, core.Refused) for each in effects)
