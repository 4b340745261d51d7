"""For whose sake a runtime has a path: the observers that an owner consented to.

A node may hold millions of paths, most of them for one observer: one is kept as it is, and
only several as a tuple.
"""

from typing import TypeAlias

__all__ = ["Observers", "each", "joined", "one_or_more", "without"]

Observers: TypeAlias = str | tuple[str, ...] | None
"""Whom the owner consented to: one, several; None: the path needs no consent."""


def each(observers: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return them one by one."""
    return (observers,) if isinstance(observers, str) else observers


def one_or_more(observers: tuple[str, ...]) -> str | tuple[str, ...]:
    """Return these as a table keeps them; there is one at least."""
    return observers if len(observers) > 1 else observers[0]


def joined(known: Observers, observer: str) -> Observers:
    """Return whom is consented to after one more yes; a path that needs none needs none."""
    match known:
        case None:
            return None
        case str():
            return known if known == observer else (known, observer)
        case _:
            return known if observer in known else (*known, observer)


def without(known: str | tuple[str, ...], observer: str) -> Observers:
    """Return whom is still consented to; None: nobody."""
    if isinstance(known, str):
        return None if known == observer else known
    left = tuple(one for one in known if one != observer)
    return left if len(left) > 1 else left[0]
