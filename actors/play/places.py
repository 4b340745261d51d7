"""What the actors' evidence calls the places of a scenario: processes, senders, listeners."""

from typing import Final, final

import attrs

from actors.play.atlas import Atlas
from actors.play.hop import Place
from specs.address import RUNTIME_SCHEME, runtime_of, scheme_of

__all__ = ["SANDBOX", "Places"]

_PATHS: Final = {
    "alloc": "address-allocation",
    "graph": "graph-connector",
    "registry": "registry",
    "sm": "sm",
    "ua": "ua",
}
"""Paths of a runtime's parts, by their short names."""

_LISTENERS: Final = {"alloc": "address-allocation", "registry": "registry", "sm": "sync-manager"}
"""What a Message BUS calls the parts that listen to it, by their short names."""

_WHOLE: Final = frozenset({"", "sandbox"})
_NODE: Final = "domain"
SANDBOX: Final = "sandbox"
"""Where a component sends from that forges its address."""


@final
@attrs.frozen
class Places:
    """Knows the places of one scenario; all it returns is in the scenario's words."""

    atlas: Atlas

    def process(self, place: Place) -> str | None:
        """Return the runtime or node that a place is in; None if nothing says it."""
        root = self.atlas.of(place)
        if root is None:
            return None
        if scheme_of(root) == RUNTIME_SCHEME:
            return runtime_of(root)
        return root if scheme_of(root) == _NODE else None

    def is_node(self, place: Place) -> bool:
        """Say whether a place is in a message node."""
        return scheme_of(self.atlas.of(place) or "") == _NODE

    def sender(self, place: Place) -> str | None:
        """Return as whom a place submits; None if nothing says it."""
        root = self.atlas.of(place)
        if root is None or place.part in _WHOLE:
            return root
        path = _PATHS.get(place.part)
        return None if path is None else f"{root}/{path}"

    def listener(self, place: Place) -> str | None:
        """Return what a Message BUS calls the listener at a place; None if nothing says it.

        `HA(OBJ)` is an object of HA; who listens for it there is not said.
        """
        if place.part in _LISTENERS:
            return _LISTENERS[place.part]
        root = self.atlas.of(place)
        is_named = place.part in _WHOLE and (not place.note or place.root == SANDBOX)
        return f"minibus:{root}" if root is not None and is_named else None
