"""The policy engine: decisions by the stored policies, and their obligations.

A message that no policy decides is denied, with the cause in the log (POL-14). A permission
whose obligation cannot be fulfilled is a denial (I-K3). The configuration says what happens if no
policy applies (POL-15).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias

import attrs

from actors.kit.log import get_logger
from actors.kit.trace import Hop
from actors.kit.trace import Ruling as TraceRuling
from actors.policy.store import PolicyStore
from fsm.limits.shares import Memory
from fsm.policy.attributes import Request
from fsm.policy.explain import TASKS, effective, missing
from fsm.policy.model import Book, Task
from fsm.policy.pdp import SILENT, Pdp, Verdict
from fsm.policy.terms import Direction, Moment, Result
from specs.limits.node import MAX_POLICY_COUNTERS
from specs.limits.protocol import TRACE_PLACES, TRACE_PLACES_BYTES
from specs.message import DURABLE, Message, instance_id, position_of

# The ruling of an enforcement point on one message (POL-01).


class Decision(StrEnum):
    """Decision of a policy engine about a message."""

    PERMIT = "permit"
    DENY = "deny"


@attrs.frozen
class Ruling:
    """Decision of the policy engine about a message, with its reason and its effects.

    Attributes:
        obligations: Executed obligations, for the trace (I-K3).
        version: Version of the policies that decided; None: they have none.
        direction: Whether the message goes `out`, or comes `in` (POL-17).
        marked: The message to forward, if the policies change it (POL-13).
        after: Action to run once after the message was forwarded or refused.
    """

    decision: Decision
    policy: str
    why: str = ""
    obligations: tuple[str, ...] = ()
    version: int | None = None
    direction: str = "in"
    marked: Message | None = None
    after: Callable[[], object] | None = None


_RulingKey: TypeAlias = tuple[str, str, str, int | None, tuple[str, ...], str]


class RulingHops:
    """Factory of trace records for policy decisions: equal decisions share one record."""

    def __init__(self, actor: str) -> None:
        """Create the object.

        Args:
            actor: Name of the reporting actor.
        """
        self._actor = actor
        self._known: Final = Memory[_RulingKey, Hop](TRACE_PLACES, TRACE_PLACES_BYTES)

    def of(self, ruling: Ruling, why: str = "") -> Hop:
        """Return the trace record of a policy decision.

        Args:
            ruling: The ruling.
            why: The reason; empty: it is not recorded.
        """
        key = (
            ruling.direction, ruling.decision, ruling.policy, ruling.version,
            ruling.obligations, why,
        )  # fmt: skip
        known = self._known.get(key)
        if known is not None:
            return known
        fields: TraceRuling = {
            "direction": ruling.direction,
            "decision": ruling.decision,
            "policy": ruling.policy or None,
            "version": ruling.version,
            "obligations": ",".join(ruling.obligations) or None,
            "why": why or None,
        }
        texts = (ruling.direction, ruling.decision, ruling.policy, why, *ruling.obligations)
        return self._known.keep(key, Hop(self._actor, (), fields), texts)


_log = get_logger("actors.policy")


class Tasks:
    """Executor of the obligations and advice that belong to policy decisions.

    Attributes:
        counts: Values of the counters of `count`, by name.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self.counts = MappingProxyType(self._counts)

    def do(self, tasks: Sequence[Task], request: Request, ruling: Ruling, when: Moment) -> str:
        """Execute obligations and advice; return the first failed obligation, or an empty text.

        A failed task does not prevent the others.

        Args:
            tasks: Obligations and advice of the decision.
            request: The message.
            ruling: The decision about it.
            when: Whether to execute those before or those after the message is forwarded.
        """
        failed = ""
        for task in tasks:
            if task.when is when and not self._do(task, request, ruling):
                _log.warning(
                    "policy task failed",
                    task=task.do,
                    policy=ruling.policy,
                    advice=task.is_advice,
                    message=instance_id(request.message),
                )
                if not task.is_advice:
                    failed = failed or task.do
        return failed

    def impossible(self, tasks: Sequence[Task]) -> str:
        """Return the first obligation that cannot be fulfilled; empty: all can be fulfilled."""
        unknown = (task.do for task in tasks if not task.is_advice and task.do not in TASKS)
        return next(unknown, "")

    def _do(self, task: Task, request: Request, ruling: Ruling) -> bool:
        match task.do:
            case "log":
                _log_decision(task, request, ruling)
            case "count":
                return self._count(task.name)
            case "stamp" | "durable":
                pass
            case _:
                return False
        return True

    def _count(self, name: str) -> bool:
        if name not in self._counts and len(self._counts) >= MAX_POLICY_COUNTERS:
            return False
        self._counts[name] += 1
        return True


def _log_decision(task: Task, request: Request, ruling: Ruling) -> None:
    """Log a decision, without the body of the message."""
    message = request.message
    _log.warning(
        "policy",
        decision=ruling.decision,
        policy=ruling.policy,
        text=task.text or None,
        type=message.type.value,
        from_=message.from_,
        to=message.to,
        id=message.id,
        user=request.user,
    )


_AUTH: Final = "auth"
_MARKS: Final = MappingProxyType({"stamp": _AUTH, "durable": DURABLE})
"""Tasks of the enforcement point itself, and the key of a body that each sets."""

_DEFAULT: Final = "default"
_UNDECIDED: Final = "the policy cannot decide about this message"
_UNFULFILLED: Final = "an obligation of the policy cannot be fulfilled"


class PolicyEngine:
    """Policy engine of a node or runtime: judges each message by the current policies.

    Args:
        store: Store of the policies.
        tasks: Executes the obligations of decisions.
    """

    def __init__(self, store: PolicyStore, tasks: Tasks) -> None:
        self._store = store
        self._tasks = tasks
        self._pdp = store.pdp
        self._rulings: dict[tuple[str, Result, bool], Ruling] = {}

    def unread(self, *, is_outgoing: bool) -> Ruling | None:
        """Return the common decision on all messages of a direction; None: each must be judged.

        Args:
            is_outgoing: Whether the messages are going out.
        """
        pdp = self._store.pdp
        return self._ruling(pdp, SILENT, is_outgoing) if pdp.is_silent else None

    def judge(self, request: Request) -> Ruling:
        """Judge a message by the policies in effect.

        Args:
            request: The message and its attributes.
        """
        # Read once: a concurrent change applies to the next message.
        pdp = self._store.pdp
        verdict = pdp.decide(request)
        if verdict.result is Result.INDETERMINATE:
            _add_cause(request, verdict)
        ruling = self._ruling(pdp, verdict, request.is_outgoing)
        if verdict.tasks:
            ruling = self._fulfil(request, ruling, verdict.tasks)
        return _remove_forged(request.message, ruling) if pdp.is_stamping else ruling

    def _ruling(self, pdp: Pdp, verdict: Verdict, is_outgoing: bool) -> Ruling:  # noqa: FBT001 - passed on
        """Return the decision for a result of the policies, before obligations are executed."""
        if pdp is not self._pdp:
            self._pdp = pdp
            self._rulings.clear()
        key = verdict.path, verdict.result, is_outgoing
        ruling = self._rulings.get(key)
        if ruling is None:
            ruling = self._rulings[key] = _ruling_of(pdp.book, verdict, is_outgoing)
        return ruling

    def _fulfil(self, request: Request, ruling: Ruling, tasks: tuple[Task, ...]) -> Ruling:
        """Execute the obligations of a decision; a permission becomes a denial if one fails."""
        message = request.message
        do = partial(self._tasks.do, tasks, request, ruling)
        failed = self._tasks.impossible(tasks) or do(Moment.BEFORE)
        if failed and ruling.decision is Decision.PERMIT:
            _log.warning("policy obligation not fulfilled", task=failed, policy=ruling.policy)
            return attrs.evolve(ruling, decision=Decision.DENY, why=_UNFULFILLED)
        is_late = any(task.when is Moment.AFTER for task in tasks)
        later = partial(do, Moment.AFTER) if is_late else None
        marks = {_MARKS[task.do]: True for task in tasks if task.do in _MARKS}
        if marks and self._pdp.is_stamping and _AUTH in message.body:
            marks = {_AUTH: False, **marks}
        return attrs.evolve(
            ruling,
            obligations=tuple(_name(task) for task in tasks),
            after=later,
            marked=_add_marks(message, marks) if marks else None,
        )


def _ruling_of(book: Book, verdict: Verdict, is_outgoing: bool) -> Ruling:  # noqa: FBT001 - passed on
    result = effective(verdict, book.default)
    return Ruling(
        Decision.PERMIT if result is Result.PERMIT else Decision.DENY,
        verdict.path or _DEFAULT,
        _UNDECIDED if verdict.result is Result.INDETERMINATE else verdict.why,
        version=book.version,
        direction=str(Direction.OUT if is_outgoing else Direction.IN),
    )


def _add_cause(request: Request, verdict: Verdict) -> None:
    """Log why the policies could not be evaluated for a message (POL-14)."""
    _log.warning(
        "policy undecided",
        why=verdict.why,
        missing=", ".join(f"{name} ({why})" for name, why in missing(request).items()) or None,
        message=instance_id(request.message),
    )


def _name(task: Task) -> str:
    name = f"{task.do}:{task.name}" if task.name else task.do
    return f"{name}@after" if task.when is Moment.AFTER else name


def _add_marks(message: Message, marks: Mapping[str, bool]) -> Message:
    place = position_of(message)
    # The position of a logged message must stay in its body.
    body = {**message.body, **marks} if place is None else {**message.body, **marks, DURABLE: place}
    return attrs.evolve(message, body=body)


def _remove_forged(message: Message, ruling: Ruling) -> Ruling:
    """Remove a mark that the sender has forged, where policies mark messages (POL-15)."""
    if ruling.marked is not None or message.body.get(_AUTH, False) is False:
        return ruling
    return attrs.evolve(ruling, marked=attrs.evolve(message, body={**message.body, _AUTH: False}))
