"""The short names of the scenarios' page, which scenario files may use for addresses."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from specs.jsonvalue import Json

__all__ = ["MACROS", "expanded"]

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
