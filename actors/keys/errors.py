"""What can be wrong with keys."""

from typing import final

from specs.errors import ReasonError

__all__ = ["BadKeysError"]


@final
class BadKeysError(ReasonError):
    """What should be a set of keys is none: whoever made it must act."""

    told = "no set of keys"
