"""The page on traces explains each reason of a drop, as the alert of dropped messages says."""

import re
from pathlib import Path

from specs.reply_code import DropReason

PAGE = (Path(__file__).parents[1] / "docs" / "traces.md").read_text()


def test_each_reason_of_a_drop_has_a_row():
    section = PAGE.split("\n### Reasons of drops\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE) == list(DropReason)
