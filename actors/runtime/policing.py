"""The policy engine of a runtime, and the component `R/pep` that manages it (POL-01, POL-05).

The runtime's own program and its own user manage the policies. A hyperty of the runtime does not,
although it has the same user: the policies are there to restrict it.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from typing_extensions import override

from actors.kit.supervision.actor import Actor, ActorRef, Delivery, Reply
from actors.kit.supervision.supervisor import ChildSpec, Supervisor
from actors.policy.engine import PolicyEngine, Ruling, Tasks
from actors.policy.management import PolicyManagement, change_answer, unusable
from actors.policy.store import PolicyConfig, PolicyFileError, PolicyStore, reload
from actors.runtime.bus.ports import CorePort
from actors.runtime.own_sender import OwnSender
from actors.runtime.policy import Judge
from fsm.policy.attributes import Locals, Passing, Place, Request
from fsm.policy.model import Book
from specs.addresses.address import is_below
from specs.bodies.policy import UNTIL_RELOAD, UNTIL_STOP
from specs.errors import BadMessageError
from specs.message import Message, refuse
from specs.reply_code import Code
from specs.routing import Direction

_Message: TypeAlias = Delivery | Reply[str]
"""A message to `R/pep`; or a call to read the files again, answered with the error or ''."""

PEP: Final = "pep"
"""Name of the component of the runtime that manages its policies (ADR-03)."""


class Policing(Judge):
    """Judges the messages of a runtime by its policies and the policy engine.

    Args:
        config: The configured policies.
        domain: Domain of the runtime.
        user: Owner of its hyperties by its configuration; None: not configured.
        own: The identity of the runtime, as its node states it.
        clock: Returns seconds since the epoch.

    Raises:
        PolicyFileError: A file cannot be used: the runtime must not start.
    """

    def __init__(
        self,
        config: PolicyConfig,
        domain: str,
        user: str | None,
        own: OwnSender,
        clock: Callable[[], float],
    ) -> None:
        self.store = PolicyStore(config)
        self.tasks = Tasks()
        self._engine = PolicyEngine(self.store, self.tasks)
        self._place = Place(domain, config.zone)
        self._configured = user
        self._own = own
        self._clock = clock
        self._part: ActorRef[_Message] | None = None

    @property
    def user(self) -> str | None:
        """Address of the user; None: the runtime has none."""
        return self._configured or self._own.identity.user

    def may_manage(self, message: Message) -> bool:
        """Return whether a sender may manage the policies: the program of the runtime, or its user.

        Args:
            message: The message of the sender, whose address has been checked.
        """
        runtime = self._own.identity.runtime
        if is_below(message.from_, runtime):
            return True
        sender = message.identity
        if sender is None or sender.user is None or sender.runtime == runtime:
            return False
        return sender.user == self.user

    @override
    def judge(self, message: Message, by: str, direction: Direction, here: Locals) -> Ruling:
        is_outgoing = direction is Direction.OUTGOING
        unread = self._engine.unread(is_outgoing=is_outgoing)
        if unread is not None:
            return unread
        sender = message.identity or (self._own.identity if is_outgoing else None)
        request = Request(
            message,
            None if sender is None else sender.runtime,
            None,
            self._clock(),
            self._place,
            sender=sender,
            passing=Passing(is_outgoing, self.user, here),
        )
        return self._engine.judge(request)

    async def start(self, supervisor: Supervisor, port: CorePort) -> None:
        """Start the component that manages the policies.

        Args:
            supervisor: Supervisor of the started actor.
            port: The port of `R/pep`.
        """
        self._part = await supervisor.start_child(ChildSpec(PEP, partial(PolicyPart, self, port)))

    async def reload(self) -> str:
        """Reload the files; return the reason of a failure, or an empty text.

        If cancelled, the files may be reloaded nevertheless.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        if self._part is None:
            return "the runtime is starting"
        return await self._part.ask(lambda reply: reply)


class PolicyPart(Actor[_Message]):
    """Answers requests to `R/pep` and reads the policy files again, one request at a time."""

    def __init__(self, policing: Policing, port: CorePort) -> None:
        self._store = policing.store
        self._management = PolicyManagement(policing.store, policing.tasks.counts)
        self._may_manage = policing.may_manage
        self._port = port

    @override
    async def start(self) -> None:
        await self._port.add_listener(self._port.url, self.me)

    @override
    async def handle(self, message: _Message) -> None:
        if not isinstance(message, Delivery):
            outcome = await reload(self._store)
            message.send(str(outcome) if isinstance(outcome, PolicyFileError) else "")
        elif message.message.is_request:
            await self._port.post(await self._answer(message.message))

    async def _answer(self, request: Message) -> Message:
        if not self._may_manage(request):
            why = "only the program and the user of a runtime manage its policies"
            return refuse(request, Code.FORBIDDEN, why)
        source = request.from_ if request.identity is None else request.identity.user
        try:
            outcome = self._management.answer(request, source or request.from_)
        except BadMessageError as error:
            return refuse(request, Code.MALFORMED, str(error))
        match outcome:
            case Message():
                return outcome
            case Book():
                self._store.adopt(outcome)
                return change_answer(request, outcome, UNTIL_STOP)
            case None:
                return await self._reload(request)

    async def _reload(self, request: Message) -> Message:
        outcome = await reload(self._store)
        if isinstance(outcome, PolicyFileError):
            return unusable(request, outcome)
        return change_answer(request, outcome, UNTIL_RELOAD)
