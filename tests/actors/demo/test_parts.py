"""Lines, figures and words of the demonstration."""

import orjson
import pytest
import trio
import trio.testing

from actors.commands.command_error import CommandError
from actors.demo.line import Line, What, read_line, tell
from actors.demo.observing import ObservingTracer
from actors.demo.show import JsonShow, PlainShow, choose_show
from actors.demo.terminal import TerminalShow
from actors.demo.verdict import judge
from actors.demo.workload import WORKERS, NumberedRequests, measure
from actors.kit.trace import MemoryTracer
from specs.message import Message, MessageType
from specs.trace import Fact, Kind, Op

LINK = "R|S|requester|R/p2prequester/1"


def answer(code=200):
    return Message(1, MessageType.RESPONSE, "hyperty://b.ex/1", "hyperty://a.ex/1", {"code": code})


def step(old, new, machine="p2p_connection", key=LINK):
    return Fact(k=Kind.STATE, op=Op.STEP, machine=machine, key=key, old=old, new=new, cause="c")


def sent(stub, to="hyperty://b.ex/1"):
    return Fact(k=Kind.MSG, op=Op.XMIT, stub=stub, to=to)


def test_a_told_line_is_read_as_it_was_meant(capsys):
    tell("alice", What.NOTE, "hello", count=3)
    line = read_line("alice", capsys.readouterr().out.encode())
    assert (line.who, line.what, line.text) == ("alice", What.NOTE, "hello")
    assert line.fields["count"] == 3


def test_a_ready_line_is_read_too():
    raw = orjson.dumps({"schema": "protofly.ready/1", "role": "node", "url": "ws://x/link"})
    assert read_line("node", raw).text == "node ready at ws://x/link"


@pytest.mark.parametrize("raw", [b"", b"noise", b"[]", b"{}", b'{"what":"x","text":"y"}', b"\xff"])
def test_other_output_is_no_line(raw):
    assert read_line("kid", raw) is None


async def test_steps_of_links_are_told_and_can_be_awaited(capsys):
    seen = ObservingTracer("alice", MemoryTracer())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(seen.until, lambda: seen.link == "live")
        await trio.testing.wait_all_tasks_blocked()
        seen.record("stub", step("in-progress", "live"))
    assert seen.lives == 1
    assert "R/p2prequester/1: in-progress -> live (c)" in capsys.readouterr().out


def test_requests_are_counted_by_the_way_they_went():
    inner = MemoryTracer()
    seen = ObservingTracer("alice", inner, "hyperty://b.ex/1")
    facts = [step("created", "live"), sent("R/p2prequester/1"), sent("R/protostub/1")]
    facts += [sent("R/protostub/1"), sent("R/protostub/1", "elsewhere"), Fact(k=Kind.END)]
    facts += [step("[*]", "open", machine="session", key="x")]
    for fact in facts:
        seen.record("stub", fact)
    assert (seen.sent_by_link(), seen.sent_by_node()) == (1, 2)
    assert inner.facts == facts


def test_routes_and_rows_that_matter_are_told_once(capsys):
    seen = ObservingTracer("alice", MemoryTracer(), "hyperty://b.ex/1")
    route = Fact(k=Kind.RESOLVE, op=Op.DONE, to="hyperty://b.ex/1", result="R/protostub/1", why="w")
    seen.record("registry", route)
    seen.record("registry", route)
    seen.record("registry", Fact(k=Kind.TABLE, op=Op.ADD, table="p2p", key="S", val="created"))
    seen.record("registry", Fact(k=Kind.TABLE, op=Op.ADD, table="stubs", key="d", val="created"))
    assert [read_line("", line.encode()).text for line in capsys.readouterr().out.splitlines()] == [
        "no listener for hyperty://b.ex/1: resolved to R/protostub/1, w",
        "registry: p2p add S: created",
    ]


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


def test_shows_show_each_line(capsys):
    line = Line("alice", What.NOTE, "hello", {"what": "note"})
    PlainShow().line(line)
    JsonShow().line(line)
    TerminalShow().line(line)
    plain, json, rich = capsys.readouterr().out.splitlines()
    assert plain == "alice  hello"
    assert orjson.loads(json) == {"who": "alice", "what": "note", "text": "hello"}
    assert rich.split() == ["alice", "hello"]


def test_text_is_plain_where_there_is_no_terminal(monkeypatch):
    assert isinstance(choose_show(), PlainShow)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert isinstance(choose_show(), TerminalShow)


async def test_without_a_verdict_the_demonstration_fails(tmp_path):
    with pytest.raises(CommandError, match="could not be judged"):
        await judge(tmp_path / "nowhere", tmp_path / "report", PlainShow())
