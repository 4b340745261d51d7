"""A node's lease by its own clock, and the other members by the engine's word."""

from fsm.engine import Step
from fsm.group.membership import MembershipCore, MembershipPort
from fsm.machines.group_membership import GROUP_MEMBERSHIP
from tests.support.link_calls import Calls, Told, is_asked
from tests.support.trace.memory import MemoryTracer

tell, asks = Calls(MembershipCore), Calls(MembershipPort)


def member(node="a", address=""):
    return Told(MembershipPort, lambda port: MembershipCore(node, port, address))


def of(effects, name):
    return [one for one in effects if is_asked(one, name)]


def put_of(effects):
    (put,) = of(effects, "put_lease")
    return put.lease


def written(core, put, revision, now=0.0):
    """Answer the request, and have the watch bring the row; return what is to be done."""
    effects = core.tell(tell.take_written(put.number, revision), now)
    return [*effects, *core.tell(tell.take_node(core.node, put.row, revision), now)]


# ---- the machine

PATHS = {
    "leaves": (tell.leave(), tell.go()),
    "goes at once": (tell.go(),),
    "is fenced and comes back": (tell.take_node("a", None, 9), tell.join(2), tell.go()),
    "is fenced for good": (tell.take_node("a", None, 9), tell.go()),
    "is fenced while it leaves": (tell.leave(), tell.take_node("a", None, 9)),
}


def test_these_are_all_paths_of_a_membership():
    taken = set()
    for number, path in enumerate(PATHS.values()):
        tracer = MemoryTracer()
        core = member(f"a{number}")
        steps = core.tell(tell.join(1), 0.0)
        put = put_of(steps)
        core.tell(tell.begin_watch(), 0.0)
        core.tell(tell.end_list(), 0.0)
        steps += written(core, put, 1)
        for one in path:
            is_row = is_asked(one, "take_node")
            call = tell.take_node(core.node, one.row, one.revision) if is_row else one
            steps += core.tell(call, 0.1)
        for each in (one for one in steps if isinstance(one, Step)):
            tracer.step("group", each)
            taken.add((each.old, each.cause, each.new))

    rows = {(row.source, row.trigger, row.target) for row in GROUP_MEMBERSHIP.rows}
    assert taken == rows
