"""Garbage of one test: what it leaves open warns, and a warning is an error."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

FULL = 500
"""How many collections of what is new there are for each of everything."""

_turns = count(1)


@contextmanager
def collected() -> Iterator[None]:
    """Collect the garbage of a block at its end.

    What lives before the block is left out: to look at everything takes a worker that has run
    thousands of tests seconds. Now and then it is, so that no garbage piles up.
    """
    if next(_turns) % FULL == 0:
        gc.unfreeze()
        gc.collect()
    gc.freeze()
    yield
    gc.collect()
