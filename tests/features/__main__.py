"""Try removals by hand: `python -m tests.features BUS-02 RES-03`; without names, all of them."""

import sys

from tests.defects.planting import source_copy
from tests.features.page import FEATURES, REMOVALS
from tests.features.removed import is_missed


def main(names: list[str]) -> int:
    """Return how many features no test missed."""
    shown = 0
    with source_copy() as copy:
        for one in REMOVALS:
            if names and one.feature not in names:
                continue
            failed, said = is_missed(one, copy)
            print(
                one.feature, "missed" if failed else f"NOT MISSED by {FEATURES[one.feature].test}"
            )
            if not failed:
                print(said)
                shown += 1
    return shown


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
