"""The parts of the chaos run: its faults, its proxy, and what it takes for wrong."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest
import trio

from fsm.judge.trace_line import Flaw
from tests.chaos.__main__ import read_options
from tests.chaos.faults import ENGINE, USUAL, Wrong, faults
from tests.chaos.proxy import open_proxy
from tests.chaos.verdict import Seen, broken, differences, seen_of, unanswered, unexplained

SEEDS = range(50)
NODES = 3


def test_faults_are_the_same_for_a_seed():
    assert [*faults(1, 600, 5, NODES)] == [*faults(1, 600, 5, NODES)]


def test_no_place_has_two_faults_at_once_and_one_node_is_sound():
    kinds = Counter()
    for seed in SEEDS:
        lasting = []
        for fault in faults(seed, 600, 5, NODES):
            lasting = [one for one in lasting if one.until > fault.at]
            assert fault.where not in {one.where for one in lasting}
            lasting.append(fault)
            assert len({one.where for one in lasting} - {ENGINE}) < NODES
            assert fault.until <= 600
            kinds[fault.wrong] += 1
    assert set(kinds) == set(USUAL)


def test_nodes_restart_one_after_the_other():
    restarts = [*faults(1, 600, 10, NODES, [Wrong.RESTART])]
    assert {one.wrong for one in restarts} == {Wrong.RESTART}
    assert {one.where for one in restarts} == set(range(NODES))
    assert len(restarts) == 59


async def echo(stream):
    async for data in stream:
        await stream.send_all(data)


async def test_a_proxy_that_is_cut_holds_everything_up():
    async with trio.open_nursery() as nursery:
        (server,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, echo, [server])
        async with (
            open_proxy(server.socket.getsockname()[1]) as proxy,
            await trio.open_tcp_stream("127.0.0.1", proxy.port) as stream,
        ):
            await stream.send_all(b"1")
            assert await stream.receive_some() == b"1"
            proxy.cut()
            await stream.send_all(b"2")
            with trio.move_on_after(0.05) as waiting:
                await stream.receive_some()
            assert waiting.cancelled_caught
            proxy.mend()
            assert await stream.receive_some() == b"2"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--rate 0", "--rate: '0' is no number above 0"),
        ("--every 0", "--every: '0' is no number above 0"),
        ("--seconds nan", "--seconds: 'nan' is no number above 0"),
        ("--changes -1", "--changes: '-1' is no number above 0"),
        ("--durable 2", "--durable: '2' is no number from 0 to 1"),
        ("--nodes 0", "--nodes: '0' is no whole number of at least 1"),
        ("--processes many", "--processes: 'many' is no whole number of at least 1"),
        (
            "--faults restart fire",
            "--faults: 'fire' is no fault: choose among kill, stop, engine, partition, restart",
        ),
        ("--runtimes 1", "--runtimes: '1' is no whole number of at least 2"),
        ("--objects 0", "--objects: '0' is no whole number of at least 1"),
        ("--runtimes 49", "48 objects are too few for 49 runtimes: each reports one"),
        ("--runtimes 2 --processes 3", "3 processes are too many for 2 runtimes"),
    ],
)
def test_a_run_that_cannot_be_is_refused_in_a_sentence(words, why, capsys):
    with pytest.raises(SystemExit, match="2"):
        read_options(words.split())
    assert capsys.readouterr().err.splitlines()[-1].endswith(why)


def test_a_run_without_options_can_be():
    assert read_options([]).runtimes == 8


GOOD = Seen(
    open=0,
    codes={"b/r0/1": 200, "b/r0/2": 408, "d/r0/3": 202, "d/r0/4": 503},
    took=[3, 15_000, 5, 1],
    asked=Counter({"b/r0/1": 1, "b/r0/2": 1, "d/r0/3": 1}),
    things={"o": 3},
    copies={"r1": {"o": 3}},
)


def test_a_good_run_has_nothing_wrong():
    assert [*differences(GOOD), *broken(GOOD)] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"open": 1},
        {"copies": {"r1": {"o": 2}}},
        {"copies": {"r1": {"o": None}}},
        {"asked": Counter({"b/r0/1": 1})},
    ],
)
def test_what_is_not_settled_is_named(changes):
    assert [*differences(attrs.evolve(GOOD, **changes))]


@pytest.mark.parametrize(
    "asked", [{"b/r0/1": 2, "d/r0/3": 1}, {"b/r0/1": 1, "d/r0/3": 2}, {"d/r0/3": 1}]
)
def test_what_must_not_be_is_named(asked):
    assert [*broken(attrs.evolve(GOOD, asked=Counter(asked)))]


RESTARTED = attrs.evolve(GOOD, codes={"b/r0/1": 200, "d/r0/3": 202}, took=[3, 5])


def test_restarts_may_refuse_nothing_and_delay_little():
    assert [*unanswered(RESTARTED)] == []
    assert [*unanswered(attrs.evolve(RESTARTED, took=[999] * 100 + [5000]))] == []


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"codes": {"b/r0/1": 503, "b/r0/2": 503}}, "2 requests were answered with 503"),
        ({"codes": {"b/r0/1": 0}}, "1 requests were answered with 0"),
        ({"took": [3] * 98 + [1000] * 2}, "one request of a hundred took 1000 ms or more"),
    ],
)
def test_a_request_that_a_restart_refuses_or_delays_is_named(changes, wrong):
    assert [*unanswered(attrs.evolve(RESTARTED, **changes))] == [wrong]


def test_reports_of_several_processes_are_joined():
    one = {
        "codes": {"b/r0/1": 200}, "took": [4], "asked": {"b/r1/1": 1},
        "things": {"o": 3}, "copies": {},
    }  # fmt: skip
    two = {
        "codes": {}, "took": [5], "asked": {"b/r1/1": 1},
        "things": {}, "copies": {"r1": {"o": 3}},
    }  # fmt: skip
    seen = seen_of([{"open": 1, "seen": [one]}, {"open": 2, "seen": [two]}])
    assert (seen.open, seen.codes, seen.asked) == (3, {"b/r0/1": 200}, {"b/r1/1": 2})
    assert seen.took == [4, 5]
    assert (seen.things, seen.copies) == ({"o": 3}, {"r1": {"o": 3}})


def findings(run):
    """What judges find of a trace that ends early."""
    cut = SimpleNamespace(run=run, node="n", flaws=frozenset({Flaw.NO_END}))
    gap = SimpleNamespace(run=run, node="n", ln=1, reason="records are missing")
    return SimpleNamespace(by_claim={"I-B7": 0}, first=[], nodes=[cut], gaps=[gap])


def test_only_the_trace_of_a_killed_node_may_end_early():
    runs = {"one": Path("n0-1"), "two": Path("n0-2")}
    assert [*unexplained(findings("one"), [Path("n0-1")], runs)] == []
    assert len([*unexplained(findings("two"), [Path("n0-1")], runs)]) == 2


def test_a_broken_claim_is_wrong_in_whatever_trace():
    found = findings("one")
    found.by_claim["I-M16"] = 2
    wrong = [*unexplained(found, [Path("n0-1")], {"one": Path("n0-1")})]
    assert wrong == ["claim I-M16 is broken 2 times"]
