"""`python -m tests.fuzz`: attack a node with any number of frames."""

import argparse
import tempfile
from pathlib import Path

import trio

from tests.fuzz.attacker import SLOTS
from tests.fuzz.siege import NodeAttack, check
from tests.support.node.node_process import DOMAIN, UNHURRIED, node_process

OPTIONS = ("--domain", DOMAIN, "--allow-legacy", *UNHURRIED)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=[slot.name for slot in SLOTS])
    parser.add_argument("--batch", type=int, default=0, help="the number of the first batch")
    reported = parser.parse_args()
    slots = tuple(slot for slot in SLOTS if reported.only in {None, slot.name})
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "node.log"
        with node_process(log, *OPTIONS) as node:
            attack = NodeAttack(node, reported.frames, reported.seed, slots, reported.batch)
            report = trio.run(attack.run)
            print(report)
            check(report, node)
            assert node.stop() == 0


if __name__ == "__main__":
    main()
