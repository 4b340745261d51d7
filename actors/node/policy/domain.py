"""The policies of the domain, read from the engine: all nodes judge by the same version."""

from collections import deque
from collections.abc import Callable, Mapping
from enum import IntEnum, StrEnum
from typing import Final, TypeAlias

import trio

from actors.kit.log import get_logger
from actors.node.session.other_nodes import OtherNodes
from actors.policy.store import PolicyStore
from fsm.effects import CoreHost, Refused, deferred
from fsm.group import policies
from fsm.policy.model import Book
from specs.reply_code import Code

_log = get_logger("actors.policy")

Answer: TypeAlias = Callable[[Book | Refused], None]
"""Receives the policies in effect after a change, or why the change was refused."""


class DomainPolicies(CoreHost):
    """Host the core that decides by which policies a node judges.

    The object outlives a bus that crashes; `begin` connects it with the next bus.

    Args:
        store: The policies by which the node judges; at first, those of its files.

    Attributes:
        wall: Returns the seconds since the epoch; a node that joins a group sets it.
    """

    def __init__(self, store: PolicyStore) -> None:
        self._store: Final = store
        self.due = deque()
        self._core: Final = policies.PoliciesCore(store.book, self)
        self._others: OtherNodes | None = None
        self._asker: Answer = _to_nobody
        self.wall: Callable[[], float] = trio.current_time

    def begin(self, others: OtherNodes) -> None:
        """Connect to a new bus, which knows nothing of the engine yet."""
        self.stop()
        self._others = others

    @property
    def versions(self) -> Mapping[StrEnum | IntEnum, int]:
        """The version of the domain, and the one by which the node judges; 0: none."""
        return self._core.versions

    def why_not(self) -> str | None:
        """Return half a sentence on why the node denies all messages; None: it does not."""
        return self._core.problem

    @property
    def objection(self) -> Refused | None:
        """The reason why the node opens no sessions; None: it opens them."""
        problem = self._core.problem
        why = f"this node denies all: of the policies of the domain, {problem}"
        return None if problem is None else Refused(Code.UNAVAILABLE, why)

    # ---- the row of the engine

    def take_row(self, row: policies.PolicyRow | None) -> None:
        """Apply the row of the engine; None: no policies."""
        self._core.take_row(row)
        self.perform()

    def confirm_write(self, key: str) -> None:
        """Note that the engine has stored a row of this node.

        Args:
            key: Key of the row, which may be any.
        """
        if key == policies.POLICY_KEY:
            self._core.end_write()
            self.perform()

    def start(self) -> bool:
        """Note that the node is a member, and knows the row of the engine. Idempotent.

        Returns:
            Whether the node knows by which policies it judges: no write is under way.
        """
        self._core.join()
        self.perform()
        return self._core.is_settled

    def stop(self) -> None:
        """Note that the node is no member any more."""
        self._core.fence()
        self.perform()

    # ---- changes

    def propose(self, book: Book, answer: Answer, *, is_of_files: bool = False) -> None:
        """Propose new policies for the domain.

        Args:
            book: The policies.
            answer: Receives the outcome, when it is known.
            is_of_files: Whether the policies are from the files of this node.
        """
        objection = None if self._others is None else self._others.objection()
        if objection is None and not self._core.is_settled:
            objection = policies.BUSY
        if objection is None:
            self._asker = answer
            self._core.propose(book, is_of_files=is_of_files, at=int(self.wall()))
            self.perform()
        else:
            answer(objection)

    # ---- port of the core

    @deferred
    def judge(self, book: Book) -> None:
        """Adopt other policies."""
        self._store.adopt(book)
        problem = self._core.problem
        if problem is None:
            _log.info("policies of the domain", version=book.version, sets=len(book.sets))
        else:
            _log.error("policies unreadable, all is denied", why=problem)

    @deferred
    def write(self, book: Book) -> None:
        """Write policies to the engine."""
        if self._others is not None:
            self._others.publish(policies.PolicyRow(book.version, book))

    @deferred
    def answer(self, outcome: Book | Refused) -> None:
        """Tell the proposer of new policies whether the domain has accepted them."""
        asker, self._asker = self._asker, _to_nobody
        asker(outcome)

    @deferred
    def report_difference(self, version: int) -> None:
        """Log that the policies of the domain are not those of this node's files."""
        why = "SIGHUP gives the domain those of this node's files"
        _log.warning("policy files differ", version=version, what=why)


def _to_nobody(_: Book | Refused) -> None:
    """Ignore the outcome of a write by the node itself."""
