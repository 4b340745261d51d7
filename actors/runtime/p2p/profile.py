"""The stubs of direct links as profiles of a catalogue name them (CAT-10, P2P-01, P2P-04).

They are code of this runtime only: a direct link is proven by the runtime's key, listens on its
network and dials what peers offer. Code from elsewhere gets none of these (STB-12).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from actors.kit.supervision.actor import Actor, Delivery
from actors.runtime.p2p.stub import P2PHandler, P2PRequester
from actors.runtime.stubs.catalogue import StubKind
from actors.runtime.stubs.stub import StubContext, StubFactory
from actors.runtime.stubs.wire import StubOptionError
from specs.jsonvalue import Json, JsonObject
from transports.link import Kind

LINK_STUBS: Final[Mapping[str, StubKind]] = MappingProxyType(
    {"p2p-handler": StubKind.P2P_HANDLER, "p2p-requester": StubKind.P2P_REQUESTER}
)
"""The kind of each stub of direct links, by the name that a profile has for it."""

LINK_MAKERS: Final[Mapping[StubKind, StubFactory]] = MappingProxyType(
    {StubKind.P2P_HANDLER: P2PHandler, StubKind.P2P_REQUESTER: P2PRequester}
)
"""Makes a stub of direct links, by its kind."""

_KINDS: Final = "kinds"


def link_stub(name: str, options: JsonObject) -> StubFactory:
    """Return the maker of a stub of direct links, as a profile describes it.

    The option `kinds` lists the transports that the stub may use, of those that this runtime uses
    anyway; without it the stub uses all of them.

    Args:
        name: The name of the stub in a profile.
        options: The options of the profile.

    Raises:
        StubOptionError: An option, or its value, is not known.
    """
    kinds, make = _kinds(name, options), LINK_MAKERS[LINK_STUBS[name]]
    if kinds is None:
        return make

    def activate(context: StubContext) -> Actor[Delivery]:
        """Make the stub.

        Raises:
            StubOptionError: The profile leaves it no transport.
        """
        common = tuple(kind for kind in context.config.kinds if kind in kinds)
        if not common:
            why = f"this runtime uses none of {', '.join(sorted(kinds))} for direct links"
            raise StubOptionError(name, _KINDS, why)
        return make(attrs.evolve(context, config=attrs.evolve(context.config, kinds=common)))

    return activate


def _kinds(name: str, options: JsonObject) -> frozenset[Kind] | None:
    for option in options:
        if option != _KINDS:
            raise StubOptionError(name, option, f"there is no option {option!r}; there is 'kinds'")
    said = options.get(_KINDS)
    if said is None:
        return None
    if not isinstance(said, list) or not said or not all(_is_kind(one) for one in said):
        why = f"the option 'kinds' is no list of {', '.join(Kind)}"
        raise StubOptionError(name, _KINDS, why)
    return frozenset(Kind(one) for one in said if isinstance(one, str))


def _is_kind(one: Json) -> bool:
    return isinstance(one, str) and one in list(Kind)
