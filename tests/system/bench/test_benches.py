"""Each bench runs at its smallest size, and its verdict says what it reached and what it misses."""

from pathlib import Path

import attrs
import orjson
import pytest
from click.testing import CliRunner

from bench import run
from bench.run import BENCHES, SMALL
from bench.runtime import beside, local, paths
from bench.runtime.beside import Pair
from bench.runtime.local import Rates
from bench.runtime.paths import Figures, Taken
from bench.runtime.stage import Leg, Tracing
from bench.verdict import SCHEMA, Verdict
from tests.support.command import ROOT
from tests.support.warm import run_warm
from transports.link import DIRECT, Kind

LONG = {
    "runtime.noisy_neighbour", "runtime.paths", "runtime.two_domains", "runtime.hostile_hyperty",
    "runtime.hostile_sandbox", "node.load", "node.slowloris", "node.slow_reader", "node.slow_crowd",
    "node.login", "node.routed", "node.growing_node", "node.dashboard", "node.brokers",
    "engine.clients", "node.processes", "node.crossing",
    "judge",
    "machines", "peers", "growth", "command", "product", "small_files",
}  # fmt: skip
"""Those that take more than five seconds at their smallest."""


def is_small_enough(name):
    return pytest.param(name, marks=[pytest.mark.soak] if name in LONG else [])


# `test_bench_data_objects` runs that one, and looks at its figures.
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "name", [is_small_enough(one) for one in SMALL if one != "node.data_objects"]
)
def test_a_bench_runs_small(name):
    done = run_warm("-m", f"bench.{name}", "--json", *SMALL[name], timeout=200)
    assert done.stdout, done.stderr
    reported = orjson.loads(done.stdout)
    assert (reported["schema"], reported["bench"]) == (SCHEMA, name.rpartition(".")[2])
    assert reported["ours"] >= 0
    assert reported["peer"] > 0
    assert reported["ratio"] >= 0
    assert reported["reach"] is None or reported["reach"] > 0
    assert done.returncode == (0 if reported["met"] else 1)
    assert reported["met"] is not bool(reported["missed"])


def test_the_page_of_results_has_a_row_for_each():
    good = Verdict(bench="a", what="us / us of b", ours=1234.5, peer=2, ratio=617.2, reach=None)
    bad = attrs.evolve(good, bench="b", reach=1.5, missed=("c: 3 of 2",))
    page = run.results([good.line(), bad.line(), run._failed("d", 3)], 90.0)
    *_, first, second, third = page.split("\n")[:-1]
    assert "1.5 minutes" in page
    assert first == "| a | us / us of b | 1,234.50 / 2.00 | 617.20x |  | reached |"
    assert second == "| b | us / us of b | 1,234.50 / 2.00 | 617.20x | 1.50x | missed: c: 3 of 2 |"
    assert third == "| d |  |  |  |  | missed: it ended with 3 and no figures |"


def test_every_bench_is_run():
    folder = Path(ROOT, "bench")
    files = [file for file in folder.rglob("*.py") if "def main(" in file.read_text()]
    names = [file.relative_to(folder).with_suffix("").parts for file in files]
    benches = {".".join(parts) for parts in names} - {"run"}
    # What other benches are measured against or with, in processes of their own.
    assert (
        set(BENCHES)
        == set(SMALL)
        == benches
        - {
            "node.holder",
            "node.raw_fan_out",
            "node.relay",
        }
    )


# ---- what a verdict says

MET = Verdict("b", "x / y", 1.0, 2.0, 0.5, 0.6, figures={"rounds": {"one": 3.0}})
MISSED = attrs.evolve(MET, missed=("too slow",), not_measured=("z",))


@pytest.mark.parametrize(("verdict", "code"), [(MET, 0), (MISSED, 1)])
def test_a_verdict_is_one_line_and_a_status(verdict, code, capsys):
    with pytest.raises(SystemExit) as exiting:
        verdict.tell(as_json=True)
    reported = orjson.loads(capsys.readouterr().out)
    assert exiting.value.code == code
    assert reported == {
        "schema": SCHEMA, "bench": "b", "what": "x / y", "ours": 1.0, "peer": 2.0, "ratio": 0.5,
        "reach": 0.6, "missed": list(verdict.missed), "met": not code,
        "not_measured": list(verdict.not_measured), "rounds": {"one": 3.0},
    }  # fmt: skip


def test_a_verdict_names_missing_parts_to_people():
    lines = MISSED.sentences().splitlines()
    assert lines[0].split() == ["rounds", "one", "3.00"]
    assert lines[1:] == ["x / y: 1.00 / 2.00, 0.50x (reach 0.60x)", "missed: too slow",
                         "not measured: z"]  # fmt: skip


@pytest.mark.parametrize("as_json", [False, True])
def test_a_bench_that_fails_is_a_line_and_the_others_run(as_json, monkeypatch):
    printed = {
        "tell": (MET.line(), 0),
        "runtime.local": (run._failed("runtime.local", 1), 1),
        "node.load": (attrs.evolve(MET, bench="load", reach=None).line(), 0),
    }
    monkeypatch.setattr(run, "_run", lambda name, *_: printed[name])
    options = ["--json"] if as_json else []
    done = CliRunner().invoke(run.main, [*options, *printed])
    assert done.exit_code == 1
    if as_json:
        reported = [orjson.loads(line) for line in done.stdout.splitlines()]
        assert [one["met"] for one in reported] == [True, False, True]
        assert all({"ours", "peer", "ratio", "reach"} <= one.keys() for one in reported)
    else:
        assert [line.split()[0] for line in done.stdout.splitlines()] == [
            "b", "runtime.local", "missed:", "load",
        ]  # fmt: skip


# ---- what benches judge


def reported_of(monkeypatch, module, name, measured, *options):
    async def measure(*_, **__):
        return measured

    monkeypatch.setattr(module, name, measure)
    monkeypatch.setattr(module, "configure_log", lambda: None)
    done = CliRunner().invoke(module.main, ["--json", *options])
    return orjson.loads(done.stdout)


@pytest.mark.parametrize(("hyperties", "is_met"), [(60_000.0, True), (59_000.0, False)])
def test_the_number_of_the_local_bench_is_of_hyperties(hyperties, is_met, monkeypatch):
    reported = reported_of(
        monkeypatch, local, "measure", [Rates(bare=90_000.0, hyperties=hyperties)]
    )
    assert (reported["ours"], reported["met"]) == (hyperties, is_met)


def figures(latency=0.4, cpu=0.4, traced=0.9):
    taken = Taken(p50=10.0, p99=20.0, per_second=100.0, cpu=5.0)
    ways = {tracing: dict.fromkeys(Leg, taken) for tracing in Tracing}
    return Figures(ways, latency, cpu, dict.fromkeys(Leg, traced))


@pytest.mark.parametrize(
    ("measured", "missed"),
    [
        (figures(), 0),
        (figures(latency=0.6), 1),
        (figures(cpu=0.6), 1),
        (figures(traced=0.8), 2),
    ],
    ids=["reached", "latency", "cpu", "tracing, by both ways"],
)
def test_all_numbers_of_the_bench_of_paths_are_judged(measured, missed, monkeypatch):
    reported = reported_of(monkeypatch, paths, "measure", measured, "--kind", "unix")
    assert (len(reported["missed"]), reported["met"]) == (missed, not missed)
    assert "tcp" in reported["not_measured"]


def test_the_bench_of_paths_takes_the_kinds_that_keep_frames(monkeypatch):
    reported = reported_of(monkeypatch, paths, "measure", figures())
    assert list(reported["kinds"]) == [str(kind) for kind in DIRECT]
    refused = CliRunner().invoke(paths.main, ["--kind", str(Kind.STREAM)])
    assert refused.exit_code == 2


def test_the_worst_harm_is_shown_and_each_is_judged():
    pairs = {"spin": [Pair(1.0, 1.5)], "flood": [Pair(1.0, 3.0)], "crash": [Pair(1.0, 2.5)]}
    verdict = beside.judged("b", pairs)
    assert (verdict.ours, verdict.peer, verdict.ratio) == (3.0, 1.0, 3.0)
    assert verdict.missed == ("flood: 3.00x", "crash: 2.50x")
