"""Traces as XES, read again by an XML parser that knows nothing of it."""

from xml.etree import ElementTree as ET

import pytest

from spark.load import read_source
from spark.report.export import write_xes
from tests.support.trace.trace_files import records, session, whole, write_trace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]
XES = "{http://www.xes-standard.org/}"


def test_every_entity_is_a_trace_and_every_step_an_event(spark_session, tmp_path):
    facts = session("open", "closed", key="a|b") + session("open", key='<"\x01&')
    write_trace(tmp_path / "run" / "node=alice", records(whole(facts)))
    source = read_source(spark_session, [str(tmp_path / "run")])
    assert write_xes(source.records, tmp_path / "log.xes", pieces=2) == 3

    log = ET.parse(tmp_path / "log.xes").getroot()  # noqa: S314 - our own file
    traces = log.findall(f"{XES}trace")
    names = {trace.find(f"{XES}string").get("value") for trace in traces}
    assert names == {"session a|b", 'session <"\N{REPLACEMENT CHARACTER}&'}
    assert sorted(len(trace.findall(f"{XES}event")) for trace in traces) == [1, 2]
