"""Texts of others, as a terminal, a log and a page may show them.

Peers, catalogues and foreign code choose texts that people read: they may hold commands of a
terminal, line breaks that forge a line, and marks that turn the order of what follows. Such
characters are spelt out as JSON spells them, so that a line of JSON stays the same JSON.
"""

import re
from typing import Final

_ACTIVE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters that are no text: controls, marks of direction, invisible ones, half surrogates."""

_BREAKS: Final = str.maketrans({"\n": "\\n", "\t": "\\t"})


def visible(text: str) -> str:
    """Return a text with all that is no text spelt out; line breaks and tabs stay.

    Args:
        text: Any text; also lines of JSON, which stay the same JSON.
    """
    return _ACTIVE.sub(_spelt_out, text)


def one_line(text: str) -> str:
    """Return a text as a part of one line, line breaks and tabs spelt out, too.

    Args:
        text: Any text.
    """
    return visible(text).translate(_BREAKS)


def _spelt_out(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
