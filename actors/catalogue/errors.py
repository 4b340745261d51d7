"""Exceptions of catalogues: refused descriptors, unusable files, and catalogues out of reach."""

from typing import final

from fsm.catalogue.descriptor import Reason, Refused
from specs.errors import PlaceError, ProtoflyError


class RefusalError(ProtoflyError):
    """A check of a descriptor failed, with this verdict."""

    def __init__(self, refused: Refused, text: str = "") -> None:
        super().__init__(text or f"{refused.why}; {refused.advice}")
        self.refused = refused


class SourceAwayError(RefusalError):
    """A catalogue cannot be read at the moment; its operator may have to act.

    Attributes:
        reason: The reason, as half a sentence.
    """

    def __init__(self, where: str, reason: str) -> None:
        why = f"the catalogue {where} cannot be read: {reason}"
        super().__init__(Refused(Reason.AWAY, why, "try again later"), why)
        self.reason = reason


class NotServedError(RefusalError):
    """A catalogue has no file at a path."""

    def __init__(self, where: str, path: str) -> None:
        why = f"the catalogue {where} has no {path}"
        super().__init__(Refused(Reason.NOT_THERE, why, "ask the domain to publish it"), why)


class BadSealError(RefusalError):
    """A signature is missing or invalid; its signer has to act.

    The verdict repeats nothing of the rejected text.
    """

    def __init__(self, reason: Reason, why: str) -> None:
        advice = "ask the domain for one that its key signs"
        super().__init__(Refused(reason, why, advice), f"the signature does not count: {why}")


class BadDescriptorError(RefusalError):
    """The signed content is no descriptor; its author has to act.

    Attributes:
        reason: The reason, as half a sentence.
    """

    def __init__(self, reason: str) -> None:
        verdict = Refused(Reason.MALFORMED, f"it is no descriptor: {reason}", "ask the domain")
        super().__init__(verdict, f"this is no descriptor: {reason}")
        self.reason = reason


class BadArchiveError(ProtoflyError):
    """A package must not be opened; its publisher has to act.

    Attributes:
        reason: The reason, as a predicate of the package: `has a file 'x' outside of it`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the package {reason}")
        self.reason = reason


class RefusedDescriptorError(ProtoflyError):
    """A descriptor of a catalogue is refused; none of its code was run."""

    def __init__(self, what: str, refused: Refused) -> None:
        super().__init__(f"{what} is refused: {refused.why}; {refused.advice}")
        self.what = what
        self.refused = refused


@final
class TrustFileError(PlaceError, public=True):
    """The file of trusted signers cannot be used; the operator has to act."""

    summary = "cannot use the trust file {}"


class CatalogueFileError(PlaceError):
    """A file of a catalogue, or of the memory about catalogues, cannot be used."""

    summary = "cannot use {}"


def refuse_if(refused: Refused | None) -> None:
    """Raise `RefusalError` if there is a refusal.

    Raises:
        RefusalError: There is a refusal.
    """
    if refused is not None:
        raise RefusalError(refused)
