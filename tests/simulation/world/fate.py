"""Chance in one hand: while it is, a run depends on its seed and on nothing else.

What cannot be handed in is replaced: Trio's order of tasks that are ready (its own tests, and
Hypothesis, seed it the same way), the secrets of sandboxes, the places of Unix sockets, and
threads.
"""

import secrets
import tempfile
from collections.abc import Callable, Iterator, MutableSequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import TypeVar

import trio
import trio._core._run as trio_run

T = TypeVar("T")


def chance(*what: object) -> Random:
    """Return chance for one purpose: the same for the same words, in every process."""
    return Random("/".join(map(str, what)))  # noqa: S311 - no secret


class SizedChance:
    """Chance by the size of what is asked for: who asks for another size gets the same."""

    def __init__(self, *what: object) -> None:
        self._what = what
        self._sources: dict[int, Random] = {}

    def randbytes(self, size: int) -> bytes:
        source = self._sources.setdefault(size, chance(*self._what, size))
        return source.randbytes(size)


class TimedChance(Random):
    """Chance by the time: who asks first does not matter."""

    def __init__(self, seed: int) -> None:
        super().__init__(0)
        self._seed = seed

    def random(self) -> float:
        return chance(self._seed, trio.current_time()).random()


class _Unshuffled(Random):
    """Lets tasks run in the order in which they began."""

    def shuffle(self, x: MutableSequence[object]) -> None:
        pass


@contextmanager
def sealed(seed: int, *, is_steady: bool = False) -> Iterator[None]:
    """Let nothing but the seed decide."""
    shuffling = trio_run._r
    if is_steady:
        trio_run._r = _Unshuffled(0)
    was, state = trio_run._ALLOW_DETERMINISTIC_SCHEDULING, trio_run._r.getstate()
    made_up, in_thread = secrets.token_bytes, trio.to_thread.run_sync
    bits = secrets.randbits
    places = tempfile.TemporaryDirectory
    trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True
    trio_run._r.seed(seed)
    secrets.token_bytes = chance(seed, "rooms").randbytes
    secrets.randbits = chance(seed, "boots").getrandbits
    trio.to_thread.run_sync = _at_once
    tempfile.TemporaryDirectory = partial(_place, chance(seed, "places"))
    try:
        yield
    finally:
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING = was
        trio_run._r.setstate(state)
        trio_run._r = shuffling
        secrets.token_bytes, trio.to_thread.run_sync = made_up, in_thread
        secrets.randbits = bits
        tempfile.TemporaryDirectory = places


@contextmanager
def _place(random: Random, prefix: str) -> Iterator[str]:
    """Make up a folder for a Unix socket, which is in traces; in memory it need not exist."""
    yield f"/simulated/{prefix}{random.randbytes(8).hex()}"


async def _at_once(work: Callable[..., T], *args: object, **_: object) -> T:
    """Do in the loop what a thread would do: a thread takes its own time."""
    await trio.lowlevel.checkpoint()
    return work(*args)
