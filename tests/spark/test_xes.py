"""Traces as XES, read again by an XML parser that knows nothing of it."""

from xml.etree import ElementTree as ET

import pytest

from spark.load import read_source
from spark.report.export import write_xes
from specs.trace import trace_folder
from tests.support.trace.trace_files import records, session, whole, write_trace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]
XES = "{http://www.xes-standard.org/}"


def test_every_entity_is_a_trace_and_every_step_an_event(spark_session, tmp_path):
    facts = session("open", "closed", key="a|b") + session("open", key='<"\x01&%')
    write_trace(tmp_path / "run" / "node=alice", records(whole(facts), "r1", "alice"))
    source = read_source(spark_session, [str(tmp_path / "run")])
    assert write_xes(source.records, tmp_path / "log.xes", pieces=2) == 3

    log = ET.parse(tmp_path / "log.xes").getroot()  # noqa: S314 - our own file
    traces = log.findall(f"{XES}trace")
    names = {trace.find(f"{XES}string").get("value") for trace in traces}
    place = "session run=r1/node=alice"
    assert names == {f"{place} a|b", f'{place} <"%0001&%25'}
    assert sorted(len(trace.findall(f"{XES}event")) for trace in traces) == [1, 2]


def test_the_cases_of_all_processes_have_different_names(spark_session, tmp_path):
    """Also of entities whose keys differ only in characters that XML does not take."""
    keys = ("a|b", "a\x01", "a\x02", "a%0001")
    places = [("r1", "alice"), ("r2", "alice"), ("r1", "bob"), ("r1/node=x", "y"), ("r1", "x/y")]
    for run, node in places:
        facts = [fact for key in keys for fact in session("open", "closed", key=key)]
        write_trace(tmp_path / trace_folder(run, node), records(whole(facts), run, node))
    source = read_source(spark_session, [str(tmp_path)])
    write_xes(source.records, tmp_path / "log.xes", pieces=2)

    log = ET.parse(tmp_path / "log.xes").getroot()  # noqa: S314 - our own file
    names = [trace.find(f"{XES}string").get("value") for trace in log.findall(f"{XES}trace")]
    assert len(names) == len(set(names)) == len(keys) * len(places)
