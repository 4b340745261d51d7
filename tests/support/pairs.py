"""A small selection from a large table of cases that still has everything that meets in it."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations, product
from typing import TypeVar

C = TypeVar("C")
Facts = Sequence[Hashable]


def covering(table: Iterable[C], facts_of: Callable[[C], Facts], together: int = 2) -> list[C]:
    """Return cases of a table such that whatever facts meet in the table meet in one of them.

    Greedy: each case brings as many new meetings as any other. The same table has the same
    selection.

    Args:
        table: All cases there are.
        facts_of: The facts of a case; each case has as many, in the same order.
        together: How many facts have to meet: most faults need no more than two causes.
    """
    meetings = [
        (case, frozenset(combinations(enumerate(facts_of(case)), together))) for case in table
    ]
    missing = frozenset[object]().union(*(met for _, met in meetings))
    chosen = []
    while missing:
        case, met = max(meetings, key=lambda one: len(one[1] & missing))
        chosen.append(case)
        missing -= met
    return chosen


def all_pairs(*columns: Iterable[Hashable]) -> list[tuple[Hashable, ...]]:
    """Return rows such that any two values of two columns stand together in one of them."""
    return covering(product(*columns), tuple)
