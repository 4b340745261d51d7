"""The order in which workers begin tests, so that the processors are busy until the end."""

from collections import defaultdict
from operator import itemgetter

FIRST = (
    "tests/spark/",
    "tests/fuzz/test_conservation.py",
    "tests/fsm/judge/test_damage.py",
    "tests/fsm/explore/",
    "tests/examples/demo/",
)
"""Begun first: each is one group or takes long; no worker is to be alone with it at the end."""

WAITING = (
    "tests/actors/cli/",
    "tests/actors/commands/",
    "tests/actors/dev/",
    "tests/actors/node/",
    "tests/actors/runtime/p2p/set_up/test_p2p_negotiation.py",
    "tests/actors/runtime/p2p/test_p2p_forgers.py",
    "tests/actors/sandbox/",
    "tests/actors/testing/",
    "tests/conformance/test_connectors.py",
    "tests/conformance/test_upstream_runtime.py",
    "tests/examples/",
    "tests/fsm/commands/test_progress.py",
    "tests/fuzz/",
    "tests/simulation/",
    "tests/system/",
    "tests/transports/engine/",
    "tests/transports/test_link_contract.py",
    "tests/web/",
)
"""Wait for other processes, or for real time: spread among those that compute all the time."""

SPREAD = 0.7
"""Over which part of the run they are spread; the end is for short tests."""

_TURN = 0.618034
"""By how much the place of the first test of a file differs from that of the file before."""


def in_order(items):
    """Return tests in the order in which workers begin them."""
    first = [one for one in items if one.nodeid.startswith(FIRST)]
    rest = [one for one in items if not one.nodeid.startswith(FIRST)]
    waiting = [one for one in rest if one.nodeid.startswith(WAITING)]
    computing = [one for one in rest if not one.nodeid.startswith(WAITING)]
    places = [(place * SPREAD, one) for place, one in spread(waiting)]
    places += [(at / max(len(computing), 1), one) for at, one in enumerate(computing)]
    return first + [one for _, one in sorted(places, key=itemgetter(0))]


def spread(items):
    """Return tests with their places, from 0 to 1: those of each file are far from each other.

    Tests of a file wait alike: side by side, they would keep all workers waiting. A group has one
    place, as one worker takes all of it at the place of its first test.
    """
    files = defaultdict(lambda: defaultdict(list))
    for number, one in enumerate(items):
        group = one.get_closest_marker("xdist_group")
        files[one.path][group.args[0] if group else number].append(one)
    return [
        ((at + number * _TURN % 1) / len(units), one)
        for number, units in enumerate(files.values())
        for at, unit in enumerate(units.values())
        for one in unit
    ]
