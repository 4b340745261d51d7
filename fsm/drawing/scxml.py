"""SCXML (W3C State Chart XML) from a table.

`[*]` is the initial state `absent`. A state that may end and has no way out is
`<final>`; one that may also move stays a `<state>`, marked `p:may-end`. What SCXML has
no word for (citation, deadline, extension) stands in attributes of our own namespace. The
conditions of a guard are boolean fields of the event's data.
"""

from html import escape
from typing import Final

from fsm.drawing.ids import node_name
from fsm.guard import ALWAYS
from fsm.table import Table, Transition
from specs.trace import ABSENT

__all__ = ["NAMESPACE", "scxml"]

NAMESPACE: Final = "urn:protofly:fsm"
"""The namespace of what SCXML has no word for."""

_W3C: Final = "http://www.w3.org/2005/07/scxml"


def scxml(table: Table) -> str:
    """The table as an SCXML document."""
    named = f'version="1.0" datamodel="ecmascript" name="{escape(table.name)}" initial="absent"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<scxml xmlns="{_W3C}" xmlns:p="{NAMESPACE}" {named}>',
        '  <state id="absent">',
        *_ways(table, ABSENT),
        "  </state>",
    ]
    for state in table.states:
        lines += _state(table, state.value)
    return "\n".join([*lines, "</scxml>", ""])


def _state(table: Table, state: str) -> list[str]:
    ways = _ways(table, state)
    named = f'id="{node_name(state)}" p:name="{escape(state)}"'
    for deadline in table.deadlines:
        if deadline.state == state and deadline.limit and deadline.trigger:
            named += f' p:deadline="{deadline.limit}" p:then="{deadline.trigger.value}"'
    if state in table.may_end:
        if not ways:
            return [f"  <final {named}/>"]
        named += ' p:may-end="true"'
    return [f"  <state {named}>", *ways, "  </state>"]


def _ways(table: Table, state: str) -> list[str]:
    return [_transition(row) for row in table.rows if row.old == state]


def _transition(row: Transition) -> str:
    origin = ' p:extension="true"' if row.extension else ""
    event, target = row.trigger.value, node_name(row.target)
    guard = f' cond="{_condition(row)}"' if row.guard != ALWAYS else ""
    cite = escape(row.cite)
    return f'    <transition event="{event}"{guard} target="{target}" p:cite="{cite}"{origin}/>'


def _condition(row: Transition) -> str:
    """The guard as an ECMAScript expression: what is true comes with the event."""
    needed = [(one, "true") for one in sorted(row.guard.when)]
    needed += [(one, "false") for one in sorted(row.guard.unless)]
    said = [f"_event.data.{node_name(one)} === {value}" for one, value in needed]
    return escape(" && ".join(said))
