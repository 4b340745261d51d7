"""Obligations and advice of decisions (POL-13, I-K3)."""

from collections import Counter
from collections.abc import Sequence
from types import MappingProxyType
from typing import Final, final

import attrs
import structlog

from fsm.policy.explain import TASKS
from fsm.policy.model import Task
from fsm.policy.terms import Moment
from specs.limits.node import MAX_POLICY_COUNTERS
from specs.message import Message, instance_id

__all__ = ["STAMP", "Order", "Tasks"]

_log = structlog.get_logger("actors.node")

STAMP: Final = "stamp"
"""The task that the enforcement point itself sees to: it makes another message."""


@final
@attrs.frozen
class Order:
    """A decision, as far as tasks need to know it.

    Attributes:
        user: User of the sender; None: no login.
    """

    message: Message
    decision: str
    policy: str
    user: str | None


@final
class Tasks:
    """Does what decisions oblige a node to; lives as long as the node.

    Attributes:
        counts: What `count` counted, by name.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self.counts = MappingProxyType(self._counts)

    def do(self, tasks: Sequence[Task], order: Order, when: Moment) -> str:
        """Do what is to be done at a moment; return which obligation failed, if one did.

        All that can be done is done, also if some of it fails.

        Args:
            tasks: Obligations and advice of the decision.
            order: Message and decision.
            when: Before or after the message is forwarded.
        """
        failed = ""
        for task in tasks:
            if task.when is when and not self._done(task, order):
                _log.warning(
                    "policy task failed",
                    task=task.do,
                    policy=order.policy,
                    advice=task.is_advice,
                    message=instance_id(order.message),
                )
                if not task.is_advice:
                    failed = failed or task.do
        return failed

    def impossible(self, tasks: Sequence[Task]) -> str:
        """Return the first obligation that cannot be fulfilled; empty: none."""
        unknown = (task.do for task in tasks if not task.is_advice and task.do not in TASKS)
        return next(unknown, "")

    def _done(self, task: Task, order: Order) -> bool:
        match task.do:
            case "log":
                self._write(task, order)
            case "count":
                return self._count(task.name)
            case "stamp":
                pass
            case _:
                return False
        return True

    def _write(self, task: Task, order: Order) -> None:
        """Write a line of the log, without what stands in the message."""
        message = order.message
        _log.warning(
            "policy",
            decision=order.decision,
            policy=order.policy,
            text=task.text or None,
            type=message.type.value,
            from_=message.from_,
            to=message.to,
            id=message.id,
            user=order.user,
        )

    def _count(self, name: str) -> bool:
        if name not in self._counts and len(self._counts) >= MAX_POLICY_COUNTERS:
            return False
        self._counts[name] += 1
        return True
