"""What the demonstration shows of the verdicts of both judges."""

import orjson
import pytest
from click.testing import CliRunner

from actors.demo.stage import Director, judged_by_both
from fsm.__main__ import cli
from fsm.judge.manifest import Manifest, Participant
from spark.pipeline import Question
from spark.run import Order, carry_out
from specs.trace import Fact, Kind, Op, trace_folder
from tests.support.trace.trace_files import records, session, whole, write_trace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


class Sentence:
    """Keeps the lines that are shown."""

    def __init__(self):
        self.lines = []

    def __call__(self, line, act):
        self.lines.append(line.text)


def test_the_verdict_is_that_of_both_judges(spark_session, tmp_path):
    """Each step is right, but a message names a participant of whom there is no trace."""
    stub = "hyperty-runtime://a.example/bob/protostub/1"
    ends = {
        "type": "read",
        "id": 1,
        "from_": "hyperty://a.example/1",
        "to": "hyperty://a.example/2",
    }
    came = Fact(k=Kind.MSG, op=Op.RCV, mid="m", link="l", via=stub, **ends)
    run = tmp_path / "run=r1"
    write_trace(
        tmp_path / trace_folder("r1", "alice"), records(whole([*session("open", "closed"), came]))
    )
    manifest = Manifest((Participant("hyperty-runtime://a.example/alice", "alice"),))
    place = tmp_path / "manifest.json"
    place.write_text(manifest.text())
    question = Question(traces=(str(run),), manifest=manifest)
    steps = carry_out(spark_session, Order(question=question)).as_json()
    options = ["--json", "--manifest", str(place)]
    messages = CliRunner().invoke(cli, ["judge", *options, str(run)]).stdout.splitlines()
    show = Sentence()
    verdict = judged_by_both(
        [*map(orjson.loads, steps)], [*map(orjson.loads, messages)], Director(show)
    )

    assert verdict["verdict"] == "incomplete"
    assert {verdict[one]["verdict"] for one in ("steps", "messages")} == {"incomplete"}
    (flaw,) = [text for text in show.lines if text.startswith("incomplete: ")]
    assert "there is no trace of hyperty-runtime://a.example/bob" in flaw
    assert "/run=r1/node=alice/part-00000.jsonl:4: " in flaw
