"""What other nodes of the domain have decided, as the cores of one node take it over."""

from fsm.engine import Step
from fsm.registry.allocation import MIRROR, AllocationCore, AllocationPort
from fsm.registry.records import Create
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
