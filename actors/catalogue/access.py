"""How a runtime reaches catalogues, as it is configured."""

from typing import final

import attrs

from actors.catalogue.client import Shelf
from actors.catalogue.memory import VolatileMemory
from actors.catalogue.package_store import NoStore
from actors.catalogue.places import Places
from actors.catalogue.trust_file import Trust

__all__ = ["CatalogueAccess"]


def _forgetful() -> Shelf:
    return Shelf(VolatileMemory(), NoStore())


@final
@attrs.frozen
class CatalogueAccess:
    """Which catalogues a runtime asks, and what it believes of them.

    Attributes:
        places: Where they are.
        trust: Who is trusted.
        shelf: Where what was seen is kept; by default nowhere, and then an old descriptor
            can be passed off as new to a runtime that has just started.
        clock_offset: Seconds from the Trio clock to the epoch.
    """

    places: Places
    trust: Trust
    shelf: Shelf = attrs.field(factory=_forgetful)
    clock_offset: float = 0.0
