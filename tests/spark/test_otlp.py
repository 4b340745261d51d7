"""Traces as OpenTelemetry spans: their form by the official schema, and what they say."""

import json
import re

import pytest

from spark.load import read_source
from spark.report.export import write_otlp
from specs.trace import Fact, Kind, Op
from tests.support.trace.trace_files import records, whole, write_trace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

MID = 'hyperty://a.ex/1#7"<\N{SNOWMAN}'
ASKED = {"k": Kind.MSG, "mid": MID, "type": "read", "from_": "hyperty://a.ex/1", "to": "x://b"}
ANSWER = {"k": Kind.MSG, "mid": f"{MID}!404", "ref": MID, "type": "response", "code": 404}
ALICE = [
    Fact(op=Op.SUBMIT, **ASKED), Fact(op=Op.XMIT, link="l", **ASKED),
    Fact(op=Op.RCV, link="l", **ANSWER), Fact(op=Op.CALLBACK, **ANSWER),
]  # fmt: skip
NODE = [
    Fact(op=Op.RCV, link="l", **ASKED), Fact(op=Op.XMIT, link="m", **ASKED),
    Fact(op=Op.RCV, link="m", **ANSWER), Fact(op=Op.XMIT, link="l", **ANSWER),
]  # fmt: skip
BOB = [Fact(op=Op.RCV, link="m", **ASKED), Fact(op=Op.XMIT, link="m", **ANSWER)]


@pytest.fixture(scope="module")
def exported(spark_session, tmp_path_factory):
    place = tmp_path_factory.mktemp("otlp")
    for node, facts in {"bob": BOB, "alice": ALICE, "node": NODE}.items():
        write_trace(place / "run" / f"node={node}", records(whole(facts), f"r-{node}", node))
    event = [Fact(op=Op.SUBMIT, k=Kind.MSG, mid="e#1", type="update", from_="e", to="f")]
    write_trace(place / "run" / "node=carol", [*records(whole(event), "r9", "carol"), "garbage"])
    source = read_source(spark_session, [str(place / "run")])
    texts = []
    for name in ("first", "again"):
        assert write_otlp(source.records, place / name, pieces=2) == 4
        texts.append((place / name).read_text())
    assert texts[0] == texts[1]
    return texts[0].splitlines()


@pytest.fixture(scope="module")
def spans(exported):
    """By process: its span."""
    found = {}
    for line in exported:
        for resource in json.loads(line)["resourceSpans"]:
            names = {one["key"]: one["value"] for one in resource["resource"]["attributes"]}
            ((scope),) = resource["scopeSpans"]
            (span,) = scope["spans"]
            found[names["service.name"]["stringValue"]] = span
    return found


def test_every_line_is_a_request_by_the_official_schema(exported):
    json_format = pytest.importorskip("google.protobuf.json_format")
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    assert len(exported) == 2
    for line in exported:
        request = json_format.Parse(line, service.ExportTraceServiceRequest())
        for resource in request.resource_spans:
            for span in resource.scope_spans[0].spans:
                assert (len(span.trace_id), len(span.span_id)) in {(16, 8), (24, 12)}


def test_ids_times_and_kinds_have_the_form_of_otlp_json(spans):
    assert set(spans) == {"alice", "node", "bob", "carol"}
    for span in spans.values():
        assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
        assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        assert span["kind"] in range(1, 6)
        for one in (span, *span["events"]):
            for attribute in one["attributes"]:
                ((kind, value),) = attribute["value"].items()
                assert kind in {"stringValue", "intValue"}
                assert isinstance(value, str)
    assert len({span["spanId"] for span in spans.values()}) == len(spans)


def test_the_asking_process_is_the_root_of_those_that_the_message_crossed(spans):
    asker = spans["alice"]
    assert "parentSpanId" not in asker
    assert (asker["name"], asker["kind"], asker["status"]) == ("read", 3, {"code": 2})
    for name, kind in {"node": 1, "bob": 2}.items():
        assert spans[name]["parentSpanId"] == asker["spanId"]
        assert spans[name]["traceId"] == asker["traceId"]
        assert spans[name]["kind"] == kind
    assert spans["carol"]["traceId"] != asker["traceId"]


def test_every_record_is_an_event(spans):
    names = [one["name"] for one in spans["alice"]["events"]]
    assert names == ["submit read", "xmit read", "rcv response", "callback response"]
    told = {one["key"]: one["value"] for one in spans["alice"]["attributes"]}
    assert told["protofly.mid"] == {"stringValue": MID}
