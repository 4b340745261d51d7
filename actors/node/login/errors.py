"""The errors of logins, split by the party that must act."""

from typing import final

from specs.errors import PlaceError, ReasonError


@final
class LoginRefusedError(ReasonError, public=True):
    """An identity provider refuses these credentials; the reason is for their sender.

    Attributes:
        retry_after: Seconds after which they may be accepted; None: never, or not known.
    """

    summary = "login refused"

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


@final
class ProviderAwayError(ReasonError, public=True):
    """An identity provider cannot be asked at the moment.

    The answer to the login has the reason.
    """

    summary = "the identity provider cannot be asked"


@final
class UsedTokensError(PlaceError, public=True):
    """The file of used tokens cannot be used: the operator must act."""

    summary = "cannot use the file of used tokens {}"
