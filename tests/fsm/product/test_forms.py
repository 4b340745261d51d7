"""The three forms of a counterexample are what their readers take."""

import json
import re

import attrs
import pytest

from actors.play.script.reader import read_script_lines
from fsm.compositions.p2p import P2P
from fsm.judge.replay import judge
from fsm.judge.trace_line import Claim, Verdict, read_line
from fsm.machine_list import MACHINES
from fsm.product.bounds import Bounds
from fsm.product.composition import End, Message, Never, Wire
from fsm.product.evidence import trace_of
from fsm.product.explorer import Fault, explore
from fsm.product.mermaid import sequence_diagram
from fsm.product.script import scenario_of
from fsm.product.steps import Kind
from tests.fsm.product.test_p2p import without_deadlines, without_refused
from tests.support.toy_product import CALL, RULES, TOO_LATE, Call, Deadline, toy

WAITS = attrs.evolve(CALL, deadlines=(Deadline(Call.ASKED, None, None, "without end"),))


def first(composition, fault):
    found = explore(composition)
    return found.composition, next(f for f in found.findings if f.fault is fault)


def p2p(tables, fault):
    return first(P2P.compose(tables, Bounds(losses=1, duplicates=0)), fault)


STUCK = first(toy(WAITS, losses=1), Fault.DEADLOCK)
UNREAD = first(toy(rules=tuple(r for r in RULES if r is not TOO_LATE)), Fault.UNSPECIFIED)
HALF_OPEN = p2p(without_deadlines("created", "in-progress"), Fault.DEADLOCK)
REFUSED = p2p(without_refused(), Fault.UNSPECIFIED)
ALL = pytest.mark.parametrize(("whole", "finding"), [STUCK, UNREAD, HALF_OPEN, REFUSED])


def records(whole, finding):
    lines = trace_of(whole, finding.run)
    return [read_line(line) for told in lines.values() for line in told]


# ---- diagram


def test_a_diagram_tells_the_run_line_by_line():
    whole, finding = STUCK
    assert sequence_diagram(whole, finding.run, "stuck; for ever").splitlines() == [
        "sequenceDiagram",
        "    title stuck, for ever",
        "    participant alice",
        "    participant bob",
        "    Note over alice: wish: ask",
        "    Note over alice: asker: [*] → asked by ask",
        "    alice-xbob: ask",
        "    Note over alice: in the end: asker asked",
    ]


STATEMENT = re.compile(
    r"    (title \S.*|participant \w+|Note over \w+: \S[^;#]*|\w+(->>|-x)\w+: \S[^;#]*)"
)


@ALL
def test_every_line_of_a_diagram_is_a_statement(whole, finding):
    head, *lines = sequence_diagram(whole, finding.run, "a run").splitlines()
    assert head == "sequenceDiagram"
    assert [line for line in lines if not STATEMENT.fullmatch(line)] == []


def test_what_nobody_expects_and_what_is_unread_is_in_the_diagram():
    whole, finding = UNREAD
    drawn = sequence_diagram(whole, finding.run, "unread")
    assert "bob-xalice: reply (nobody expects it)" in drawn
    assert "Note over alice: unread: reply" in drawn


# ---- trace


@ALL
def test_a_trace_is_whole_and_every_line_is_read(whole, finding):
    judged = judge(records(whole, finding), machines={p.table.name: p.table for p in whole.parts})
    assert [node.flaws for node in judged.nodes] == [frozenset()] * len(judged.nodes)
    # A message that nobody expects moves nobody: what moved was well.
    is_well = (whole, finding) == UNREAD
    assert judged.verdict is (Verdict.CONFORMANT if is_well else Verdict.VIOLATIONS)


def test_whoever_waits_for_ever_does_not_end_at_rest():
    judged = judge(records(*HALF_OPEN))
    assert set(judged.by_claim) == {Claim.ENDS_AT_REST}


def test_an_undeclared_step_is_a_refused_one():
    whole, finding = REFUSED
    machines = {part.table.name: part.table for part in whole.parts}
    judged = judge(records(whole, finding), machines=machines)
    assert Claim.REFUSED_STEP in judged.by_claim


def test_a_loss_is_a_fault_in_the_trace():
    lines = trace_of(*(STUCK[0], STUCK[1].run))["alice"]
    told = [json.loads(line) for line in lines]
    assert [line["k"] for line in told] == ["start", "state", "fault", "end"]
    assert (told[1]["key"], told[1]["cause"], told[2]["why"]) == ("call|1", "ask", "lost: ask")


# ---- scenario


@pytest.mark.parametrize(("whole", "finding"), [HALF_OPEN, REFUSED])
def test_a_scenario_is_read_by_the_player(whole, finding):
    text = scenario_of(whole, finding.run, "CX-1")
    (scenario,) = read_script_lines("x", text.encode().splitlines())
    assert len(scenario.steps) == text.count('"k":')
    assert scenario.setting.nodes


def test_a_scenario_has_messages_in_normal_form_with_the_ids_of_their_requests():
    """Of the run until `b` is linked: page 09, SC-16, has these messages too."""
    whole = P2P.compose(MACHINES, Bounds(losses=0, duplicates=0))
    live = {"a req 1": "live", "b hnd 1": "live"}
    ends = (End("all but live", ({"a req 1": "not live"}, {"b hnd 1": "not live"})),)
    never = attrs.evolve(whole.never[0], name="it is live", cases=(live,))
    found = explore(attrs.evolve(whole, never=(never,), ends=ends))
    run = next(f.run for f in found.findings if f.fault is Fault.UNSAFE)
    lines = [json.loads(line) for line in scenario_of(whole, run, "CX-2").splitlines()]
    messages = [line["msg"] for line in lines if line.get("k") == "msg"]
    invitation = next(m for m in messages if m["type"] == "create" and "source" in m["body"])
    assert (invitation["from"], invitation["to"]) == (
        "connection://a.ex/c1/subscription",
        "hyperty-runtime://b.ex/rb/p2phandler/1",
    )
    observing = next(m for m in messages if m["type"] == "subscribe")
    shown = next(m for m in messages if m["type"] == "response" and "value" in m["body"])
    assert (shown["id"], shown["to"]) == (observing["id"], observing["from"])
    assert shown["body"]["value"]["data"]["connectionDescription"]["type"] == "offer"
    states = [(line["old"], line["new"]) for line in lines if line.get("machine") == "p2p"]
    assert states[0] == (None, "created")
    assert states[-1] == ("in-progress", "live")


WIRED = tuple(
    Message(name, "toy", Wire(f"{one}>..>{other}", {"from": one, "to": other}, answers))
    for name, one, other, answers in (("ask", "RA", "RB", ""), ("reply", "RB", "RA", "ask"))
)


def run_to(end, losses=0):
    """A shortest run to where these parts are so."""
    whole = toy(losses=losses, messages=WIRED, never=(Never("it is so", (end,), "toy"),))
    found = explore(whole)
    return whole, next(f.run for f in found.findings if f.fault is Fault.UNSAFE)


def told(whole, run, rest=0.0):
    return [json.loads(line) for line in scenario_of(whole, run, "CX-3", rest).splitlines()]


def test_a_message_that_is_lost_stands_where_it_is_sent():
    """The wish sends it: however late it is lost, who plays it must know then."""
    whole, run = run_to({"asker": "late", "there": "empty", "back": "empty"}, losses=1)
    late = attrs.evolve(run, steps=tuple(sorted(run.steps, key=lambda one: one.kind is Kind.LOST)))
    lines = told(whole, late)
    assert [line["k"] for line in lines] == ["call", "state", "msg", "time", "state"]
    assert (lines[2]["msg"]["to"], lines[2]["drop"]) == ("RB", "lost")


def test_a_message_that_comes_twice_is_told_once():
    whole, run = run_to({"asker": "done"})
    wish, asked, answered = run.steps
    kept = attrs.evolve(asked, kind=Kind.DELIVERED_AND_KEPT)
    lines = told(whole, attrs.evolve(run, steps=(wish, kept, asked, answered)))
    messages = [line for line in lines if line.get("k") == "msg"]
    assert [line["msg"]["to"] for line in messages] == ["RB", "RA"]
    assert [line.get("doubled") for line in messages] == [True, None]
    assert [line["msg"]["id"] for line in messages] == [1, 1]


def test_of_those_who_wait_for_ever_a_scenario_tells_that_nothing_happens_then():
    last = told(*run_to({"asker": "done"}), rest=60.0)[-1]
    assert (last["k"], last["dt"]) == ("time", 60.0)
