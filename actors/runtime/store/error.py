"""The error of a runtime's store."""

from typing import final

from specs.errors import PlaceError

__all__ = ["StoreFileError"]


@final
class StoreFileError(PlaceError):
    """The file in which a runtime stores data objects cannot be used."""

    told = "cannot use the store {}"
