"""All machines by name: what runs, what is drawn, and what traces are judged by."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fsm.machines.address import ADDRESS
from fsm.machines.p2p_connection import P2P_CONNECTION
from fsm.machines.registration import REGISTRATION
from fsm.machines.session import SESSION
from fsm.machines.stub_connection import STUB_CONNECTION
from fsm.machines.stub_deployment import STUB_DEPLOYMENT
from fsm.table import Table

__all__ = ["MACHINES"]

_ALL: Final = (
    P2P_CONNECTION,
    STUB_DEPLOYMENT,
    STUB_CONNECTION,
    SESSION,
    ADDRESS,
    REGISTRATION,
)

MACHINES: Final[Mapping[str, Table]] = MappingProxyType({table.name: table for table in _ALL})
"""Every declared machine, by the name that traces use."""
