"""What other nodes of the domain have decided, as the cores of one node take it over."""

import attrs

from fsm.engine import Step
from fsm.machines.registration import State
from fsm.registry.allocation import MIRROR, AllocationCore, AllocationPort
from fsm.registry.records import Create, Row
from specs.limits.node import RECORD_RETRY
from specs.limits.protocol import REGISTRATION_EXPIRES
from specs.trace import Op
from tests.support.link_calls import RecordingPort, is_asked
from tests.support.lone_registry import LoneRegistry, tell

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://a.ex/rb"
URL, WRITER = "hyperty://a.ex/1", "address-allocation"


def rows(asked):
    found = [one.row for one in asked if is_asked(one, "row_changed")]
    return [(one.op, one.key, one.val, one.writer) for one in found]


def steps(asked):
    return [one.new for one in asked if isinstance(one, Step)]


def test_a_mirrored_address_has_an_owner_and_no_history_here():
    core = AllocationCore(port := RecordingPort(AllocationPort))
    core.mirror(RA, URL)
    assert core.owner_of(URL) == RA
    core.mirror_gone(URL)
    asked = port.take()
    assert rows(asked) == [(Op.ADD, URL, RA, MIRROR), (Op.DEL, URL, RA, WRITER)]
    assert not steps(asked)
    assert core.is_tombstone(URL)


def test_an_address_that_goes_to_another_runtime_elsewhere_goes_here_too():
    core = AllocationCore(port := RecordingPort(AllocationPort))
    core.claim(RA, (URL,))
    port.take()
    core.mirror(RB, URL)
    core.mirror(RB, URL)
    assert rows(port.take()) == [(Op.DEL, URL, RA, MIRROR), (Op.ADD, URL, RB, MIRROR)]
    core.release(RB, "over")
    assert steps(port.take()) == ["released"]


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
