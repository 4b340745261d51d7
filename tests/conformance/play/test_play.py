"""What the player does: what is given, done and broken comes, and what is not so is reported."""

import orjson
import pytest
import trio
from click.testing import CliRunner

from actors.kit.errors import RestartLimitError
from specs.trace import Op
from tests.conformance.play.__main__ import main
from tests.conformance.play.names import Names
from tests.conformance.play.player import perform, play, survive
from tests.conformance.play.route import Observer
from tests.conformance.play.score import Score
from tests.conformance.play.stage import StageError, open_stage, open_world
from tests.support.trace.recorded import lines_of, scenario_of

RA, RB = "hyperty-runtime://a.ex/ra", "hyperty-runtime://b.ex/rb"
HA, HB, ZOE = "hyperty://a.ex/ha", "hyperty://b.ex/hb", "hyperty://b.ex/zoe"
OBJ, SESSION, LINK = "comm://a.ex/o1", f"MN.a|{RA}", f"{RA}|{RB}|requester"
TWO = (
    {"given": "node", "domain": "a.ex"},
    {"given": "node", "domain": "b.ex"},
    {"given": "runtime", "is": "RA", "p2p": True},
    {"given": "runtime", "is": "RB", "p2p": True},
    {"given": "hyperty", "is": "HA", "in": "RA"},
    {"given": "hyperty", "is": "HA2", "in": "RA"},
    {"given": "hyperty", "is": "HB", "in": "RB"},
    {"given": "hyperty", "is": ZOE, "in": "RB"},
)
"""Two runtimes of two domains, and four hyperties."""


def scenario(*lines, given=TWO):
    """Write a scenario: its lines without name and numbers."""
    steps = iter(range(1, len(lines) + 1))
    numbered = [{"sc": "T", **({"n": next(steps)} if "k" in one else {}), **one} for one in lines]
    return scenario_of([*({"sc": "T", **one} for one in given), *numbered])


def msg(hop, head, body=None, **marks):
    """A message step; `head` is such as `1 read HA HB`."""
    number, type_, from_, to = head.split()
    message = {"id": int(number), "type": type_, "from": from_, "to": to, "body": body or {}}
    return {"k": "msg", "hop": hop, "msg": message, **marks}


def state(machine, key, old, new):
    return {"k": "state", "machine": machine, "key": key, "old": old, "new": new}


def time(seconds):
    return {"k": "time", "dt": seconds}


def cut(one, other):
    return {"fault": "link cut", "between": [one, other]}


async def number_of(*lines, given=TWO):
    """The number of the step at which a run differs; None: it passes."""
    difference = await play(scenario(*lines, given=given))
    return None if difference is None else difference.number


async def seen_of(*lines, given=TWO):
    """What is said to be seen instead."""
    return "; ".join((await play(scenario(*lines, given=given))).seen)


SENT, ANSWERED = {"do": "send", "by": "HA"}, {"do": "answer", "by": "zoe"}
OUT, BACK = "HA>RA.bus>SAB~wire~MN.b", "zoe>RB.bus>SB~wire~MN.b"


def ask(hop="HA>..>zoe", to=ZOE, number=1, **marks):
    return msg(hop, f"{number} read HA {to}", {"of": "x"}, **marks)


def answer(hop="zoe>..>HA", number=1, **marks):
    return msg(hop, f"{number} response {ZOE} HA", {"code": 200, "value": [{"two": None}]}, **marks)


def silence(number=1, by=ZOE, code=408):
    body = {"code": code, "description": "..."}
    return msg("RA.bus>HA", f"{number} response {by} HA", body, synthetic=True)


def described(hop, words, **marks):
    return msg(hop, "1 read HA HA2", {"value": {"description": words}}, **marks)


NEIGHBOUR = (SENT, ask("HA>RA.bus>HA2", "HA2"))
CALL = (
    *(SENT, ask("HA>RA.bus")),
    {"k": "resolve", "at": "RA.registry", "to": ZOE, "result": "SAB"},
    ask("SAB~wire~MN.b~wire~SB>RB.bus>zoe", dup=True),
    *(ANSWERED, answer(f"{BACK}~wire~SAB>RA.bus>HA")),
    time(3600),
    *(SENT, ask(number=2), ANSWERED, answer(number=2)),
)
"""Two calls, an hour apart."""

DROWNED = (SENT, ask("HA>RA.bus", "RA/attic"), silence(by="RA/attic", code=404))
"""Nobody lives in the attic."""


@pytest.mark.parametrize("lines", [CALL, DROWNED], ids=["call", "drowned"])
async def test_a_new_scenario_passes(lines, autojump_clock):
    assert await number_of(*lines) is None


def kept_alive(seconds):
    """A registry keeps its records alive by itself once in 3600 s / 2.2."""
    hop, head = "RA.registry>RA.bus>SA~wire~MN.a", "1 update RA/registry DRA"
    return (*NEIGHBOUR, time(seconds), msg(hop, head, {"resource": "HA"}))


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        (NEIGHBOUR[1:], 1),
        ((*CALL[:2], CALL[2] | {"result": "PQ"}), 2),
        ((*CALL[:3], ask("SAB~wire~MN.a~wire~SB>RB.bus>zoe", dup=True)), 3),
        ((*CALL[:3], CALL[3] | {"drop": "loop"}), 3),
        ((*DROWNED[:2], silence(by="RA/attic", code=403)), 2),
        ((*CALL, msg("SAB>RA.bus>RA.registry", "9 update SAB SAB/status", event=True)), 8),
        ((*CALL[:2], state("session", ["MN.b", "WHO"], None, "open")), 2),
        (kept_alive(1700), None),
        (kept_alive(1500), 3),
    ],
    ids=["unsent", "route", "node", "drop", "code", "unheard", "entity", "alive", "too early"],
)
async def test_a_scenario_that_is_wrong_differs_there(lines, number, autojump_clock):
    assert await number_of(*lines) == number


@pytest.mark.parametrize(
    ("lines", "seen"),
    [
        (
            (*CALL[:3], ask("SAB~wire~MN.b~wire~SB>RB.bus>HB", dup=True)),
            "by another route (no deliver to minibus:hyperty://b.ex/hb): #1 read hyperty://a.ex/ha",
        ),
        ((SENT, NEIGHBOUR[1] | {"deliver_to": ["HB"]}), "it was delivered to hyperty://a.ex/ha2"),
        ((SENT, NEIGHBOUR[1] | {"deliver_to": ["HA2", "HB"]}), "it was not delivered to"),
        ((SENT, DROWNED[1] | {"event": True}), "it was answered: 404"),
        ((SENT, DROWNED[1] | {"event": True}, DROWNED[2]), None),
        ((ANSWERED, answer("zoe>RB.bus")), f"{ZOE} has nothing to answer: no request of {HA} came"),
        ((SENT, time(1)), "step 1 is no message that could be meant by 'send'"),
        ((cut("RA", "RB"), time(1)), "have no link that could be cut"),
        (({"do": "reuse", "in": "RA", "result": "HA", "descriptor": "D"}, time(1)), "gave: new"),
        (
            ({"do": "reuse", "in": "RA", "result": "new", "address": f"{HA}/x"}, time(1)),
            "gave: not found",
        ),
        (
            (SENT, described("HA>RA.bus", "old"), described("RA.bus>HA2", "new", dup=True)),
            "with another body",
        ),
        ((SENT, ask("HA>RA.bus>HA2", "HA2", drop="lost")), "no such message went by ~wire~"),
        ((SENT, ask("HA>..>HA2", "HA2", doubled=True)), "no such message went by ~wire~"),
    ],
)
async def test_a_difference_is_reported_in_the_words_of_the_scenario(lines, seen, autojump_clock):
    if seen is None:
        assert await number_of(*lines) is None
    else:
        assert seen in await seen_of(*lines)


async def test_what_a_message_is_for_is_reported(autojump_clock):
    difference = await play(scenario(*kept_alive(1)))
    assert difference.expected.endswith("(keep a registration alive)")


@pytest.mark.parametrize(("type_", "number"), [("create", None), ("read", 1)])
async def test_a_message_of_a_peer_is_read_as_reported(type_, number, autojump_clock):
    norm = msg("HA", f"1 {type_} RA {ZOE}")["msg"]
    raw = {**norm, "id": "1", "type": "CREATE", "from": "runtime://a.ex/ra"}
    assert await number_of({"k": "ingest", "raw": raw, "norm": norm}) == number


@pytest.mark.parametrize("is_foreseen", [True, False])
async def test_a_play_in_which_actors_crash_differs(is_foreseen):
    async def crashes():
        async with trio.open_nursery():
            raise RestartLimitError("ra", "bus") if is_foreseen else ZeroDivisionError

    if not is_foreseen:
        with pytest.RaisesGroup(ZeroDivisionError):
            await survive(crashes)
        return
    difference = await survive(crashes)
    assert difference.number == 0
    assert "'bus' crashes too often" in difference.seen[0]


# ---- what is given


def ends(observer, machine):
    """The state in which each entity of a machine was left."""
    steps = [one.fact for one in observer.items if one.fact.machine == machine]
    return {fact.key: fact.new for fact in steps}


async def opened(name):
    observer, names = Observer(), Names()
    async with open_stage(scenario_of(lines_of(name)), observer, names):
        kept = Observer()
        kept.items, kept.start = list(observer.items), observer.start
        return kept, names


async def test_a_live_link_is_live_at_both_ends_before_the_scenario_begins(autojump_clock):
    observer, names = await opened("SC-25")
    before = [one.fact for one in observer.items[: observer.start]]
    rows = [fact.key for fact in before if fact.table == "p2p" and "live" in (fact.val or "")]
    assert set(rows) == {RA, RB}
    assert names.golden(names.actual(HA)) == HA != names.actual(HA)


async def test_a_link_under_way_begins_with_the_scenario(autojump_clock):
    observer, _ = await opened("SC-24")
    before = [one.fact.machine for one in observer.items[: observer.start]]
    assert "p2p_connection" not in before


async def test_an_object_is_at_its_version_with_its_observers(autojump_clock):
    observer, names = await opened("SC-31")
    written = [one.fact for one in observer.items if one.fact.op is Op.WRITE]
    assert (written[-1].key, written[-1].version) == (names.actual(OBJ), 3)
    assert sorted(ends(observer, "object_subscription").values()) == ["active", "active"]
    changes = f"{names.actual(OBJ)}/changes"
    assert min(one.number for one in observer.items if one.fact.key == changes) >= observer.start


async def test_a_record_can_be_disconnected(autojump_clock):
    observer, names = await opened("SC-12")
    assert ends(observer, "registration")[names.actual(HB)] == "disconnected"


async def test_all_participants_leave_in_good_order(autojump_clock):
    observer = Observer()
    async with open_world(scenario_of(lines_of("SC-25")), observer, Names()) as stage:
        for hyperty in stage.scenario.hyperties:
            await stage.deploy(hyperty, "some")
        assert stage.network.wire(RA, "domain://msg-node.a.ex") is not None
    assert stage.network.wire(RA, "domain://msg-node.a.ex") is None
    assert set(ends(observer, "session").values()) == {"closed"}
    assert set(ends(observer, "address").values()) == {"released"}


async def test_an_impossible_set_up_is_one_sentence_and_leaves_nothing(autojump_clock):
    """An object that nobody may create cannot be there."""
    ends_ = {"type": "create", "from": "HA", "to": "RA/sm"}
    denial = {"given": "denial", "at": "RA", **ends_, "why": "no objects here"}
    object_ = {"given": "object", "is": "OBJ", "by": "HA", "schema": "SCM"}
    script, observer = scenario(time(1), given=(*TWO, object_, denial)), Observer()
    with pytest.raises(StageError, match="refused a precondition"):
        async with open_stage(script, observer, Names()):
            pass
    assert set(ends(observer, "session").values()) == {"closed"}


async def test_a_hyperty_cannot_be_in_a_runtime_of_another_domain(autojump_clock):
    guest = {"given": "hyperty", "is": "hyperty://b.ex/guest", "in": "RA"}
    assert "gives addresses of a.ex" in await seen_of(*DROWNED, given=(*TWO, guest))


async def test_a_scenario_of_other_names_is_played(autojump_clock):
    """What did not exist when the player was written must run."""
    lamp, switch = "hyperty://x.test/lamp", "hyperty://y.test/switch"
    homes = {lamp: "hyperty-runtime://x.test/kitchen", switch: "hyperty-runtime://y.test/attic"}
    given = [{"given": "node", "domain": f"{one}.test"} for one in "xy"]
    given += [{"given": "runtime", "is": home} for home in homes.values()]
    given += [
        {"given": "hyperty", "is": one, "in": home.rpartition("/")[2]}
        for one, home in homes.items()
    ]
    via = [
        f"{home}/protostub/{number}" for home, number in zip(homes.values(), (2, 1), strict=True)
    ]
    steps = (
        {"do": "send", "by": "lamp"},
        msg("lamp>kitchen.bus>..>attic.bus>switch", f"5 read {lamp} {switch}", {"via": via}),
        {"do": "answer", "by": "switch"},
        msg("switch>attic.bus>..>lamp", f"5 response {switch} {lamp}", {"code": 200, "value": 1}),
    )
    assert await number_of(*steps, given=given) is None


# ---- what is done, and what breaks


@pytest.mark.parametrize("status", ["broken", "connecting"])
async def test_a_link_changes_as_the_scenario_begins(status, autojump_clock):
    pair = {"from": "RA", "to": "RB", "asking": ["HA"], "asked": ["HB"]}
    before = "disconnected" if status == "broken" else "in-progress"
    given = (*TWO, {"given": "link", "state": status, **pair})
    assert await number_of(state("p2p", LINK, before, "live"), given=given) is None


@pytest.mark.parametrize(
    "lines",
    [
        ({"fault": "runtime shutdown", "of": "RA"}, state("session", SESSION, "open", "closed")),
        (
            cut("RA", "MN.a"),
            state("session", SESSION, "open", "detached"),
            state("session", SESSION, "detached", "open"),
        ),
        (
            {"fault": "peer vanishes", "of": "RA"},
            state("session", SESSION, "open", "detached"),
            time(600),
            state("session", SESSION, "detached", "expired"),
        ),
        (
            {"do": "ask", "by": "HA", "of": "HB"},
            state("p2p", LINK, None, "created"),
            state("p2p", LINK, "created", "in-progress"),
            state("p2p", LINK, "in-progress", "live"),
            cut("RA", "RB"),
            state("p2p", LINK, "live", "disconnected"),
        ),
        (
            *(SENT, ask(), ANSWERED, answer()),
            {"fault": "peer silent", "between": ["RA", "MN.b"]},
            *(SENT, ask("HA>RA.bus", number=2), time(15), silence(2)),
        ),
    ],
    ids=["shutdown", "cut", "vanishes", "link", "silent"],
)
async def test_what_breaks_has_its_effect(lines, autojump_clock):
    assert await number_of(*lines) is None


async def test_a_frame_forged_on_a_wire_reaches_the_stub(autojump_clock):
    head, body = f"9 create hyperty://c.ex/hc {HA}", {"via": [f"{RA}/protostub/1"]}
    forged = msg("MN.a~wire~SA", head, body, drop="loop")
    assert await number_of({"do": "forge", "from": "MN.a", "to": "RA"}, forged) is None


async def test_a_step_behind_a_fault_was_not_seen_before_it(autojump_clock):
    """The session was open already: that is not the step that the fault has to cause."""
    given = (*TWO, {"given": "beginning", "before": "boot"})
    begun = state("session", SESSION, None, "open")
    assert await number_of(begun, given=given) is None
    assert (await seen_of(cut("RA", "MN.a"), begun, given=given)).startswith("before the fault")


# ---- what the network loses or doubles


def unheard(number=1):
    return time(15), silence(number)


@pytest.mark.parametrize(
    "lines",
    [
        (SENT, ask(OUT, drop="lost")),
        (SENT, ask(f"{OUT}~wire~SB", drop="lost")),
        (SENT, ask(OUT), ask("MN.b~wire~SB", drop="lost", dup=True)),
        (SENT, ask(drop="lost")),
        (SENT, ask(f"{OUT}~wire~SB>RB.bus>zoe"), ANSWERED, answer(BACK, drop="lost")),
        (SENT, ask(), ANSWERED, answer(f"{BACK}~wire~SAB", drop="lost")),
        (SENT, ask(), ANSWERED, answer(drop="lost")),
    ],
)
async def test_the_requester_is_notified_of_the_missing_answer(lines, autojump_clock):
    assert await number_of(*lines, *unheard()) is None


@pytest.mark.parametrize("hop", [OUT, f"{OUT}~wire~SB", "HA>..>zoe"])
async def test_a_lost_message_does_not_arrive(hop, autojump_clock):
    arrived = ask("MN.b~wire~SB>RB.bus>zoe", dup=True)
    assert await number_of(SENT, ask(hop, drop="lost"), arrived) == 2


@pytest.mark.parametrize("gone", [1, 2, 3])
async def test_of_messages_in_one_frame_the_one_is_lost_that_is_meant(gone, autojump_clock):
    """They wait for a stub, and go in one frame when it is there."""
    sent = [one for n in (1, 2, 3) for one in (SENT, ask("HA>RA.bus", number=n))]
    went = [ask("SAB~wire~MN.b..>zoe", number=n, dup=True) for n in (1, 2, 3)]
    went[gone - 1] = ask("SAB~wire~MN.b", number=gone, dup=True, drop="lost")
    others = {1, 2, 3} - {gone}
    answered = [one for n in others for one in (ANSWERED, answer(number=n))]
    assert await number_of(*sent, *went, *answered, *unheard(gone)) is None


async def test_messages_alike_that_are_reported_before_are_let_pass(autojump_clock):
    """A record is kept alive once in 3600 s / 2.2, so twice in this time."""
    *lines, first = kept_alive(3500)
    second = {**first, "msg": {**first["msg"], "id": 2}, "drop": "lost"}
    assert await number_of(*lines, first, second) is None


@pytest.mark.parametrize("hop", ["HA>..>zoe", f"{OUT}~wire~SB>RB.bus>zoe"])
async def test_a_doubled_message_arrives_twice(hop, autojump_clock):
    script, observer, names = scenario(SENT, ask(hop, doubled=True)), Observer(), Names()
    async with open_stage(script, observer, names) as stage:
        assert await perform(stage, Score(script, observer, names)) is None
    received = [one for one in observer.items if one.fact.op is Op.RCV]
    came = [one.who for one in received if one.fact.to == names.actual(ZOE)]
    assert came.count("domain://msg-node.b.ex") == 2


# ---- the command


def called(tmp_path, *lines, options=()):
    path = tmp_path / "mine.jsonl"
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    ended = CliRunner().invoke(main, [str(path), *options])
    return ended.exit_code, ended.output.splitlines()


def test_the_command_says_what_passed(tmp_path):
    lines = [*lines_of("SC-01"), *lines_of("SC-17")]
    assert called(tmp_path, *lines) == (0, ["SC-01 passed, 4 steps", "SC-17 passed, 8 steps"])
    assert called(tmp_path, *lines, options=["--scenario", "SC-17"])[1] == ["SC-17 passed, 8 steps"]


def test_an_unknown_scenario_is_refused_with_the_nearest_name(tmp_path):
    status, output = called(tmp_path, *lines_of("SC-01"), options=["--scenario", "SC-1"])
    assert (status, "no scenario is named 'SC-1'; the nearest is 'SC-01'" in output[-1]) == (
        2,
        True,
    )


def test_the_command_reports_the_first_step_that_differs(tmp_path):
    lines = lines_of("SC-02")
    lines[-1]["msg"]["body"]["code"] = 200
    status, (first, expected, seen, *_) = called(tmp_path, *lines)
    assert (status, first) == (1, "SC-02 differs at step 3")
    assert expected.startswith("  expected: RA.bus>HA #1 response hyperty-runtime://a.ex/ra/nobody")
    assert '"code":404' in seen


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path):
    status, output = called(tmp_path, {"sc": "S", "n": 1, "k": "song"})
    assert (status, "line 1: there is no k 'song'" in output[-1]) == (2, True)
    assert "cannot be read" in CliRunner().invoke(main, [str(tmp_path / "none.jsonl")]).output
