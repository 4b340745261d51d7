"""Each bench runs at its smallest size, and its rows say what they are and what they should be."""

import importlib
import math
from pathlib import Path

import attrs
import orjson
import pytest
from click.testing import CliRunner

from bench import run
from bench.report import SCHEMA, Case, Row, interleaved, medians, percentile, ratio
from bench.run import BENCHES
from tests.support.command import ROOT
from tests.support.warm import run_warm

LONG = {*BENCHES} - {"calls", "explorer", "node.routed", "runtime.footprint"}
"""Those that take more than five seconds at their smallest."""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.soak] if one in LONG else []) for one in BENCHES]
)
def test_a_bench_runs_small(name):
    done = run_warm("-m", f"bench.{name}", "--json", "--small", timeout=200)
    assert done.returncode == 0, done.stderr
    report = orjson.loads(done.stdout)
    assert (report["schema"], report["bench"]) == (SCHEMA, f"bench.{name}")
    assert report["rows"]
    for row in report["rows"]:
        assert row["case"] in {*Case}
        assert math.isfinite(row["value"])
        assert row["verdict"].partition(":")[0] in {"no reach", "reached", "missed"}
        assert (row["verdict"] == "no reach") is (row["reach"] is None)


def test_every_bench_is_run_and_says_what_it_answers_and_in_which_case():
    folder = Path(ROOT, "bench")
    files = [file for file in folder.rglob("*.py") if "main = program(" in file.read_text()]
    names = {".".join(file.relative_to(folder).with_suffix("").parts) for file in files}
    assert names == {*BENCHES}
    assert len(names) <= 12
    for name in names:
        question, _, rest = importlib.import_module(f"bench.{name}").__doc__.partition("\n")
        assert question.endswith("?"), name
        assert any(f"{case}" in rest.lower() for case in Case), name


def test_every_bench_imports_what_it_needs():
    """Those that are long run rarely: what they call is there all the same."""
    assert all(importlib.import_module(f"bench.{name}").main.params for name in BENCHES)


# ---- what is reported

ROW = Row("a", 2.0, "us")


@pytest.mark.parametrize(
    ("reach", "is_least", "verdict"),
    [
        (None, False, "no reach"),
        (2.0, False, "reached: at most 2"),
        (1.5, False, "missed: at most 1.5"),
        (2.0, True, "reached: at least 2"),
        (2.5, True, "missed: at least 2.5"),
    ],
)
def test_a_row_says_whether_it_reaches_its_number(reach, is_least, verdict):
    assert attrs.evolve(ROW, reach=reach, is_least=is_least).verdict == verdict


async def test_works_are_measured_by_turns():
    order = []

    async def work(name):
        order.append(name)
        return float(len(order))

    taken = await interleaved(2, {"a": lambda: work("a"), "b": lambda: work("b")})
    assert order == ["a", "b", "a", "b"]
    assert taken == {"a": [1.0, 3.0], "b": [2.0, 4.0]}
    assert ratio(taken["b"], taken["a"]) == pytest.approx((2 + 4 / 3) / 2)
    node, relay = medians("x", {"node": taken["a"], "b": taken["b"]}, "us", Case.BEST, reach=1.0)
    assert node == Row("x, node", 2.0, "us", Case.BEST, 1.0)
    assert relay == Row("x, b", 3.0, "us", Case.BEST)


def test_a_percentile_is_a_value_that_so_many_do_not_exceed():
    assert [percentile(range(100), percent) for percent in (0, 50, 99, 100)] == [0, 50, 99, 99]


# ---- what runs them

REPORT = {
    "schema": SCHEMA, "bench": "bench.calls", "question": "How many?",
    "rows": [{**attrs.asdict(ROW), "verdict": ROW.verdict}],
}  # fmt: skip
FAILED = {"schema": SCHEMA, "bench": "bench.judge", "failed": "bench.judge ended with 3"}


@pytest.mark.parametrize("as_json", [False, True])
def test_a_bench_that_fails_is_a_line_and_the_others_run(as_json, monkeypatch):
    reports = {"judge": FAILED, "calls": REPORT}
    monkeypatch.setattr(run, "run", lambda name, *_: reports[name])
    done = CliRunner().invoke(run.main, [*(["--json"] if as_json else []), *reports])
    assert done.exit_code == 1
    if as_json:
        assert [orjson.loads(line) for line in done.stdout.splitlines()] == [FAILED, REPORT]
    else:
        assert done.stdout.splitlines() == [
            "bench.judge ended with 3", "bench.calls: How many?",
            "  a  2 us  ordinary case  no reach",
        ]  # fmt: skip


def test_a_bench_that_ends_early_has_no_figures(monkeypatch):
    monkeypatch.setattr(run.sys, "executable", "false")
    assert "ended with 1" in run.run("calls")["failed"]


def test_the_page_of_results_has_all_reports():
    page = run.page([REPORT, FAILED], 90.0)
    assert "1.5 minutes" in page
    assert page.index("bench.calls: How many?") < page.index("bench.judge ended with 3")
