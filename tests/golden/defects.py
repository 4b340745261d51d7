"""A defect in each concern, put in on purpose: a recording that does not show it is worth nothing.

Each makes another of one method, as a slip of somebody who rewrites the concern would. None is so
large that nothing works any more.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import attrs

from fsm.bus.transactions import TransactionsCore
from fsm.group.rows import RowsCore
from fsm.p2p.link_end import LinkEnd
from fsm.registry.allocation import AllocationCore
from fsm.registry.registration import RegistrationCore
from fsm.registry.resolve.resolve import ResolveCore
from fsm.session.node_session import NodeSessionCore
from fsm.session.stub_client import StubClientCore
from fsm.sync.copy import ObserverCore
from fsm.sync.reporter import ReportedObject
from fsm.sync.subscriptions import SubscriptionCore
from tests.support.shape import assert_same_shape


@attrs.frozen
class Defect:
    """A defect.

    Attributes:
        method: The name of the method.
        made: Makes the other method of the sound one.
        part: What shows it.
    """

    owner: type
    method: str
    made: Callable[[Callable], Callable]
    part: str


def _patient(_sound):
    """Patience has no end."""
    return lambda _self: math.inf


def _nothing(_sound):
    """Nothing is done."""
    return lambda _self, *_input: None


DEFECTS: Final[Mapping[str, Defect]] = {
    "bus": Defect(TransactionsCore, "deadline", _patient, "seed-plain-2"),
    "registry": Defect(RegistrationCore, "_change", _nothing, "seed-plain-4"),
    "allocation": Defect(AllocationCore, "free", _nothing, "seed-plain-4"),
    "routes": Defect(ResolveCore, "entities_listed", _nothing, "seed-plain-4"),
    "p2p": Defect(LinkEnd, "_stop_dialling", _nothing, "seed-plain-4"),
    "sync": Defect(ReportedObject, "_accept", _nothing, "seed-plain-4"),
    "objects": Defect(ObserverCore, "_apply", _nothing, "seed-plain-1"),
    "session": Defect(StubClientCore, "note_life", _nothing, "seed-plain-4"),
    "node links": Defect(NodeSessionCore, "close", _nothing, "seed-plain-4"),
    "node tables": Defect(SubscriptionCore, "withdraw", _nothing, "seed-plain-4"),
    "group": Defect(RowsCore, "_confirm", _nothing, "seed-group-1001"),
}


@contextmanager
def defective(defect: Defect) -> Iterator[None]:
    """Have a defect in the product."""
    sound = defect.owner.__dict__[defect.method]
    broken = defect.made(sound)
    assert_same_shape(sound, broken)
    setattr(defect.owner, defect.method, broken)
    try:
        yield
    finally:
        setattr(defect.owner, defect.method, sound)
