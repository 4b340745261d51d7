"""Writes the list of licences of all installed distributions that are locked."""

import re
import sys
from importlib.metadata import PackageMetadata, PackageNotFoundError, distribution
from pathlib import Path

HERE = Path(__file__).parent
PINNED = re.compile(r"^([\w.-]+)(?:\[[^]]*\])?==(\S+)", re.MULTILINE)
TROVE = "License :: "
USES = "run", "dev", "docs"
"""The locks; a distribution of several is listed by the first."""
LONGEST = 60


def licence(about: PackageMetadata) -> str:
    """Return what a distribution says of its licence: its expression, or classifiers, or text."""
    expression = about.get("License-Expression")
    if expression:
        return expression
    classes = [one for one in about.get_all("Classifier") or [] if one.startswith(TROVE)]
    if classes:
        return "; ".join(one.rpartition(" :: ")[2] for one in classes)
    text = (about.get("License") or "").strip()
    return text if 0 < len(text) <= LONGEST else "not stated: see its files"


def rows() -> list[str]:
    """Return a line for each distribution: name, version, licence; where it is a run dependency."""
    locked = {use: PINNED.findall((HERE / f"{use}.txt").read_text()) for use in USES}
    uses = {one: use for use in reversed(USES) for one in locked[use]}
    lines = []
    for name, version in sorted(uses):
        try:
            about = distribution(name)
        except PackageNotFoundError:
            # Of another platform or version of Python.
            continue
        if about.version == version:
            use = uses[name, version]
            lines.append(f"{name} {version} | {use} | {licence(about.metadata)}")
    return lines


def main() -> None:
    """Print the list."""
    print("# Written by `make lock`: name and version | run: needed to run it | licence.")
    print("\n".join(rows()))


if __name__ == "__main__":
    sys.exit(main())
