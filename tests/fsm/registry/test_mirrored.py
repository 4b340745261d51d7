"""What other nodes of the domain have decided, as the cores of one node take it over."""

import attrs

from fsm.effects import RowChanged
from fsm.engine import Step
from fsm.machines.registration import State
from fsm.registry.allocation import MIRROR, AllocationCore
from fsm.registry.records import Create, Row
from specs.limits.node import RECORD_RETRY
from specs.limits.protocol import REGISTRATION_EXPIRES
from specs.trace import Op
from tests.support.link_calls import is_asked
from tests.support.lone_registry import LoneRegistry, tell

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://a.ex/rb"
URL = "hyperty://a.ex/1"


def rows(effects):
    return [(one.op, one.key, one.val) for one in effects if isinstance(one, RowChanged)]


def test_a_mirrored_address_has_an_owner_and_no_history_here():
    core = AllocationCore()
    taken = core.mirror(RA, URL)
    assert rows(taken) == [(Op.ADD, URL, RA)]
    assert taken[0].writer == MIRROR
    assert core.owner_of(URL) == RA
    gone = core.mirror_gone(URL)
    assert rows(gone) == [(Op.DEL, URL, RA)]
    assert not [one for one in (*taken, *gone) if isinstance(one, Step)]
    assert core.is_tombstone(URL)


def test_an_address_that_goes_to_another_runtime_elsewhere_goes_here_too():
    core = AllocationCore()
    core.claim(RA, (URL,))
    assert rows(core.mirror(RB, URL)) == [(Op.DEL, URL, RA), (Op.ADD, URL, RB)]
    assert core.mirror(RB, URL) == []
    steps = [one.new for one in core.release(RB, "over") if isinstance(one, Step)]
    assert steps == ["released"]


def test_only_one_node_lets_a_record_expire():
    ours = set()
    core = LoneRegistry((), ours.__contains__)
    core.feed(Create(URL, RA, RA, {"url": URL, "runtime": RA}), 0.0)
    core.settle()
    late = REGISTRATION_EXPIRES + 1
    assert core.feed(tell.tick(), late) == []
    assert core.deadline() == late + RECORD_RETRY
    ours.add(URL)
    effects = core.feed(tell.tick(), late + RECORD_RETRY)
    step, keep, report = effects
    assert (step.new, keep.name, report.name) == ("disconnected", "keep", "report_status")


def test_a_mirrored_record_is_found_and_not_reported():
    core = LoneRegistry()
    row = Row(URL, RA, State.LIVE, 0.0, {"url": URL, "runtime": RA, "status": "live"}, 7)
    assert core.feed(tell.mirror(URL, row), 0.0) == []
    assert core.row(URL) == row
    assert core.feed(tell.mirror(URL, None), 0.0) == []
    assert core.row(URL) is None


def test_a_record_of_this_node_that_another_changes_makes_its_steps():
    core = LoneRegistry()
    core.feed(Create(URL, RA, RA, {"url": URL, "runtime": RA}), 0.0)
    row = attrs.evolve(core.row(URL), status=State.DISCONNECTED)
    (step,) = core.feed(tell.mirror(URL, row), 1.0)
    assert step.new == State.DISCONNECTED
    (step,) = core.feed(tell.mirror(URL, None), 2.0)
    assert step.new == State.DEAD
    assert not [one for one in core.feed(tell.tick(), 1e9) if is_asked(one, "forget")]
    assert core.feed(tell.rest(), 1e9) == []
