"""What can go wrong with catalogues, split by who must act."""

from typing import final

from fsm.catalogue.descriptor_io import Reason, Refused
from specs.errors import PlaceError, ProtoflyError, ReasonError

__all__ = [
    "BadArchiveError",
    "BadDescriptorError",
    "BadSealError",
    "CatalogueFileError",
    "NotServedError",
    "RefusedDescriptorError",
    "SourceAwayError",
    "TrustFileError",
]


@final
class SourceAwayError(PlaceError):
    """A catalogue cannot be read at the moment: its operator must act, or time."""

    told = "the catalogue {} cannot be read"


@final
class NotServedError(ProtoflyError):
    """A catalogue has nothing at a path.

    Attributes:
        where: Which one.
        path: The path.
    """

    def __init__(self, where: str, path: str) -> None:
        super().__init__(f"the catalogue {where} has no {path}")
        self.where = where
        self.path = path


@final
class BadSealError(ProtoflyError):
    """A signature is missing, or not one that counts: whoever signed must act.

    Attributes:
        reason: Which kind of fault it is.
        why: Why not, as half a sentence; never any of the text that was brought.
    """

    def __init__(self, reason: Reason, why: str) -> None:
        super().__init__(f"the signature does not count: {why}")
        self.reason = reason
        self.why = why


@final
class BadDescriptorError(ReasonError):
    """What was signed is no descriptor: whoever made it must act."""

    told = "this is no descriptor"


@final
class BadArchiveError(ProtoflyError):
    """A package must not be opened: whoever packed it must act.

    Attributes:
        reason: Why not, as what the package does: `has a file 'x' outside of it`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the package {reason}")
        self.reason = reason


@final
class RefusedDescriptorError(ProtoflyError):
    """A stub from a catalogue is refused; nothing of it was run.

    Attributes:
        what: What it is called in a sentence.
        refused: Why, and what to do.
    """

    def __init__(self, what: str, refused: Refused) -> None:
        super().__init__(f"{what} is refused: {refused.why}; {refused.advice}")
        self.what = what
        self.refused = refused


@final
class TrustFileError(PlaceError):
    """The file that says who is trusted cannot be used: the operator must act."""

    told = "cannot use the trust file {}"


@final
class CatalogueFileError(PlaceError):
    """A file of a catalogue, or of what is remembered of one, cannot be used."""

    told = "cannot use {}"
