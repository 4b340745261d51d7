"""Limits of the page of the demonstration: its chat, its to-do list, and who takes part."""

from typing import Final

DEMO_PEOPLE: Final = 24
"""Participants that the robot knows at a time (ours)."""

DEMO_NAME: Final = 40
"""Characters of the name of a participant (ours)."""

DEMO_TEXT: Final = 400
"""Characters of a line of the chat, or of an entry of the list (ours)."""

DEMO_LINES: Final = 40
"""Lines of the chat that are kept when older ones are removed (ours)."""

DEMO_MORE_LINES: Final = 20
"""Lines beyond these that are kept until then: to remove some sends all others anew (ours)."""

DEMO_ITEMS: Final = 40
"""Entries of the list (ours)."""
