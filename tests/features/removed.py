"""Remove features from a copy of the code, and run the tests that show them."""

from pathlib import Path

from tests.defects import planting
from tests.features.page import FEATURES, ROOT, Removal


def replaced(one: Removal, root: Path = ROOT) -> str:
    """Return the text of a file without the feature.

    Raises:
        ValueError: What is to be removed does not stand there exactly once.
    """
    return planting.replaced(root / one.file, one.old, one.new)


def is_missed(one: Removal, copy: Path) -> tuple[bool, str]:
    """Return whether the test of a feature fails without it, and what it says."""
    with planting.changed(copy / one.file, replaced(one, copy)):
        outcome = planting.run_tests(copy, "-m", "", FEATURES[one.feature].test)
    # Without a feature a test may wait for what never comes.
    return outcome.verdict in {"found", "timed out"}, outcome.output[-3000:]
