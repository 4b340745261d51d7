"""A reporter and an observer of its object: changes are lost and doubled, and all is well again.

Who meets: `fsm.sync.reporter` and `fsm.sync.invitations` at the reporter's sync
manager, `fsm.sync.copy` at the observer. What may happen: requests and answers are
lost, changes and the farewell are lost, changes come twice; the reporter invites, refuses
or says nothing, the observer leaves, the object is deleted. Whatever it is: where nothing is
under way any more, the copy has the version of the object, or there is no copy.

Left out, and why that is no loss:

* Renewals of a copy that is there, and leases that are over in spite of it: such a copy
  subscribes again, which are the steps of its beginning.
* Values: versions say all; three changes are enough for a gap, and one more that comes
  while the object is read.
* Repeats that change nothing, and reads of quiet copies that find nothing new.
* Paths and the observer's sync manager: changes reach the copy from its wish to observe to
  its end; one that comes before the path stood is in the snapshot anyway.
* Requests and answers that come twice: the bus drops the second (`SeenWindow` of
  `fsm.bus.deduplication`). Changes are doubled all the same: they may come by two paths.
* Requests carry no numbers, so answers of older ones are taken too: more than can happen.
* A read is made again only when the one before was read or lost: its time is over late.
* The order of changes is kept, and so is that of answers, but not that of the two.

A last change that is lost is said again, and a lost farewell of the reporter is found by
the read of a copy that hears nothing (I-D4). A lost farewell of the observer leaves it a
subscriber until its lease is over, which nobody renews.
"""

from collections.abc import Mapping
from typing import Final

import attrs

from fsm.compositions.sync_observer import observer_rules
from fsm.compositions.sync_reporter import reporter_rules
from fsm.compositions.sync_terms import (
    CHANNELS,
    GIVEN,
    MESSAGES,
    NEVER,
    VARIABLES,
    ends,
    parts,
    wishes,
)
from fsm.product.bounds import Bounds
from fsm.product.composition import Composition, Plan
from fsm.table import Table

__all__ = ["SYNC_PLAN", "compose"]


def compose(tables: Mapping[str, Table], bounds: Bounds) -> Composition:
    """Make the composition of these tables."""
    return Composition(
        name="sync",
        about="A reporter and an observer of its object, and a network that loses changes.",
        parts=parts(tables),
        variables=VARIABLES,
        channels=CHANNELS,
        messages=MESSAGES,
        wishes=wishes(bounds),
        rules=(*reporter_rules(), *observer_rules()),
        never=NEVER,
        ends=ends(),
        bounds=attrs.evolve(bounds, duplicates=0),
        given=GIVEN,
    )


SYNC_PLAN: Final = Plan("sync", compose, Bounds(losses=1, duplicates=1, channel=2))
