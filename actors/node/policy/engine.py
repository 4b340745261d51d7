"""The enforcement point: asks what policies decide of a message, and makes it so (POL-01).

Undecided is denied, with the cause in the log (POL-14); a permission whose obligation
cannot be fulfilled is a denial (I-K3); nothing applicable is what the node was told
(POL-15).
"""

from collections.abc import Callable
from functools import partial
from typing import Final, final

import attrs
import structlog
from typing_extensions import override

from actors.node.policy.store import PolicyStore
from actors.node.policy.tasks import STAMP, Order, Tasks
from actors.node.policy_hook import Asker, Decision, Policy, Ruling
from fsm.policy.explain import effective, missing
from fsm.policy.model import Book, Task
from fsm.policy.pdp import SILENT, Pdp, Verdict
from fsm.policy.request import Place, Request, domain
from fsm.policy.terms import Direction, Moment, Result
from specs.message import Message, instance_id

__all__ = ["PolicyEngine"]

_log = structlog.get_logger("actors.node")

_AUTH: Final = "auth"
_DEFAULT: Final = "default"
_UNDECIDED: Final = "the policy cannot decide about this message"
_UNFULFILLED: Final = "what the policy asks for along with it cannot be done"


@final
class PolicyEngine(Policy):
    """Judges by what the store holds when a message comes.

    Args:
        store: The policies.
        tasks: Does what decisions oblige to.
        place: Where messages are judged.
        clock: Seconds since the epoch.
    """

    def __init__(
        self, store: PolicyStore, tasks: Tasks, place: Place, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._tasks = tasks
        self._place = place
        self._clock = clock
        self._pdp = store.pdp
        self._rulings: dict[tuple[str, Result, bool], Ruling] = {}

    @override
    def judge(self, message: Message, asker: Asker) -> Ruling:
        # Taken once: a change that comes meanwhile is for the next message.
        pdp = self._store.pdp
        is_outgoing = domain(message.to) != self._place.domain
        if pdp.is_silent:
            return self._ruling(pdp, SILENT, is_outgoing)
        request = Request(message, asker.runtime, asker.identity, self._clock(), self._place)
        verdict = pdp.decide(request)
        if verdict.result is Result.INDETERMINATE:
            _tell_cause(request, verdict)
        ruling = self._ruling(pdp, verdict, is_outgoing)
        if verdict.tasks:
            ruling = self._fulfilled(request, ruling, verdict.tasks)
        return _unforged(message, ruling) if pdp.is_stamping else ruling

    def _ruling(self, pdp: Pdp, verdict: Verdict, is_outgoing: bool) -> Ruling:  # noqa: FBT001 - told
        """Return what follows from a verdict by itself: the same for many messages."""
        if pdp is not self._pdp:
            self._pdp = pdp
            self._rulings.clear()
        key = verdict.path, verdict.result, is_outgoing
        ruling = self._rulings.get(key)
        if ruling is None:
            ruling = self._rulings[key] = _ruling_of(pdp.book, verdict, is_outgoing)
        return ruling

    def _fulfilled(self, request: Request, ruling: Ruling, tasks: tuple[Task, ...]) -> Ruling:
        """Do what a decision obliges to; a permission that cannot be kept is none."""
        message, vouched = request.message, request.vouched
        user = None if vouched is None else vouched.user
        order = Order(message, ruling.decision, ruling.policy, user)
        failed = self._tasks.impossible(tasks) or self._tasks.do(tasks, order, Moment.BEFORE)
        if failed and ruling.decision is Decision.PERMIT:
            _log.warning("policy obligation not fulfilled", task=failed, policy=ruling.policy)
            return attrs.evolve(ruling, decision=Decision.DENY, why=_UNFULFILLED)
        is_late = any(task.when is Moment.AFTER for task in tasks)
        later = partial(self._tasks.do, tasks, order, Moment.AFTER) if is_late else None
        is_marked = any(task.do == STAMP for task in tasks)
        return attrs.evolve(
            ruling,
            obligations=tuple(_name(task) for task in tasks),
            after=later,
            marked=_marked(message) if is_marked else None,
        )


def _ruling_of(book: Book, verdict: Verdict, is_outgoing: bool) -> Ruling:  # noqa: FBT001 - told
    result = effective(verdict, book.default)
    return Ruling(
        Decision.PERMIT if result is Result.PERMIT else Decision.DENY,
        verdict.path or _DEFAULT,
        _UNDECIDED if verdict.result is Result.INDETERMINATE else verdict.why,
        version=book.version,
        direction=str(Direction.OUT if is_outgoing else Direction.IN),
    )


def _tell_cause(request: Request, verdict: Verdict) -> None:
    """Write why nothing could be decided (POL-14)."""
    _log.warning(
        "policy undecided",
        why=verdict.why,
        missing=", ".join(f"{name} ({why})" for name, why in missing(request).items()) or None,
        message=instance_id(request.message),
    )


def _name(task: Task) -> str:
    name = f"{task.do}:{task.name}" if task.name else task.do
    return f"{name}@after" if task.when is Moment.AFTER else name


def _marked(message: Message) -> Message:
    return attrs.evolve(message, body={**message.body, _AUTH: True})


def _unforged(message: Message, ruling: Ruling) -> Ruling:
    """Let nobody stamp its own message where policies stamp messages (POL-15)."""
    if ruling.marked is not None or message.body.get(_AUTH, False) is False:
        return ruling
    return attrs.evolve(ruling, marked=attrs.evolve(message, body={**message.body, _AUTH: False}))
