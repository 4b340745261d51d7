"""For each claim a story that keeps it, and one that breaks it and nothing else.

A story that breaks is the one that keeps with lines taken away, added or changed; what
is written of both stands here once.
"""

import attrs


@attrs.frozen
class Case:
    """Two stories, and whose claim tells them apart.

    Attributes:
        forbids: What the broken story delivers again, as docs/traces.md calls it.
        allows: What the story without a violation delivers again, as docs/traces.md calls it.
    """

    claim: str
    kept: str
    broken: str
    forbids: str = ""
    allows: str = ""


def case(
    claim: str,
    kept: str,
    *changes: tuple[str, str],
    before: str = "",
    forbids: str = "",
    allows: str = "",
) -> Case:
    """Make the story that breaks from the one that keeps.

    Args:
        changes: What stands in the one, and what in the other instead; each must be there.
        before: What both begin with.
        forbids: What the broken story delivers again, as docs/traces.md calls it.
        allows: What the story without a violation delivers again, as docs/traces.md calls it.
    """
    broken = kept
    for old, new in changes:
        assert old in broken, (claim, old)
        broken = broken.replace(old, new, 1)
    return Case(claim, before + kept, before + broken, forbids, allows)


RUNTIME = """
bus add listeners RA/ua loader
bus add listeners HA minibus:HA
bus add listeners HB minibus:HB
minibus:HA add listeners HA HA
minibus:HB add listeners HB HB
"""
"""A runtime with two hyperties, each in its sandbox."""

ASKED = """
bus take read 1 HA>HB
bus deliver read 1 HA>HB listener=minibus:HB
minibus:HB deliver read 1 HA>HB listener=HB
"""

ANSWERED = """
bus take 200 1 HB>HA
bus callback 200 1 HB>HA
"""
