"""The catalogues that a runtime uses, and its trust in them."""

from typing import final

import attrs

from actors.catalogue.client import CatalogueStore
from actors.catalogue.memory import VolatileMemory
from actors.catalogue.package_store import NoStore
from actors.catalogue.places import Places
from actors.catalogue.trust_file import Trust

__all__ = ["CatalogueAccess"]


def _forgetful() -> CatalogueStore:
    return CatalogueStore(VolatileMemory(), NoStore())


@final
@attrs.frozen
class CatalogueAccess:
    """Which catalogues a runtime asks, and which of their content it accepts.

    Attributes:
        places: Directory or server of the catalogue of each domain; made by `read_places`.
        trust: Trusted keys and publishers; made by `read_trust`.
        shelf: Memory of accepted descriptors and packages. By default it ends with the process: a
            runtime that has just started can be given an old descriptor as a new one.
        clock_offset: Seconds from the Trio clock to the epoch (1970, UTC).
    """

    places: Places
    trust: Trust
    shelf: CatalogueStore = attrs.field(factory=_forgetful)
    clock_offset: float = 0.0
