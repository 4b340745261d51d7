"""What can go wrong with a login, split by who must act."""

from pathlib import Path
from typing import final

from specs.errors import ProtoflyError

__all__ = [
    "BadKeysError",
    "BadTokenError",
    "KeysAwayError",
    "LoginRefusedError",
    "ProviderAwayError",
    "UsedTokensError",
]


@final
class BadTokenError(ProtoflyError):
    """What was brought is no token, or none that can be taken: whoever brought it must act.

    Attributes:
        reason: Why not, as half a sentence; never any of the token's text.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the token cannot be taken: {reason}")
        self.reason = reason


@final
class BadKeysError(ProtoflyError):
    """What should be a set of keys is none: whoever made it must act.

    Attributes:
        reason: Why not, as half a sentence.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"no set of keys: {reason}")
        self.reason = reason


@final
class KeysAwayError(ProtoflyError):
    """A set of keys cannot be had at the moment: the operator must act, or time.

    Attributes:
        source: Where they should come from.
        reason: Why not, as half a sentence.
    """

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"cannot get the keys of {source}: {reason}")
        self.source = source
        self.reason = reason


@final
class LoginRefusedError(ProtoflyError):
    """An identity provider vouches for nobody who brings this.

    Attributes:
        reason: Why not, as half a sentence for whoever brought it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"login refused: {reason}")
        self.reason = reason


@final
class ProviderAwayError(ProtoflyError):
    """An identity provider cannot be asked at the moment.

    Attributes:
        reason: Why not, as half a sentence; it is told to whoever wants to log in.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the identity provider cannot be asked: {reason}")
        self.reason = reason


@final
class UsedTokensError(ProtoflyError):
    """The file of used tokens cannot be used: the operator must act.

    Attributes:
        path: The file.
        reason: Why not, as half a sentence.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"cannot use the file of used tokens {path}: {reason}")
        self.path = path
        self.reason = reason
