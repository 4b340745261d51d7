"""Chance in one hand: while it is, a run depends on its seed and on nothing else.

Trio's order of tasks that are ready is one of the two things that cannot be handed in (its
own tests, and Hypothesis, seed it the same way); what a room makes up for itself the other.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import trio._core._run as trio_run

__all__ = ["chance", "sealed"]


def chance(*what: object) -> Random:
    """Return chance for one purpose: the same for the same words, in every process."""
    return Random("/".join(map(str, what)))  # noqa: S311 - no secret


@contextmanager
def sealed(seed: int) -> Iterator[None]:
    """Let nothing but the seed decide."""
    was, state = trio_run._ALLOW_DETERMINISTIC_SCHEDULING, trio_run._r.getstate()
    made_up = secrets.token_bytes
    trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True
    trio_run._r.seed(seed)
    secrets.token_bytes = chance(seed, "rooms").randbytes
    try:
        yield
    finally:
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING = was
        trio_run._r.setstate(state)
        secrets.token_bytes = made_up
