"""Cases that mostly wait for other processes, several at a time: each in a thread of its own.

Each has a Trio and a clock of its own, so that nothing is shared but the machine. What a
case raises is raised where its outcome is asked for.
"""

from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import pytest
import trio
from trio.testing import MockClock

AT_ONCE = 4
"""Cases under way: most of the time each waits for processes that wait for each other."""

C = TypeVar("C", bound=Hashable)


def wanted(request: pytest.FixtureRequest) -> list[object]:
    """Return the cases that this session runs of the module that asks, in order."""
    items = [item for item in request.session.items if item.path == request.path]
    return [item.callspec.params["case"] for item in items]


@contextmanager
def open_overlap(
    shown: Callable[[C, MockClock], Awaitable[None]], cases: Iterable[C]
) -> Iterator[Mapping[C, "Future[None]"]]:
    """Begin the cases, in order; on leaving those that have not begun are not."""

    def run(case: C) -> None:
        # Their time is real, until nobody else is there.
        clock = MockClock(rate=1.0)
        trio.run(shown, case, clock, clock=clock)

    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield {case: pool.submit(run, case) for case in cases}
    finally:
        pool.shutdown(cancel_futures=True)
