"""The invitations a sync manager has sent: each answer goes to the reporter, too (M-33, M-34)."""

from typing import assert_never, final

import trio

from actors.runtime.sync.context import SyncContext, code_in_use
from actors.runtime.sync.presence.registration import SUBSCRIPTION
from fsm.engine import Step
from fsm.sync.invitations import (
    AnswerRelayed,
    InvitationEffect,
    InvitationInput,
    InvitationsCore,
    InviteAsked,
    InviteeAnswered,
    ObjectGone,
    SendInvitation,
    SilenceEnded,
)
from specs.bodies.sync import Invitation, InviteObservers
from specs.message import Message, MessageType, reason_in
from specs.reply_code import FIRST_FINAL
from transports.bodies import write_body

__all__ = ["Invitations"]


@final
class Invitations:
    """Hosts the core; invitations are posted, not awaited, so that each 1xx is seen."""

    def __init__(self, context: SyncContext) -> None:
        self._context = context
        self._core = InvitationsCore()
        self._wishes: dict[tuple[str, str], list[tuple[Message, InviteObservers]]] = {}

    def deadline(self) -> float:
        """Return when `silence_ended` is due."""
        return self._core.deadline()

    async def silence_ended(self) -> None:
        """Tell the reporters whose invitations nobody answered."""
        await self._feed(SilenceEnded())

    async def send(self, wish: Message, body: InviteObservers) -> None:
        """Invite one observer for its reporter; both were checked."""
        (observer,) = body.authorise
        self._wishes.setdefault((body.resource, observer), []).append((wish, body))
        await self._feed(InviteAsked(body.resource, observer))

    async def answered(self, url: str, answer: Message) -> None:
        """Take an answer, provisional ones and the bus's own included."""
        told = InviteeAnswered(url, answer.from_, answer.code, reason_in(answer))
        await self._feed(told)

    async def object_gone(self, url: str) -> None:
        """End what is under way for an object that is deleted."""
        await self._feed(ObjectGone(url))

    def let_go(self, url: str) -> None:
        """End it without a word: everybody is leaving."""
        for effect in self._core.feed(ObjectGone(url), trio.current_time()):
            if isinstance(effect, Step):
                self._context.step(effect)

    async def _feed(self, happened: InvitationInput) -> None:
        for effect in self._core.feed(happened, trio.current_time()):
            await self._perform(effect)

    async def _perform(self, effect: InvitationEffect) -> None:
        match effect:
            case Step():
                self._context.step(effect)
            case SendInvitation(url, observer):
                wish, body = self._wishes[url, observer][0]
                invitation = write_body(Invitation(wish.from_, body.schema, body.value))
                sender = f"{url}/{SUBSCRIPTION}"
                asked = self._context.request(MessageType.CREATE, observer, invitation, sender)
                await self._context.bus.post(asked)
            case AnswerRelayed():
                await self._relay(effect)
            case _:
                assert_never(effect)

    async def _relay(self, told: AnswerRelayed) -> None:
        key = told.url, told.observer
        wishes = self._wishes.get(key, [])
        if told.code >= FIRST_FINAL:
            self._wishes.pop(key, None)
        code = code_in_use(told.code)
        more = {"description": told.why} if told.why else {}
        for wish, _ in wishes:
            await self._context.answer(wish, code, source=told.observer, **more)
