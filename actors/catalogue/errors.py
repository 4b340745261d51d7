"""The errors of catalogues, split by the party that must act, and their refusals."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, final

from fsm.catalogue.descriptor import Reason, Refused
from specs.errors import PlaceError, ProtoflyError, ReasonError


class SourceAwayError(PlaceError):
    """A catalogue cannot be read at the moment: its operator must act, or time."""

    summary = "the catalogue {} cannot be read"


class NotServedError(ProtoflyError):
    """A catalogue has nothing at a path."""

    def __init__(self, where: str, path: str) -> None:
        super().__init__(f"the catalogue {where} has no {path}")
        self.where = where
        self.path = path


class BadSealError(ProtoflyError):
    """A signature is missing, or not one that counts: its signer must act.

    Attributes:
        why: Why not, as half a sentence; never any of the text that was brought.
    """

    def __init__(self, reason: Reason, why: str) -> None:
        super().__init__(f"the signature does not count: {why}")
        self.reason = reason
        self.why = why


class BadDescriptorError(ReasonError):
    """The signed content is no descriptor: its author must act."""

    summary = "this is no descriptor"


class BadArchiveError(ProtoflyError):
    """A package must not be opened: its publisher must act.

    Attributes:
        reason: Why not, as what the package does: `has a file 'x' outside of it`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the package {reason}")
        self.reason = reason


class RefusedDescriptorError(ProtoflyError):
    """A stub from a catalogue is refused; nothing of it was run."""

    def __init__(self, what: str, refused: Refused) -> None:
        super().__init__(f"{what} is refused: {refused.why}; {refused.advice}")
        self.what = what
        self.refused = refused


@final
class TrustFileError(PlaceError, public=True):
    """The file of trusted signers cannot be used: the operator must act."""

    summary = "cannot use the trust file {}"


class CatalogueFileError(PlaceError):
    """A file of a catalogue, or of what is remembered of one, cannot be used."""

    summary = "cannot use {}"


NO_PLACE: Final = Refused(
    Reason.NOT_THERE, "no catalogue is configured for its domain", "name one with --catalogue"
)
"""No catalogue can be asked."""


class RefusalError(ProtoflyError):
    """The checks end here without a verdict."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(f"{refused.why}; {refused.advice}")
        self.refused = refused


def no_trust(domain: str) -> Refused:
    """Refuse a domain without an entry in the trust file."""
    why = f"no entry of the trust file names {domain}"
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


@contextmanager
def refusals() -> Iterator[None]:
    """Raise `RefusalError` for an error that is a verdict about a descriptor.

    Raises:
        RefusalError: The error is a verdict about a descriptor.
    """
    try:
        yield
    except (BadSealError, BadDescriptorError, NotServedError, SourceAwayError) as exc:
        raise RefusalError(from_error(exc)) from exc


def refuse_if(refused: Refused | None) -> None:
    """Raise `RefusalError` if there is a refusal.

    Raises:
        RefusalError: There is a refusal.
    """
    if refused is not None:
        raise RefusalError(refused)
