"""Invitations to observe objects reported here: the answers go to the reporter (M-33, M-34)."""

from typing import final

import trio

from actors.runtime.sync.context import SyncContext, code_in_use
from actors.runtime.sync.registration import SUBSCRIPTION
from fsm.engine import Step
from fsm.sync.invitations import InvitationsCore
from specs.bodies.sync import Invitation, InviteObservers
from specs.message import Message, MessageType, reason_in
from specs.reply_code import FIRST_FINAL
from transports.bodies import write_body


@final
class Invitations:
    """Hosts the core; invitations are posted, not awaited, so that each 1xx is seen."""

    def __init__(self, context: SyncContext) -> None:
        self._context = context
        self._core = InvitationsCore(self)
        self._requests: dict[tuple[str, str], list[tuple[Message, InviteObservers]]] = {}

    def deadline(self) -> float:
        """Return when `time_over` is due."""
        return self._core.deadline()

    def time_over(self) -> None:
        """Notify the reporters whose invitations were not answered."""
        self._core.time_over(trio.current_time())

    def invite(self, request: Message, body: InviteObservers) -> None:
        """Invite one observer for its reporter; both were checked.

        Args:
            request: The request.
            body: Body of the request.
        """
        (observer,) = body.authorise
        self._requests.setdefault((body.resource, observer), []).append((request, body))
        self._core.invite(body.resource, observer, trio.current_time())

    def take_answer(self, url: str, answer: Message) -> None:
        """Take an answer, provisional ones and the bus's own included.

        Args:
            url: Address of the object.
            answer: The answer.
        """
        why = reason_in(answer)
        self._core.take_answer(url, answer.from_, answer.code, why, trio.current_time())

    def withdraw(self, url: str) -> None:
        """End the open requests of an object that is deleted."""
        self._core.withdraw(url)

    def end_all(self, url: str) -> None:
        """End the invitations of an object without messages: all components are leaving."""
        for key in [key for key in self._requests if key[0] == url]:
            del self._requests[key]
        self._core.withdraw(url)

    # --- the port of the core

    def step(self, step: Step) -> None:
        """Trace a step."""
        self._context.step(step)

    def send_invitation(self, url: str, observer: str) -> None:
        """Pass the invitation on to the observer."""
        request, body = self._requests[url, observer][0]
        invitation = write_body(Invitation(request.from_, body.schema, body.value))
        sender, identity = f"{url}/{SUBSCRIPTION}", request.identity
        self._context.bus.send(
            self._context.request(MessageType.CREATE, observer, invitation, sender, identity)
        )

    def relay(self, url: str, observer: str, code: int, why: str) -> None:
        """Answer all requests to invite the observer."""
        requests = self._requests.get((url, observer), [])
        if code >= FIRST_FINAL:
            self._requests.pop((url, observer), None)
        more = {"description": why} if why else {}
        for request, _ in requests:
            self._context.answer(request, code_in_use(code), source=observer, **more)
