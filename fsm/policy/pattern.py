"""The matcher of `like`: `*` stands for any text, and nothing else has a meaning (POL-10).

It never goes back: each piece between two stars is looked for once, from where the
last one ended. The time is that of reading the text, whatever the pattern.
"""

from typing import final

import attrs

__all__ = ["Pattern"]

_ANY = "*"


@final
@attrs.frozen(slots=True)
class Pattern:
    """A pattern, cut at its stars.

    Attributes:
        head: What the text must begin with; all of it, if there is no star.
        middle: What must follow, in this order, somewhere.
        tail: What it must end with; None: there is no star.
    """

    head: str
    middle: tuple[str, ...]
    tail: str | None

    @classmethod
    def read(cls, text: str) -> "Pattern":
        """Cut a pattern at its stars."""
        head, *rest = text.split(_ANY)
        if not rest:
            return cls(head, (), None)
        return cls(head, tuple(one for one in rest[:-1] if one), rest[-1])

    def fits(self, text: str) -> bool:
        """Say whether the whole of a text is as the pattern says."""
        if self.tail is None:
            return text == self.head
        end = len(text) - len(self.tail)
        at = len(self.head)
        if end < at or not text.startswith(self.head) or not text.endswith(self.tail):
            return False
        for piece in self.middle:
            at = text.find(piece, at, end)
            if at < 0:
                return False
            at += len(piece)
        return True
