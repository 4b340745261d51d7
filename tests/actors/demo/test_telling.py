"""Facts become sentences, sentences stand in their act."""

import pytest

from actors.demo.script import ACTS, Beat, Line, Narrator, What, short
from actors.demo.stage import Director
from specs.trace import Fact, Kind, Op

R = "hyperty-runtime://a.ex"
H = "hyperty://a.ex/12345678-1234"
C = "connection://a.ex/87654321-1234"
PQ, PC = f"{R}/alice/p2prequester/1", f"{R}/bob/p2phandler/1/conn/1"


def state(machine, key, new, cause="c"):
    return Fact(k=Kind.STATE, op=Op.STEP, machine=machine, key=key, new=new, cause=cause)


def table(name, op, key, val):
    return Fact(k=Kind.TABLE, op=op, table=name, key=key, val=val)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (f"{R}/alice", "alice"),
        (PC, "bob/p2phandler/1/conn/1"),
        (H, "hyperty 12345678"),
        (f"{C}/changes", "connection 87654321/changes"),
        ("domain://msg-node.a.ex/sm", "msg-node.a.ex/sm"),
        ("domain://registry.a.ex", "registry.a.ex"),
        ("no address", "no address"),
        (None, "no address"),
    ],
)
def test_long_addresses_are_shortened(address, shown):
    assert short(address) == shown


@pytest.mark.parametrize(
    ("fact", "text", "beat"),
    [
        (
            state("stub_deployment", f"{R}/bob/protostub/1", "deployed"),
            "the node stub is deployed: bob/protostub/1",
            Beat.NODE_STUB_DEPLOYED,
        ),
        (
            state("stub_connection", f"{R}/bob/protostub/1", "live"),
            "bob/protostub/1 is live: its session is open",
            Beat.NODE_STUB_LIVE,
        ),
        (
            state("session", f"domain://n|{R}/bob", "closed"),
            "session of bob: closed",
            Beat.SESSION_CLOSED,
        ),
        (
            state("registration", H, "disconnected"),
            "registration of hyperty 12345678: disconnected",
            Beat.UNREGISTERED,
        ),
        (
            state("p2p_connection", f"{R}/bob|{R}/alice|handler|{PC}", "live", "reestablished"),
            "link to alice: live again (handler)",
            Beat.LINK_BACK,
        ),
        (
            table("alloc", Op.ADD, C, f"{R}/bob"),
            "address connection 87654321: allocated to bob",
            Beat.OBJECT_ALLOCATED,
        ),
        (
            table("alloc", Op.DEL, H, f"{R}/bob"),
            "hyperty 12345678 of bob: released",
            Beat.RELEASED,
        ),
        (
            table("p2p", Op.UPD, f"{R}/alice", f"live {PC} {H}"),
            "link table: alice live, by bob/p2phandler/1/conn/1",
            Beat.ROW_LIVE,
        ),
        (
            Fact(k=Kind.OBJ, op=Op.WRITE, key=C, by=PQ, version=2),
            "writes the offer C1, connection 87654321, version 2",
            Beat.WRITTEN,
        ),
        (
            Fact(k=Kind.OBJ, op=Op.APPLY, key=C, by=PQ, version=2),
            "has read the answer C2, connection 87654321, version 2",
            Beat.READ,
        ),
        (
            Fact(k=Kind.MSG, op=Op.SUBMIT, type="update", from_=PQ, by=PQ, to=f"{PQ}/status"),
            "status event to alice/p2prequester/1/status (update)",
            Beat.STATUS_EVENT,
        ),
    ],
)
def test_a_fact_is_a_sentence_and_a_step(fact, text, beat):
    reported = Narrator().tell("bus", fact)
    assert (reported.text, reported.beat) == (text, beat)


@pytest.mark.parametrize(
    "fact",
    [
        Fact(k=Kind.END),
        state("address", H, "allocated"),
        state("stub_connection", f"{R}/bob/protostub/1", "created"),
        state("stub_deployment", f"{R}/bob/protostub/1", "deploying"),
        table("listeners", Op.ADD, f"{R}/bob/sm", "sync-manager"),
        Fact(k=Kind.MSG, op=Op.SUBMIT, from_=H, by=H, to=f"{H}/status"),
    ],
)
def test_unrequested_facts_are_not_reported(fact):
    assert Narrator().tell("bus", fact) is None


@pytest.mark.parametrize(
    ("actor", "op", "beat"),
    [
        ("bus", Op.ADD, Beat.ON_BUS),
        ("minibus:x", Op.ADD, Beat.ON_MINIBUS),
        ("bus", Op.DEL, Beat.OFF_BUS),
        ("minibus:x", Op.DEL, Beat.OFF_MINIBUS),
    ],
)
def test_a_listener_of_a_link_is_reported(actor, op, beat):
    assert Narrator().tell(actor, table("listeners", op, PC, "x")).beat is beat


def test_the_same_route_and_the_same_row_are_reported_once():
    narrator = Narrator(H)
    asked = Fact(k=Kind.RESOLVE, op=Op.BEGIN, to=H)
    found = Fact(k=Kind.RESOLVE, op=Op.DONE, to=H, result=f"{R}/alice/protostub/1", why="w")
    row = table("p2p", Op.UPD, f"{R}/bob", f"created None {H}")
    reported = [narrator.tell("registry", fact) for fact in (asked, found, row) * 2]
    assert [one.text for one in reported if one] == [
        "no listener for hyperty 12345678: the registry is asked for a route",
        "hyperty 12345678 is reached by alice/protostub/1, w",
        "link table: bob created",
    ]


class Programme:
    """Remembers which beat was shown in which act."""

    def __init__(self):
        self.shown = []

    def __call__(self, line, act):
        self.shown.append((act, line.who, line.beat or line.what))


def show_all(director, act):
    for who, beats in (*ACTS[act].beats.items(), *ACTS[act].beside.items()):
        for beat in beats:
            director.line(Line(who, What.STEP, "", beat=beat))


def test_an_act_opens_when_all_of_the_one_before_was_seen():
    programme = Programme()
    director = Director(programme)
    show_all(director, 0)
    assert programme.shown[-1] == (2, "demo", What.ACT)
    assert director.missing() == ("alice", Beat.NO_LISTENER)


def test_a_report_before_its_act_waits_for_it():
    programme = Programme()
    director = Director(programme)
    director.line(Line("alice", What.STEP, "", beat=Beat.NO_LISTENER))
    assert len(programme.shown) == 1
    show_all(director, 0)
    assert programme.shown[-1] == (2, "alice", Beat.NO_LISTENER)


def test_a_report_in_the_wrong_order_does_not_count():
    director = Director(Programme())
    director.line(Line("node", What.STEP, "", beat=Beat.REGISTERED))
    assert director.missing() == ("node", Beat.SERVES)


def test_the_consequence_is_shown_after_its_cause():
    programme = Programme()
    director = Director(programme)
    for act in range(4):
        show_all(director, act)
    director.line(Line("bob", What.STEP, "", beat=Beat.LINK_LOST))
    director.line(Line("alice", What.STEP, "", beat=Beat.CUT))
    assert programme.shown[-2:] == [(5, "alice", Beat.CUT), (5, "bob", Beat.LINK_LOST)]


def test_when_it_breaks_off_what_was_kept_is_shown_too():
    programme = Programme()
    director = Director(programme)
    director.line(Line("alice", What.STEP, "", beat=Beat.GONE))
    director.release()
    assert programme.shown[-1] == (1, "alice", Beat.GONE)


def test_there_are_seven_acts_and_the_last_is_the_verdict():
    director = Director(Programme())
    for act in range(len(ACTS)):
        show_all(director, act)
    assert len(ACTS) == 7
    assert director.missing() is None
    assert "verdict" in ACTS[-1].title


def test_an_early_report_is_kept_for_the_next_act():
    programme = Programme()
    director = Director(programme)
    for act in range(4):
        show_all(director, act)
    cut, *rest = ACTS[4].beats["alice"]
    director.line(Line("alice", What.STEP, "", beat=cut))
    for beat in (*ACTS[4].beats["bob"], *ACTS[4].beside["bob"], Beat.LINK_LOST):
        director.line(Line("bob", What.STEP, "", beat=beat))
    for beat in rest:
        director.line(Line("alice", What.STEP, "", beat=beat))
    assert programme.shown[-1] == (6, "bob", Beat.LINK_LOST)
    for who in ("alice", "node"):
        for beat in ACTS[5].beats[who]:
            director.line(Line(who, What.STEP, "", beat=beat))
    assert director.missing() == ("bob", Beat.ROW_GONE)


def test_unordered_reports_must_all_be_shown():
    director = Director(Programme())
    for act in range(4):
        show_all(director, act)
    for beat in ACTS[4].beats["alice"]:
        director.line(Line("alice", What.STEP, "", beat=beat))
    for beat in (Beat.LINK_LOST, Beat.LINK_BACK):
        director.line(Line("bob", What.STEP, "", beat=beat))
    assert director.missing() == ("bob", Beat.ROW_LOST)
