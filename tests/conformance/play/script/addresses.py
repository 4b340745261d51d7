"""The meaning of the short names of a scenario: macros, places of hops, parts of processes."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, final

from specs.addresses.address import RUNTIME_SCHEME, runtime_of, scheme_of
from specs.jsonvalue import Json
from tests.conformance.play.script.hop import Place
from tests.conformance.play.script.steps import Setting
from tests.conformance.play.script.vocabulary import Alias, Node

_WELL_KNOWN: Final = "hyperty-catalogue://catalogue.{}.ex/.well-known/{}"

MACROS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "RA": "hyperty-runtime://a.ex/ra",
        "RB": "hyperty-runtime://b.ex/rb",
        "RC": "hyperty-runtime://c.ex/rc",
        "HA": "hyperty://a.ex/ha",
        "HA2": "hyperty://a.ex/ha2",
        "HB": "hyperty://b.ex/hb",
        "HB2": "hyperty://b.ex/hb2",
        "HC": "hyperty://c.ex/hc",
        "MNA": "domain://msg-node.a.ex",
        "MNB": "domain://msg-node.b.ex",
        "DRA": "domain://registry.a.ex",
        "DRB": "domain://registry.b.ex",
        "C1": "connection://a.ex/c1",
        "C2": "connection://b.ex/c2",
        "OBJ": "comm://a.ex/o1",
        "SA": "hyperty-runtime://a.ex/ra/protostub/1",
        "SAB": "hyperty-runtime://a.ex/ra/protostub/2",
        "SB": "hyperty-runtime://b.ex/rb/protostub/1",
        "SBA": "hyperty-runtime://b.ex/rb/protostub/2",
        "PQ": "hyperty-runtime://a.ex/ra/p2prequester/1",
        "PH": "hyperty-runtime://b.ex/rb/p2phandler/1",
        "PHC": "hyperty-runtime://b.ex/rb/p2phandler/1/conn/1",
        "SCH": _WELL_KNOWN.format("a", "dataschema/Connection"),
        "SCM": _WELL_KNOWN.format("a", "dataschema/Communication"),
        "CRQ": _WELL_KNOWN.format("b", "protocolstub/P2PRequester"),
    }
)
"""Addresses by macro."""


def expanded(value: Json) -> Json:
    """Write out the macros in a value: a whole text, or what stands before its first slash."""
    match value:
        case str():
            head, slash, tail = value.partition("/")
            return MACROS.get(head, head) + slash + tail
        case list():
            return [expanded(one) for one in value]
        case dict():
            return {key: expanded(one) for key, one in value.items()}
        case _:
            return value


_NO_OBJECTS: Final = frozenset(
    {
        "connection",
        "domain",
        "global",
        "hyperty",
        "hyperty-catalogue",
        "hyperty-runtime",
        "user",
        "user-guid",
    }
)
"""Schemes whose addresses are no data objects of hyperties."""


def is_hyperty(address: str) -> bool:
    """Return whether an address is a hyperty's, or below one."""
    return scheme_of(address) == "hyperty"


def is_object(address: str) -> bool:
    """Return whether an address is a hyperty's data object's, or below one."""
    return scheme_of(address) not in _NO_OBJECTS


def texts_in(value: Json) -> Iterator[str]:
    """Yield every text in a value."""
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from texts_in(one)
        case dict():
            for one in value.values():
                yield from texts_in(one)
        case _:
            return


_PATHS: Final = {
    "alloc": "address-allocation",
    "graph": "graph-connector",
    "registry": "registry",
    "sm": "sm",
    "ua": "ua",
}
"""Paths of a runtime's parts, by their short names."""

_LISTENERS: Final = {"alloc": "address-allocation", "registry": "registry", "sm": "sync-manager"}
"""The listeners of a Message BUS, by their short names."""

SANDBOX: Final = "sandbox"
"""Sender address of a component that forges it."""

_WHOLE: Final = frozenset({"", SANDBOX})
_NODE: Final = "domain"
_NODE_PLACE: Final = "MN."
_SEPARATOR: Final = "://"


@final
class Places:
    """The places of one scenario; all addresses returned are the scenario's.

    A place is named by a macro, by an alias, or by the last part of an address that is
    given, in any case; `MN.b` is the node of the domain whose first word is b;
    `sandbox(HA)` is the sandbox of HA.
    """

    def __init__(self, setting: Setting) -> None:
        self._nodes = {one.domain.partition(".")[0]: one.address for one in setting.all(Node)}
        self._named = {one.rpartition("/")[2].lower(): one for one in reversed(setting.named)}
        self._named |= {one.is_.lower(): one.for_ for one in setting.all(Alias)}

    def known(self) -> list[str]:
        """Return all words that name a place."""
        nodes = (f"{_NODE_PLACE}{label}" for label in self._nodes)
        return [*MACROS, *self._named, *nodes]

    def address(self, place: Place) -> str | None:
        """Return the address that a place means; None if nothing says which."""
        if place.root == SANDBOX:
            return self._word(place.note)
        if place.text.startswith(_NODE_PLACE):
            return self._nodes.get(place.root.removeprefix(_NODE_PLACE))
        return self._word(place.root)

    def _word(self, word: str) -> str | None:
        written = expanded(word)
        if isinstance(written, str) and _SEPARATOR in written:
            return written
        return self._named.get(word.lower())

    def process(self, place: Place) -> str | None:
        """Return the runtime or node that a place is in; None if nothing says it."""
        root = self.address(place)
        if root is None:
            return None
        if scheme_of(root) == RUNTIME_SCHEME:
            return runtime_of(root)
        return root if scheme_of(root) == _NODE else None

    def is_node(self, place: Place) -> bool:
        """Return whether a place is in a message node."""
        return scheme_of(self.address(place) or "") == _NODE

    def sender(self, place: Place) -> str | None:
        """Return the address under which a place submits; None if unknown."""
        root = self.address(place)
        if root is None or place.part in _WHOLE:
            return root
        path = _PATHS.get(place.part)
        return None if path is None else f"{root}/{path}"

    def listener(self, place: Place) -> str | None:
        """Return what a Message BUS calls the listener at a place; None if nothing says it.

        `HA(OBJ)` is an object of HA; its listener there is not specified.
        """
        if place.part in _LISTENERS:
            return _LISTENERS[place.part]
        root = self.address(place)
        is_named = place.part in _WHOLE and (not place.note or place.root == SANDBOX)
        return f"minibus:{root}" if root is not None and is_named else None
