"""All declared state machines by name, and their hashes.

A stub of another vendor states the hashes of the machines that it implements (T12, T23). A hash
covers states, transitions and final states, in a fixed order. Sources, drawings and texts for
people may change without changing the hash.
"""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Final

from fsm.machines.address import ADDRESS
from fsm.machines.group_membership import GROUP_MEMBERSHIP
from fsm.machines.handler_controller import HANDLER_CONTROLLER
from fsm.machines.p2p_connection import LINK_DIALLING, P2P_CONNECTION
from fsm.machines.p2p_entry import P2P_ENTRY
from fsm.machines.registration import REGISTRATION
from fsm.machines.resolve_job import RESOLVE_JOB
from fsm.machines.session import SESSION
from fsm.machines.stub_connection import NODE_LINK, STUB_CONNECTION
from fsm.machines.stub_deployment import STUB_DEPLOYMENT
from fsm.machines.sync.invitation import INVITATION
from fsm.machines.sync.node_subscription import NODE_SUBSCRIPTION
from fsm.machines.sync.object_subscription import OBJECT_SUBSCRIPTION
from fsm.machines.sync.observer_copy import OBSERVER_COPY
from fsm.machines.transaction import TRANSACTION
from fsm.table import Table, UnknownMachineError


def fingerprint(table: Table) -> str:
    """Return the hash that identifies a machine's table: 64 hexadecimal digits."""
    rows = sorted(
        [
            row.old,
            row.trigger.value,
            row.target.value,
            sorted(each.value for each in row.guard.when),
            sorted(each.value for each in row.guard.unless),
        ]
        for row in table.rows
    )
    canonical = {
        "machine": table.name,
        "states": sorted(state.value for state in table.states),
        "rows": rows,
        "may_end": sorted(state.value for state in table.may_end),
    }
    return sha256(json.dumps(canonical, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def fingerprints(tables: Iterable[Table]) -> dict[str, Table]:
    """Return the given machines in a dictionary, by their hashes."""
    return {fingerprint(table): table for table in tables}


_ALL: Final = (
    P2P_CONNECTION,
    LINK_DIALLING,
    HANDLER_CONTROLLER,
    P2P_ENTRY,
    STUB_DEPLOYMENT,
    STUB_CONNECTION,
    NODE_LINK,
    RESOLVE_JOB,
    TRANSACTION,
    SESSION,
    GROUP_MEMBERSHIP,
    ADDRESS,
    NODE_SUBSCRIPTION,
    REGISTRATION,
    OBJECT_SUBSCRIPTION,
    INVITATION,
    OBSERVER_COPY,
)

MACHINES: Final[Mapping[str, Table]] = MappingProxyType({table.name: table for table in _ALL})
"""All declared state machines, by the name that traces use."""


def table_named(name: str) -> Table:
    """Return the machine that has a name.

    Raises:
        UnknownMachineError: No machine has this name.
    """
    if name not in MACHINES:
        raise UnknownMachineError(name, MACHINES)
    return MACHINES[name]
