"""Lines, figures and words of the demonstration."""

import orjson
import pytest
import trio
import trio.testing

from actors.cli.command_error import CommandError
from actors.demo.child import WORKERS, Latencies, NumberedRequests, compared, measure
from actors.demo.script import Beat, Line, ObservingTracer, What, read_line, report
from actors.demo.stage import (
    Director,
    choose_show,
    judge,
    show_coloured,
    show_json,
    show_plain,
)
from specs.message import Message, MessageType
from specs.trace import Fact, Kind, Op
from tests.support.trace.memory import MemoryTracer

LINK = "R|S|requester|R/p2prequester/1"


def answer(code=200):
    return Message(1, MessageType.RESPONSE, "hyperty://b.ex/1", "hyperty://a.ex/1", {"code": code})


def step(old, new, machine="p2p_connection", key=LINK, cause="c"):
    return Fact(k=Kind.STATE, op=Op.STEP, machine=machine, key=key, old=old, new=new, cause=cause)


def sent(stub, to="hyperty://b.ex/1"):
    return Fact(k=Kind.MSG, op=Op.XMIT, stub=stub, to=to)


def test_a_reported_line_is_read_as_it_was_meant(capsys):
    report("alice", What.NOTE, "hello", count=3)
    line = read_line("alice", capsys.readouterr().out.encode())
    assert (line.who, line.what, line.text) == ("alice", What.NOTE, "hello")
    assert line.fields["count"] == 3


def test_a_ready_line_is_read_too():
    raw = orjson.dumps({"schema": "protofly.ready/1", "role": "node", "url": "ws://x/link"})
    assert read_line("node", raw).text == "ready: ws://x/link"


@pytest.mark.parametrize("raw", [b"", b"noise", b"[]", b"{}", b'{"what":"x","text":"y"}', b"\xff"])
def test_other_output_is_no_line(raw):
    assert read_line("kid", raw) is None


async def test_steps_of_links_are_reported_and_can_be_awaited(capsys):
    seen = ObservingTracer("alice", MemoryTracer())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(seen.until, lambda: seen.link == "live")
        await trio.testing.wait_all_tasks_blocked()
        seen.record("stub", step("in-progress", "live", cause="established"))
    assert seen.lives == 1
    reported = read_line("alice", capsys.readouterr().out.encode())
    assert (reported.text, reported.beat) == ("link to S: live (requester)", Beat.LINK_LIVE)


def test_requests_are_counted_by_their_route():
    inner = MemoryTracer()
    seen = ObservingTracer("alice", inner, "hyperty://b.ex/1")
    facts = [step("created", "live"), sent("R/p2prequester/1"), sent("R/protostub/1")]
    facts += [sent("R/protostub/1"), sent("R/protostub/1", "elsewhere"), Fact(k=Kind.END)]
    facts += [step("[*]", "open", machine="session", key="x")]
    for fact in facts:
        seen.record("stub", fact)
    assert (seen.sent_by_link(), seen.sent_by_node()) == (1, 2)
    assert inner.facts == facts


async def test_requests_are_measured_one_after_the_other(autojump_clock):
    async def ask(_):
        await trio.sleep(0.001)
        return answer()

    taken = await measure(NumberedRequests(), ask, 100)
    assert taken.requests == 100
    assert 0 < taken.p50_us <= taken.p99_us
    assert set(taken.as_json()) == {"requests", "p50_us", "p99_us", "per_second"}


async def test_numbers_are_used_once_and_bad_answers_are_kept(autojump_clock):
    numbers = []
    enough = trio.Event()

    async def ask(value):
        numbers.append(value["number"])
        await trio.sleep(1)
        return answer(503 if value["number"] == 5 else 200)

    requests = NumberedRequests()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(requests.keep_asking, ask, enough)
        await requests.until(lambda: requests.answered >= 3 * WORKERS - 1)
        enough.set()
    assert numbers == list(range(1, requests.sent + 1))
    assert requests.failures == [503]


@pytest.mark.parametrize("show", [show_plain, show_coloured])
def test_a_line_stands_below_the_heading_of_its_act(show, capsys):
    show(Line("demo", What.ACT, "A heading"), 2)
    show(Line("alice", What.NOTE, "hello"), 2)
    reported = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert reported[-2:] == ["2  A heading", "   alice  hello"]


def test_every_json_line_has_a_schema_and_its_act(capsys):
    show_json(Line("demo", What.ACT, "A heading"), 2)
    show_json(Line("bob", What.READY, "ready", {"schema": "protofly.ready/1"}), 2)
    first, second = map(orjson.loads, capsys.readouterr().out.splitlines())
    assert first == {
        "schema": "protofly.demo/1", "who": "demo", "what": "act", "act": 2, "beat": None,
        "text": "A heading",
    }  # fmt: skip
    assert second["schema"] == "protofly.ready/1"


def test_both_routes_are_shown_side_by_side():
    ways = Latencies(1000, 2111.4, 5430, 449.2), Latencies(1000, 1055.7, 2715, 898.4)
    assert compared(*ways) == [
        "             requests         p50         p99  per second",
        "by the node     1,000    2,111 us    5,430 us         449",
        "by the link     1,000    1,056 us    2,715 us         898",
        "link / node                  0.50        0.50        2.00",
    ]


def test_text_is_plain_where_there_is_no_terminal(monkeypatch):
    assert choose_show() is show_plain
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert choose_show() is show_coloured


async def test_without_a_verdict_the_demonstration_fails(tmp_path):
    place = tmp_path / "nowhere"
    with pytest.raises(CommandError, match="could not be judged"):
        await judge([place], place, tmp_path / "report", Director(show_plain))
