"""The errors of catalogues, split by the party that must act, and their refusals."""

from typing import final

from fsm.catalogue.descriptor import Reason, Refused
from specs.errors import PlaceError, ProtoflyError


class RefusalError(ProtoflyError):
    """The checks of a descriptor end here, with this verdict."""

    def __init__(self, refused: Refused, text: str = "") -> None:
        super().__init__(text or f"{refused.why}; {refused.advice}")
        self.refused = refused


class SourceAwayError(RefusalError):
    """A catalogue cannot be read at the moment: its operator must act, or time.

    Attributes:
        reason: Why not, as half a sentence.
    """

    def __init__(self, where: str, reason: str) -> None:
        why = f"the catalogue {where} cannot be read: {reason}"
        super().__init__(Refused(Reason.AWAY, why, "try again later"), why)
        self.reason = reason


class NotServedError(RefusalError):
    """A catalogue has nothing at a path."""

    def __init__(self, where: str, path: str) -> None:
        why = f"the catalogue {where} has no {path}"
        super().__init__(Refused(Reason.NOT_THERE, why, "ask the domain to publish it"), why)


class BadSealError(RefusalError):
    """A signature is missing, or not one that counts: its signer must act.

    The verdict has none of the text that was brought.
    """

    def __init__(self, reason: Reason, why: str) -> None:
        advice = "ask the domain for one that its key signs"
        super().__init__(Refused(reason, why, advice), f"the signature does not count: {why}")


class BadDescriptorError(RefusalError):
    """The signed content is no descriptor: its author must act.

    Attributes:
        reason: Why not, as half a sentence.
    """

    def __init__(self, reason: str) -> None:
        verdict = Refused(Reason.MALFORMED, f"it is no descriptor: {reason}", "ask the domain")
        super().__init__(verdict, f"this is no descriptor: {reason}")
        self.reason = reason


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


def refuse_if(refused: Refused | None) -> None:
    """Raise `RefusalError` if there is a refusal.

    Raises:
        RefusalError: There is a refusal.
    """
    if refused is not None:
        raise RefusalError(refused)
