"""The capabilities of a runtime, by which constraints of descriptors are judged (CAT-04, STB-12).

Code of a catalogue runs in a sandbox process; profiles name stubs that ship with the runtime.
"""

import sys
from typing import Final

from actors.pipe.code import importable
from actors.runtime.catalogue import SHIPPED
from actors.runtime.config import RuntimeConfig
from actors.runtime.p2p.stub import LINK_STUBS
from specs.jsonvalue import JsonObject
from specs.limits.protocol import SANDBOX_MEMORY
from transports.link import Kind

_MIB: Final = 1_048_576
_DIALLED: Final = (Kind.WEBSOCKET, Kind.TCP, Kind.STREAM)


def hyperty_capabilities(config: RuntimeConfig) -> JsonObject:
    """Return the capabilities of a runtime for hyperties of catalogues.

    Args:
        config: Configuration of the runtime.
    """
    return {
        **_common(config),
        "network": False,
        "dataObjects": True,
        "storedObjects": config.store is not None,
    }


def protocol_capabilities(config: RuntimeConfig) -> JsonObject:
    """Return the capabilities of a runtime for stubs of catalogues.

    Args:
        config: Configuration of the runtime.
    """
    return {
        **_common(config),
        "network": True,
        "transports": [str(kind) for kind in _DIALLED],
        "stubs": [*SHIPPED, *LINK_STUBS],
    }


def _common(config: RuntimeConfig) -> JsonObject:
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "memory": SANDBOX_MEMORY // _MIB,
        "sandbox": True,
        "files": False,
        "distributions": list(importable()),
        "directLinks": [str(kind) for kind in config.kinds],
    }
