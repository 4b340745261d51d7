"""What goes wrong on the way to a verdict, as a verdict."""

from typing import Final, final

from actors.catalogue.errors import (
    BadDescriptorError,
    BadSealError,
    NotServedError,
    SourceAwayError,
)
from fsm.catalogue.descriptor_io import Reason, Refused
from specs.errors import ProtoflyError

__all__ = ["NO_PLACE", "RefusalError", "from_error", "no_trust"]

NO_PLACE: Final = Refused(
    Reason.NOT_THERE, "no catalogue is configured for its domain", "name one with --catalogue"
)
"""Nobody can be asked."""


@final
class RefusalError(ProtoflyError):
    """The way to a verdict ends here.

    Attributes:
        refused: The verdict.
    """

    def __init__(self, refused: Refused) -> None:
        super().__init__(f"{refused.why}; {refused.advice}")
        self.refused = refused


def no_trust(domain: str) -> Refused:
    """Refuse a domain that nobody has said anything of."""
    why = f"nobody here trusts {domain}"
    return Refused(Reason.UNKNOWN_DOMAIN, why, "name its keys in the trust file if you do")


def from_error(
    error: BadSealError | BadDescriptorError | NotServedError | SourceAwayError,
) -> Refused:
    """Say as a verdict what went wrong."""
    match error:
        case BadSealError(reason=reason, why=why):
            return Refused(reason, why, "ask the domain for one that its key signs")
        case BadDescriptorError(reason=why):
            return Refused(Reason.MALFORMED, f"it is no descriptor: {why}", "ask the domain")
        case NotServedError():
            return Refused(Reason.NOT_THERE, str(error), "ask the domain to publish it")
        case SourceAwayError():
            return Refused(Reason.AWAY, str(error), "try again later")
