"""The errors of logins, split by the party that must act."""

from typing import final

from specs.errors import PlaceError, ReasonError

__all__ = [
    "BadTokenError",
    "KeysAwayError",
    "LoginRefusedError",
    "ProviderAwayError",
    "UsedTokensError",
]


@final
class BadTokenError(ReasonError):
    """A text is no token, or none that can be accepted: its bearer must act.

    The reason never holds any of the token's text.
    """

    summary = "the token cannot be taken"


@final
class KeysAwayError(PlaceError):
    """A set of keys cannot be had at the moment: the operator must act, or time."""

    summary = "cannot get the keys of {}"


@final
class LoginRefusedError(ReasonError):
    """An identity provider refuses these credentials; the reason is for their sender."""

    summary = "login refused"


@final
class ProviderAwayError(ReasonError):
    """An identity provider cannot be asked at the moment.

    The answer to the login has the reason.
    """

    summary = "the identity provider cannot be asked"


@final
class UsedTokensError(PlaceError):
    """The file of used tokens cannot be used: the operator must act."""

    summary = "cannot use the file of used tokens {}"
