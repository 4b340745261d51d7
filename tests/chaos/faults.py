"""What goes wrong while a run lasts, as data: which fault begins when, at what, for how long."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from random import Random
from typing import Final

import attrs

ENGINE: Final = -1
"""Place of the engine among the nodes."""


class Wrong(StrEnum):
    """What can go wrong."""

    KILL = "kill"
    """A node is killed, and started again at the end."""
    STOP = "stop"
    """A node stands still (SIGSTOP), and goes on at the end (SIGCONT)."""
    ENGINE = "engine"
    """The engine is killed, and started again at the end with what it had stored."""
    PARTITION = "partition"
    """Nothing goes between a node and the engine until the end."""
    RESTART = "restart"
    """A node goes down in order (SIGTERM), and is started again; nothing may be lost by that."""


USUAL: Final = tuple(one for one in Wrong if one is not Wrong.RESTART)
"""What goes wrong unless something else is asked for."""


_LASTS: Final = {
    Wrong.KILL: (0.5, 4.0),
    Wrong.STOP: (0.5, 14.0),
    Wrong.ENGINE: (0.5, 4.0),
    Wrong.PARTITION: (1.0, 14.0),
    Wrong.RESTART: (5.0, 5.0),
}
"""Seconds; a lease of a node lasts for 10."""


@attrs.frozen(order=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        at: Seconds from the start of the run.
        where: Number of the node, or `ENGINE`.
        lasts: Seconds.
    """

    at: float
    wrong: Wrong
    where: int
    lasts: float

    @property
    def until(self) -> float:
        """When it ends."""
        return self.at + self.lasts


def faults(
    seed: int, seconds: float, every: float, nodes: int, kinds: Sequence[Wrong] = USUAL
) -> Iterator[Fault]:
    """Make up faults, one at each time; no place has two at once, and one node is always sound.

    Args:
        seed: What they are made up of.
        seconds: How long the run lasts; all faults are over by then.
        every: Seconds from the start of one fault to that of the next.
        nodes: How many nodes there are.
        kinds: What may go wrong.
    """
    dice = Random(f"{seed}/chaos")  # noqa: S311 - chance, no secret
    lasting: list[Fault] = []
    for number in range(1, int(seconds / every)):
        at = number * every
        lasting = [one for one in lasting if one.until > at]
        hit = {one.where for one in lasting}
        free = [one for one in range(nodes) if one not in hit]
        able = [ENGINE not in hit if one is Wrong.ENGINE else len(free) > 1 for one in kinds]
        if not any(able):
            continue
        wrong = dice.choice([one for one, is_able in zip(kinds, able, strict=True) if is_able])
        where = ENGINE if wrong is Wrong.ENGINE else dice.choice(free)
        lasts = min(dice.uniform(*_LASTS[wrong]), seconds - at)
        lasting.append(Fault(at, wrong, where, round(lasts, 2)))
        yield lasting[-1]
