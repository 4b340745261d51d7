"""Which policies hold: one immutable snapshot, replaced as a whole (POL-03, S9)."""

from collections.abc import Sequence
from typing import final

import attrs

from actors.node.policy.config import PolicyConfig
from actors.node.policy.files import read_policies
from fsm.policy.model import Book, PolicySet
from fsm.policy.pdp import Pdp
from specs.limits.policy import MAX_POLICY_SETS

__all__ = ["PolicyStore"]


@final
class PolicyStore:
    """Holds what a node judges by; outlives a bus that crashes.

    Who judges takes `pdp` once per message. It is changed by one assignment only, when
    the next one is complete: nobody ever judges by half of a change.

    Attributes:
        config: What the node was told.
        pdp: What judges now.

    Raises:
        PolicyFileError: A file cannot be used; a node must not start without it.
    """

    def __init__(self, config: PolicyConfig) -> None:
        self.config = config
        sets = read_policies(config.files)
        self.pdp = Pdp(Book(sets=sets, combining=config.combining, default=config.default))

    @property
    def book(self) -> Book:
        """What holds now."""
        return self.pdp.book

    @property
    def is_full(self) -> bool:
        """Whether there is no room for one more set."""
        return len(self.book.sets) >= MAX_POLICY_SETS

    def adopt(self, sets: Sequence[PolicySet]) -> Book:
        """Judge by these sets from the next message on."""
        book = attrs.evolve(self.book, sets=tuple(sets), version=self.book.version + 1)
        self.pdp = Pdp(book)
        return book

    def add(self, one: PolicySet) -> Book:
        """Judge by one more set."""
        return self.adopt((*self.book.sets, one))

    def replace(self, one: PolicySet) -> Book:
        """Judge by another set instead of the one of its id, in the same place."""
        return self.adopt([one if old.id == one.id else old for old in self.book.sets])

    def remove(self, name: str) -> Book:
        """Judge without a set."""
        return self.adopt([one for one in self.book.sets if one.id != name])
