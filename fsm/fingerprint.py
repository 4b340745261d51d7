"""The hash of a machine: what a stub from elsewhere says it follows (T12, T23).

Only what decides counts: states, rows and ends, in an order of their own. Sources, drawings
and words for people may change, and the machine is the same.
"""

import json
from collections.abc import Iterable
from hashlib import sha256

from fsm.table import Table

__all__ = ["fingerprint", "fingerprints"]


def fingerprint(table: Table) -> str:
    """Return the hash of a machine: 64 hexadecimal digits."""
    rows = sorted(
        [
            row.old,
            row.trigger.value,
            row.target.value,
            sorted(one.value for one in row.guard.when),
            sorted(one.value for one in row.guard.unless),
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
    """Return machines by their hashes."""
    return {fingerprint(table): table for table in tables}
