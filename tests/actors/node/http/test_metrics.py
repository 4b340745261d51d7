"""What a running node shows at /metrics, and what the page for operators says of it."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from actors.http.metrics import Constant, MetricsPage
from actors.kit.counters import BOUNDS, BackEnd, Counters, Form, Gauge, Outcome, Tally, Timing
from specs.reply_code import Code, DropReason
from tests.support.command import ROOT, serving
from tests.support.node.node_process import UNHURRIED
from tests.support.node.web import get
from tests.support.wire.wire_peer import FORMS

PAGE = (ROOT / "docs" / "operating.md").read_text()
_ROW = re.compile(r"^\| `(protofly_\w+)` \| (\w+) \| ([\w, ]*) \| (.+) \|$", re.MULTILINE)
DOCUMENTED = {name: (kind, labels.strip(), says) for name, kind, labels, says in _ROW.findall(PAGE)}


def declared():
    """Every metric by the name it is shown under."""
    named = {f"protofly_{name}_total": ("counter", name) for name in Constant}
    named |= {f"protofly_{tally}_total": ("counter", tally) for tally in Tally}
    named |= {f"protofly_{one}_seconds": ("histogram", one) for one in Timing}
    named |= {f"protofly_{gauge}": ("gauge", gauge) for gauge in Gauge}
    rows = {name: (kind, ", ".join(one.labels), one.says) for name, (kind, one) in named.items()}
    return {
        "protofly_build_info": (
            "gauge",
            "version, python",
            "Versions of the program and of Python.",
        )
    } | rows


def read(text):
    """Samples by name and labels, as Prometheus reads them."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def page_of(counters):
    return read((await MetricsPage(counters)()).body.decode())


def test_the_page_for_operators_has_every_metric_as_it_is():
    assert declared() == DOCUMENTED


async def test_a_node_shows_nothing_that_the_page_does_not_name():
    async with serving("node", "--domain", "a.ex", "--http", "127.0.0.1:0") as node:
        text = (await get(f"{node.ready['http_url']}/metrics")).text
    shown = set(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))
    assert {name for name in shown if not name.startswith("process_")} <= set(DOCUMENTED)
    assert {"process_open_fds", "process_resident_memory_bytes"} <= shown


@pytest.mark.parametrize("form", ["plain", "session", "link"])
async def test_a_message_is_counted_in_its_wire_form(form):
    """A session, and one request to nobody."""
    options = ("--domain", "a.ex", "--allow-legacy", "--http", "127.0.0.1:0", *UNHURRIED)
    async with serving("node", *options) as node:
        peer = FORMS[form](node.ready, "a.ex", "r1")
        await peer.connect()
        await peer.open()
        before = await scrape(node)
        assert await peer.code("read", peer.part("sm"), "hyperty://a.ex/nobody") == 404
        after = await scrape(node)
        await peer.vanish()
    assert (before["protofly_sessions", ("state", "open")], before["protofly_links",]) == (1, 1)
    for key in (
        ("protofly_messages_received_total", ("form", form)),
        ("protofly_messages_sent_total", ("form", form)),
        ("protofly_messages_admitted_total",),
        ("protofly_policy_decisions_total", ("decision", "permit")),
    ):
        assert after[key] - before[key] == 1


async def scrape(node):
    return read((await get(f"{node.ready['http_url']}/metrics")).text)


async def test_counts_are_shown_by_their_labels():
    counters = Counters()
    counters.drop(DropReason.LOOP)
    counters.restarts["connection:7"] += 1
    counters.restarts["connection:8"] += 1
    counters.count(Tally.REFUSALS, Code.FORBIDDEN)
    counters.received[Form.PLAIN] += 3
    counters.watch(Gauge.RECORDS, lambda: 5)
    shown = await page_of(counters)
    assert shown["protofly_messages_dropped_total", ("reason", "loop")] == 1
    assert shown["protofly_messages_dropped_total", ("reason", "denied")] == 0
    assert shown["protofly_actor_restarts_total", ("actor", "connection")] == 2
    assert shown["protofly_messages_refused_total", ("code", "403")] == 1
    assert shown["protofly_messages_received_total", ("form", "plain")] == 3
    assert shown["protofly_registry_records",] == 5
    assert ("protofly_foreign_stubs",) not in shown


async def test_durations_are_shown_in_classes_that_add_up():
    counters = Counters()
    for seconds in (0.0001, BOUNDS[0], 0.2, 60.0):
        counters.took(Timing.CONNECTOR, seconds, BackEnd.QUALITY, Outcome.TIMEOUT)
    shown = await page_of(counters)
    labels = ("connector", "qos"), ("outcome", "timeout")
    name = "protofly_connector_request_seconds"
    assert shown[f"{name}_bucket", labels[0], ("le", "0.0005"), labels[1]] == 2
    assert shown[f"{name}_bucket", labels[0], ("le", "0.25"), labels[1]] == 3
    assert shown[f"{name}_bucket", labels[0], ("le", "+Inf"), labels[1]] == 4
    assert shown[f"{name}_sum", *labels] == pytest.approx(60.2006)


def test_a_node_without_http_loads_nothing_for_it():
    source = Path(ROOT / "actors" / "node" / "app.py").read_text()
    assert "from actors.http.service import" in source
    assert "\nfrom actors.http.service" not in source
