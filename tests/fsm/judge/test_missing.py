"""What traces do not tell, and what may be missing without a word (OBS-01)."""

import pytest

from fsm.judge.trace_line import TraceLine
from fsm.judge.verdict import judge_run

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://a.ex/rb"
MN = "domain://msg-node.a.ex"
STUB = f"{RA}/protostub/1"


def trace(*facts, node="ra", run="r1"):
    """A process's records, between a start and an end."""
    lines = [{"k": "start"}, *facts, {"k": "end"}]
    return [TraceLine(run=run, node=node, ln=ln, **fact) for ln, fact in enumerate(lines, start=1)]


def found(*lines, untraced=()):
    return [(one.node, one.ln, one.reason) for one in judge_run(lines, untraced=untraced).missing]


def message(op, **more):
    ends = {"type": "read", "id": 1, "from_": "hyperty://a.ex/1", "to": "hyperty://a.ex/2"}
    return {"k": "msg", "op": op, "actor": "x", "mid": "m", **ends, **more}


LISTENS = {"k": "table", "table": "listeners", "actor": "bus", "op": "add", "key": f"{RA}/sm"}
STUB_ROW = {"k": "table", "table": "stubs", "op": "add", "key": "a.ex", "val": f"{STUB} live"}
SESSION = {"k": "session", "link": "l", "a": MN, "b": RB}
SENT = message("xmit", stub=STUB, link="l", seq=1, via=STUB)


def test_a_node_is_known_by_what_a_stub_exchanged_with_it():
    alone = trace(LISTENS, STUB_ROW, SENT)

    assert found(*alone) == [("ra", 4, f"there is no trace of {MN}, which exchanged messages here")]
    assert found(*alone, *trace(SESSION, node="node.a.ex")) == []
    assert found(*alone, untraced=["a.ex"]) == []


@pytest.mark.parametrize(
    ("spoilt", "flaw"),
    [
        (lambda reported: reported[1:], (2, "it does not begin with its start")),
        (
            lambda reported: [*reported[:2], *reported[4:]],
            (5, "records 3-4 are missing before this one"),
        ),
        (lambda reported: [*reported[:2], *reported[1:]], (2, "record 2 is there twice")),
    ],
)
def test_a_flaw_has_its_place(spoilt, flaw):
    reported = trace(LISTENS, LISTENS, LISTENS)

    assert ("ra", *flaw) in found(*spoilt(reported))


def sent(mid, *ops, via=STUB, link="l"):
    """Records of one message, at one process."""
    return [message(op, mid=mid, via=via, link=link, seq=1) for op in ops]


NODE_ROW = {"k": "link", "op": "open", "link": "l", "a": MN}
LOST = f"no trace of {RA} has sent what came from it: that of a run is missing"


def test_a_run_of_a_node_without_a_trace_is_known_likewise():
    got = trace(LISTENS, STUB_ROW, *[one | {"stub": STUB} for one in sent("3", "rcv", via=None)])
    sender = trace(NODE_ROW, *sent("3", "xmit", via=None), node="node.a.ex")
    other = trace(NODE_ROW, node="node.a.ex", run="r2")

    assert found(*got, *sender, *other) == []
    assert [reason for _, _, reason in found(*got, *other)] == [LOST.replace(RA, MN)]
