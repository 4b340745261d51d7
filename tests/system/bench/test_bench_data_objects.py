"""The bench of data objects weighs what crosses a link, and judges its rates (SYN-16, S12)."""

import orjson
import pytest
from click.testing import CliRunner

from bench.node import data_objects
from bench.node.crowd import CrowdError
from bench.node.data_objects import FLOOR, OTHERS, REACH, WANTED, Rates
from bench.node.fan_out import FanOut, Others, measure_fan_out
from bench.node.object_sizes import ENTRIES, weigh
from bench.run import SMALL
from tests.support.warm import run_warm


@pytest.mark.timeout(240)
def test_the_bench_of_data_objects_runs_small():
    name = "node.data_objects"
    done = run_warm("-m", f"bench.{name}", "--json", *SMALL[name], timeout=200)

    reported = orjson.loads(done.stdout)
    assert (reported["bench"], reported["met"]) == ("data_objects", not done.returncode)
    assert reported["alone_per_second"] > 0
    assert reported["observed_per_second"] > 0
    assert reported["requests_per_second"] > 0
    assert reported["fan_out_ms"] > 0
    assert reported["others_p99_ms"] > 0
    assert reported["change_bytes"] < reported["whole_bytes"] / 10


@pytest.mark.parametrize(
    ("observed", "times", "options", "missed"),
    [
        (FLOOR, (REACH, 1.0, OTHERS), (), []),
        (FLOOR * 0.9, (REACH, 1.0, OTHERS), (), ["an observer gets"]),
        (FLOOR, (REACH * 1.1, 1.0, OTHERS), (), ["x of what it takes by hand"]),
        (FLOOR, (WANTED * 1.1, WANTED, OTHERS), (), ["ms of 15 ms"]),
        (FLOOR, (REACH, 1.0, OTHERS * 1.1), (), ["ms of 5 ms meanwhile"]),
        (FLOOR, (WANTED * 1.1, WANTED, OTHERS * 1.1), ("--observers=999",), []),
    ],
    ids=[
        "all reached", "observers get too little", "the last one waits too long beside others",
        "the last of a thousand waits too long", "others wait too long meanwhile",
        "fewer are not judged by that",
    ],
)  # fmt: skip
def test_all_numbers_are_judged(monkeypatch, observed, times, options, missed):
    *fan_out, others = times

    async def rates(*_, **__):
        return [Rates(alone=5000.0, observed=observed * 1000.0, requests=1000.0)]

    async def taken(*_, **__):
        return [FanOut(*fan_out)]

    async def asked(*_, **__):
        return Others([1.0] * 98 + [others] * 2, [1.0])

    monkeypatch.setattr(data_objects, "measure_rates", rates)
    monkeypatch.setattr(data_objects, "measure_others", asked)
    monkeypatch.setattr(data_objects, "measure_fan_out", taken)
    monkeypatch.setattr(data_objects, "configure_log", lambda: None)
    monkeypatch.setattr(data_objects, "raise_file_limit", lambda: None)

    done = CliRunner().invoke(data_objects.main, ["--json", *options])
    reported = orjson.loads(done.stdout.splitlines()[-1])  # a busy machine may be logged before
    assert done.exit_code == len(missed)
    assert all(part in one for part, one in zip(missed, reported["missed"], strict=True))


async def test_the_measured_value_is_the_observers():
    weighed = await weigh()

    change, whole = orjson.loads(weighed.change), orjson.loads(weighed.whole)
    assert change["to"] == f"{change['from']}/changes"
    assert change["body"]["attribute"] == "items.42.done"
    assert change["body"]["version"] == 2
    assert len(whole["body"]["value"]["data"]["items"]) == ENTRIES
    assert whole["from"] == f"{change['from']}/subscription"


async def test_an_observer_without_consent_is_not_in_the_fan_out():
    with pytest.RaisesGroup(
        pytest.RaisesExc(CrowdError, match="may not observe"), flatten_subgroups=True
    ):
        await measure_fan_out(1, 1, public=False)
