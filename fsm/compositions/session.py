"""A node's stub and its session at the node, over links that are cut and dialled again.

Who meets: `fsm.session.stub_client`, `fsm.session.node_session`, and the node's tables
(`fsm.registry.allocation`, `fsm.sync.subscriptions.subscriptions`), which change with the
session in one step of the node. What may happen: any message is lost or comes twice, the link is
cut, the node restarts, the stub is told to disconnect, and the runtime allocates, subscribes,
unsubscribes and frees one address.

Left out, and why that is no loss:

* Time. A deadline may be over at any moment, so pings are left out: that one was not
  answered may always be so. Pauses between attempts and their number are left out too;
  a run dials at most three times, and has found nobody any more from then on.
* The end of a link is a message, by its channel behind all that was sent before (`gone`,
  `cut`); where that is lost, only a deadline shows it: a half-open link.
* What queues, and messages of the application: `fsm.session.stub_client` has no state that
  the session looks at. Answers of the node's desks: the stub does not look at them.
* A restarted node may still read what its predecessor was sent: more than can happen.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from fsm.compositions.session_node import node_rules
from fsm.compositions.session_stub import stub_rules
from fsm.compositions.session_terms import (
    CHANNELS,
    ENDS,
    GIVEN,
    MESSAGES,
    NEVER,
    VARIABLES,
    WISHES,
    parts,
)
from fsm.product.bounds import Bounds
from fsm.product.composition import Composition, Plan
from fsm.product.rule import Rule
from fsm.table import Table

__all__ = ["SESSION_PLAN", "compose"]


def compose(tables: Mapping[str, Table], bounds: Bounds) -> Composition:
    """Make the composition of these tables."""
    return Composition(
        name="session",
        about="A node's stub and its session, over links that are cut and dialled again.",
        parts=parts(tables),
        variables=VARIABLES,
        channels=CHANNELS,
        messages=MESSAGES,
        wishes=WISHES,
        rules=tuple(_rules()),
        never=NEVER,
        ends=ENDS,
        bounds=bounds,
        given=GIVEN,
    )


def _rules() -> Iterator[Rule]:
    yield from stub_rules()
    yield from node_rules()


SESSION_PLAN: Final = Plan("session", compose, Bounds(losses=1, duplicates=0, channel=2))
