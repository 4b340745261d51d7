"""Tell what a node makes of frames of friends and attackers, by chance: `... SEED`.

The compiled modules say the same as their sources, which the one that compares both cares for.
"""

import sys
from collections import Counter
from itertools import chain
from random import Random

import attrs
import trio
import trio.testing

import fsm.bus.remembered_routing
import transports.codec
from tests.actors.node.bus.test_short_ways import OLD, OLDER, frames, run
from tests.support.node.node_peer import RA, RB

MODULES = (fsm.bus.remembered_routing, transports.codec)


def main() -> None:
    """Print which modules were used, then all that can be seen of the node."""
    sent = frames(Random(int(sys.argv[1])), (RA, RB, OLD, OLDER))  # noqa: S311 - chance, no secret
    seen = trio.run(run, sent, Counter(), clock=trio.testing.MockClock(autojump_threshold=0))
    *counts, refused = seen.counted
    # A code is a number; whether it is one of `Code` too, nobody is told.
    plain = [attrs.evolve(one, code=int(one.code)) for one in refused]
    lines = [[module.__file__ for module in MODULES], *chain(*seen.heard), *seen.facts, counts]
    sys.stdout.write("".join(f"{line}\n" for line in (*lines, *plain)))


if __name__ == "__main__":
    main()
