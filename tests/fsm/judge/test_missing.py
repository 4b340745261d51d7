"""What traces do not tell, and what may be missing without a word (OBS-01)."""

import pytest

from fsm.judge.trace_line import TraceLine
from fsm.judge.verdict import judge_run
from tests.support.trace.histories import reported

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://a.ex/rb"
MN = "domain://msg-node.a.ex"
STUB = f"{RA}/protostub/1"
LINK = f"{RA}/p2prequester/1"


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
OPENED = {"k": "link", "op": "open", "link": "L", "a": RA, "b": RB, "kind": "p2p", "stub": LINK}
SENT = message("xmit", stub=STUB, link="l", seq=1, via=STUB)


def test_a_runtime_is_known_by_its_stub_in_a_message_that_came():
    came = trace(message("rcv", link="l", via=f"{RB}/protostub/1|{STUB}"), LISTENS)

    assert found(*came) == [
        ("ra", 2, f"there is no trace of {RB}, whose stub carried a message here")
    ]
    assert found(*came, untraced=[RB]) == []


def test_a_runtime_is_known_by_a_direct_link():
    assert found(*trace(LISTENS, OPENED)) == [
        ("ra", 3, f"there is no trace of {RB}, which a direct link led to here")
    ]


def test_a_node_is_known_by_what_a_stub_exchanged_with_it():
    alone = trace(LISTENS, STUB_ROW, SENT)

    assert found(*alone) == [("ra", 4, f"there is no trace of {MN}, which exchanged messages here")]
    assert found(*alone, *trace(SESSION, node="node.a.ex")) == []
    assert found(*alone, untraced=["a.ex"]) == []


def test_a_stub_that_was_never_used_proves_no_node():
    assert found(*trace(LISTENS, STUB_ROW)) == []


def test_a_peer_with_an_unknown_protocol_needs_no_trace():
    """Its stub runs in a sandbox, which numbers nothing."""
    assert found(*trace(LISTENS, STUB_ROW, SENT | {"seq": None})) == []


def test_of_an_upstream_peer_no_trace_is_expected():
    """It has a session, and its stub stamps nothing."""
    assert found(*trace(SESSION, message("rcv", link="l"), node="node.a.ex")) == []


def test_a_runtime_that_was_killed_and_came_back_took_part_with_a_trace():
    killed = trace(LISTENS)[:-1]
    again = trace(LISTENS, run="r2")
    other = trace(message("rcv", link="l", via=STUB), node="rb")

    end = "it has no end: the process crashed, was killed, or still runs"
    assert found(*killed, *again, *other) == [("ra", 2, end)]


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


def asked(*more):
    ends = {"by": "hyperty://a.ex/1", "actor": "bus"}
    return trace(LISTENS, message("submit", **ends), *more)


def test_a_request_without_an_answer_is_missed():
    reason = "the final answer to m is not recorded, nor that there was none"
    assert found(*asked()) == [("ra", 3, reason)]


def test_a_request_that_the_end_of_its_runtime_refuses_is_not_missed():
    key = "hyperty://a.ex/1|hyperty://a.ex/2|1"
    step = {"k": "state", "op": "step", "machine": "transaction", "key": key, "actor": "bus"}
    refused = step | {"old": "pending", "new": "final", "cause": "refused"}
    answered = step | {"old": "pending", "new": "final", "cause": "answered"}

    assert found(*asked(refused)) == []
    assert len(found(*asked(answered))) == 1


def test_a_request_that_a_killed_process_made_is_not_missed_but_its_end_is():
    ((_, _, reason),) = found(*asked()[:-1])
    assert reason.startswith("it has no end")


def sent(mid, *ops, via=STUB, link="l"):
    """Records of one message, at one process."""
    return [message(op, mid=mid, via=via, link=link, seq=1) for op in ops]


FIRST_LIFE = trace(LISTENS, STUB_ROW, *[one | {"stub": STUB} for one in sent("1", "xmit")])
SECOND_LIFE = trace(
    LISTENS, STUB_ROW, *[one | {"stub": STUB} for one in sent("2", "xmit")], run="r2"
)
NODE_ROW = {"k": "link", "op": "open", "link": "l", "a": MN}
GOT_BOTH = trace(
    NODE_ROW, *sent("1", "rcv", link="l1"), *sent("2", "rcv", link="l2"), node="node.a.ex"
)
LOST = f"no trace of {RA} has sent what came from it: that of a run is missing"


def test_a_run_without_a_trace_is_known_by_what_came_from_it():
    assert found(*FIRST_LIFE, *SECOND_LIFE, *GOT_BOTH) == []
    assert found(*SECOND_LIFE, *GOT_BOTH) == [("node.a.ex", 3, LOST)]
    assert found(*FIRST_LIFE, *GOT_BOTH) == [("node.a.ex", 4, LOST)]


def test_a_run_of_a_node_without_a_trace_is_known_likewise():
    got = trace(LISTENS, STUB_ROW, *[one | {"stub": STUB} for one in sent("3", "rcv", via=None)])
    sender = trace(NODE_ROW, *sent("3", "xmit", via=None), node="node.a.ex")
    other = trace(NODE_ROW, node="node.a.ex", run="r2")

    assert found(*got, *sender, *other) == []
    assert [reason for _, _, reason in found(*got, *other)] == [LOST.replace(RA, MN)]


def test_the_last_messages_of_a_killed_process_prove_no_other_run():
    assert [one[2][:13] for one in found(*SECOND_LIFE[:-1], *GOT_BOTH)] == ["it has no end"]


def test_of_many_messages_of_which_few_arrived_none_is_missed():
    """Each end keeps a few of what it saw: of what was sent much may be lost."""
    many = [one | {"stub": STUB} for at in range(200) for one in sent(f"m{at}", "xmit")]
    sender = trace(LISTENS, STUB_ROW, *many)

    for at in range(200):
        came = trace(NODE_ROW, *sent(f"m{at}", "rcv"), node="node.a.ex")
        assert found(*sender, *came) == []


LASTING_LINK = """
x open L kind=p2p a=RA b=RB
t 100
x close L kind=p2p a=RA b=RB
"""


def test_a_peer_of_which_a_run_is_missing_is_not_said_to_be_silent():
    via = "via=hyperty-runtime://a.ex/rb/protostub/1"
    peer = "@rb\nbus add listeners RB/ua loader\nx xmit read 2 HB>HA stub=SB link=k seq=1 via=SB\n"
    node = f"@mn\nx open l a=MN\nx rcv read 1 HB>HA link=l {via}\n"
    history = f"bus add listeners RA/ua loader\n{LASTING_LINK}{peer}"

    assert judge_run(reported(history)).by_claim == {"I-P4": 1}
    assert judge_run(reported(history + node)).by_claim == {}
