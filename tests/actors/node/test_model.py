"""RELIABILITY F3: a whole node and a simple model of it say the same, whatever is done to it.

A run that differs prints its seed and its story.
"""

import pytest
import trio
import trio.testing

from fsm.bus.node_routing import NodeRouting
from fsm.registry.allocation import AllocationCore
from fsm.registry.node_rights import Hearing, NodeRights, Ownership
from tests.actors.node.node_model_driver import run
from tests.support.chance import examples

RUNS = examples(60)
STEPS = 50
CHUNKS = 10


def played(seed: int) -> object:
    clock = trio.testing.MockClock(autojump_threshold=0)
    try:
        return trio.run(run, seed, STEPS, clock=clock)
    except BaseExceptionGroup as group:
        differs, _ = group.split(AssertionError)
        if differs is None:
            raise
        raise AssertionError(f"seed {seed}: {_first(differs)}") from None


def _first(group: BaseException) -> BaseException:
    return _first(group.exceptions[0]) if isinstance(group, BaseExceptionGroup) else group


@pytest.mark.chance
@pytest.mark.timeout(250)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_node_does_what_the_model_says(chunk):
    """MN-04..MN-16, MN-27, ALC-01, ALC-03, I-A3, I-A7, I-M2..I-M7, I-B10, S3."""
    for seed in range(chunk, RUNS, CHUNKS):
        played(seed)


FAULTS = {
    "the second subscriber is missed": (
        NodeRouting, "_fan_out", lambda plain: lambda self, to, subscribers, *more: plain(
            self, to, list(subscribers)[:1], *more
        ),
    ),
    "nobody is asked for consent": (
        NodeRights, "hearing", lambda _: lambda *_: Hearing.AT_ONCE,
    ),
    "anybody may speak as anybody": (
        NodeRights, "ownership", lambda _: lambda *_: Ownership.OWN,
    ),
    "nothing is ever freed": (
        AllocationCore, "_drop", lambda _: lambda *_: [],
    ),
}  # fmt: skip


def _play(runs: int) -> None:
    for seed in range(runs):
        played(seed)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_node_with_a_fault_differs_soon(fault, monkeypatch):
    """The model would notice."""
    kind, name, spoil = FAULTS[fault]
    monkeypatch.setattr(kind, name, spoil(getattr(kind, name)))

    with pytest.raises(AssertionError):
        _play(20)
