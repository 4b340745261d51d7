"""Traces of real processes: each start is a run, and a verdict says no more than they tell.

The processes are killed and started again with the same `--trace DIR`, or their traces
are spoilt; `python -m fsm judge` reads them (OBS-01).
"""

import json
import shutil
import signal
from pathlib import Path

import attrs
import orjson
import pytest
import trio
from click.testing import CliRunner

import actors
from actors.cli.group import ExitCode
from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from fsm.__main__ import cli
from fsm.judge.trace_files import Reading, parts_in
from specs.trace import Kind, Op
from tests.support.command import call, called, serving

pytestmark = pytest.mark.timeout(300)

DOMAIN = ("--domain", "a.example")
BOB = "hyperty-runtime://a.example/bob"
ALICE = "hyperty-runtime://a.example/alice"
ECHO = ("--hyperty", "echo=actors.hyperties:Echo", "--p2p", "none")


def judged(*places, broken=()):
    """What `fsm judge` says: the things that are missing, and the verdict.

    Args:
        broken: Ids of the claims that are broken.
    """
    done = CliRunner().invoke(cli, ["judge", "--json", *map(str, places)])
    *said, verdict = map(json.loads, done.stdout.splitlines())
    assert [one["id"] for one in said if one["schema"] == "protofly.broken-claim/1"] == [*broken]
    assert done.exit_code == (0 if verdict["verdict"] == "conformant" else 1)
    return [one for one in said if one["schema"] == "protofly.flaw/1"], verdict


@attrs.define
class Service:
    """What README shows: a node, a runtime and a request, with one `--trace DIR`."""

    directory: Path
    key: dict
    tokens: int = 0

    @property
    def traces(self):
        return self.directory / "traces"

    def command(self, name, *more):
        return (name, *DOMAIN, "--trace", str(self.traces), *more)

    def token(self, user):
        """Issue a token, as each start needs one of its own; return the option."""
        self.tokens += 1
        options = ("--key", self.key["key"], "--user", f"user://a.example/{user}", *DOMAIN)
        file = self.directory / f"{self.tokens}.token"
        file.write_text("".join(called(issue, *options).out))
        return ("--token-file", str(file))

    def node(self):
        return serving(*self.command("node", "--jwks", self.key["jwks"]))

    def bob(self, node):
        where = ("--name", "bob", "--node", node.url)
        return serving(*self.command("runtime", *where, *ECHO, *self.token("bob")))

    async def ask(self, node, bob):
        where = ("--node", node.url, *self.token("alice"))
        ended = await call(*self.command("request", *where), bob.ready["hyperties"]["echo"], "1")
        assert ended.status == ExitCode.OK, ended.err


@pytest.fixture
def service(tmp_path):
    return Service(tmp_path, json.loads(called(keys, "--out", str(tmp_path)).out[0]))


async def whole_run(service):
    async with service.node() as node:
        async with service.bob(node) as bob:
            await service.ask(node, bob)
            assert await bob.stop() == ExitCode.OK
        assert await node.stop() == ExitCode.OK


async def test_the_same_commands_run_twice_into_one_directory(service):
    await whole_run(service)
    first = sorted(service.traces.iterdir())
    await whole_run(service)
    second = sorted(path for path in service.traces.iterdir() if path not in first)

    assert [len(first), len(second)] == [3, 3]
    assert max(first) < min(second)
    for places in ([service.traces], first, second, [service.traces, *first]):
        missing, verdict = judged(*places)
        assert (missing, verdict["verdict"]) == ([], "conformant")


async def test_a_killed_runtime_starts_again_with_the_same_trace(service):
    async with service.node() as node:
        for how in (signal.SIGKILL, signal.SIGTERM):
            async with service.bob(node) as bob:
                await service.ask(node, bob)
                await bob.stop(how)
        await node.stop()

    killed, _alive = sorted(service.traces.glob("run=*/node=bob"))
    missing, verdict = judged(service.traces)
    assert verdict["verdict"] == "incomplete"
    # It may have been killed in the middle of a line.
    assert {one["file"] for one in missing} == {str(killed / "part-00000.jsonl")}
    assert any("it has no end: " in one["reason"] for one in missing)
    # Without the run that was killed, the others tell all: bob took part with a trace.
    missing, verdict = judged(*(run for run in service.traces.iterdir() if run != killed.parent))
    assert (missing, verdict["verdict"]) == ([], "conformant")


async def test_a_killed_node_starts_again_with_the_same_trace(service):
    async with service.node() as node:
        await node.stop(signal.SIGKILL)
    async with service.node() as node:
        assert await node.stop() == ExitCode.OK

    parts = service.traces.glob("run=*/node=node.a.example/part-00000.jsonl")
    assert len(list(parts)) == 2


async def test_a_run_that_could_not_begin_leaves_no_trace(service):
    nobody = ("--name", "bob", "--node", "ws://127.0.0.1:1/link")
    ended = await call(*service.command("runtime", *nobody, *ECHO))

    assert ended.status == ExitCode.CANNOT_CONNECT
    assert not service.traces.exists()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A node and two runtimes that talk by the node, and then directly."""
    directory = tmp_path_factory.mktemp("recorded")
    trio.run(_record, directory)
    return directory


async def _record(directory):
    async with actors.open_node("a.example", trace=directory) as node:

        def runtime(name):
            kinds = (actors.Kind.TCP,)
            config = actors.RuntimeConfig(domain="a.example", name=name, node=node.url, kinds=kinds)
            return actors.open_runtime(config, trace=directory)

        async with runtime("bob") as there, runtime("alice") as here:
            echo, caller = await there.deploy(Echo), await here.deploy(Echo)
            assert (await caller.request(echo.url, "by the node")).code == 200
            while [link.status.value for link in await here.links()] != ["live"]:  # noqa: ASYNC110
                await trio.sleep(0.01)
            assert (await caller.request(echo.url, "directly")).code == 200


class Echo(actors.Hyperty):
    async def on_request(self, message):
        return message.body.get("value")


@pytest.fixture
def copied(recorded, tmp_path):
    """The traces once more, to be spoilt."""
    return shutil.copytree(recorded, tmp_path / "copied")


def part_of(directory, name):
    (part,) = directory.glob(f"run=*/node={name}/part-*.jsonl")
    return part


def write(part, records):
    """Write records as a process would have: their numbers without a hole."""
    numbered = [record | {"ln": ln} for ln, record in enumerate(records, start=1)]
    part.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in numbered))


def test_a_recorded_run_is_conformant(recorded):
    assert judged(recorded)[1]["verdict"] == "conformant"


@pytest.mark.parametrize(
    ("name", "address"),
    [("bob", BOB), ("alice", ALICE), ("node.a.example", "domain://msg-node.a.example")],
)
def test_a_participant_without_a_trace_is_named(copied, name, address):
    shutil.rmtree(part_of(copied, name).parent)
    missing, verdict = judged(copied)

    assert verdict["verdict"] == "incomplete"
    (one,) = missing
    assert one["reason"].startswith(f"there is no trace of {address}, ")
    lines = Path(one["file"]).read_text().splitlines()
    assert json.loads(lines[one["line"] - 1])["ln"] == one["ln"]


@pytest.mark.parametrize("name", [BOB, "a.example"])
def test_a_participant_that_keeps_no_trace_may_be_named_as_such(copied, name):
    shutil.rmtree(part_of(copied, "bob").parent)
    assert judged("--untraced", name, copied)[1]["verdict"] == "conformant"
    assert judged("--untraced", ALICE, copied)[1]["verdict"] == "incomplete"


def test_a_file_that_is_cut_off_is_named_with_its_last_record(copied):
    part = part_of(copied, "bob")
    whole = part.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join(whole[: len(whole) // 2]) + whole[-1][:40])
    missing, verdict = judged(copied)

    assert verdict["verdict"] == "incomplete"
    assert {one["file"] for one in missing} == {str(part)}
    assert [(one["line"], one["reason"]) for one in missing] == [
        (len(whole) // 2, "it has no end: the process crashed, was killed, or still runs"),
        (len(whole) // 2 + 1, "the line cannot be read: no JSON"),
    ]


def test_a_line_that_was_cut_out_is_named_with_the_one_behind_it(copied):
    part = part_of(copied, "alice")
    lines = part.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join([*lines[:9], *lines[10:]]))
    missing, verdict = judged(copied)

    assert verdict["verdict"] == "incomplete"
    (one,) = missing
    assert (one["file"], one["line"]) == (str(part), 10)
    assert one["reason"] == "record 10 is missing before this one"


def test_an_answer_that_is_reported_nowhere_is_named_with_its_request(copied):
    """The bus let the answer in, and the application's request has none: it was lost there."""
    part = part_of(copied, "alice")
    records = [orjson.loads(line) for line in part.read_bytes().splitlines()]
    answers = [
        record
        for record in records
        if record.get("op") == Op.CALLBACK and record["from"].startswith("hyperty://")
    ]
    write(part, [record for record in records if record != answers[0]])
    missing, verdict = judged(copied, broken=["I-T12"])

    assert verdict["verdict"] == "violations"
    (one,) = missing
    asked = answers[0]["ref"]
    assert one["reason"] == f"the final answer to {asked} is not recorded, nor that there was none"
    reported = orjson.loads(part.read_bytes().splitlines()[one["line"] - 1])
    assert (reported["op"], reported["mid"]) == (Op.SUBMIT, asked)


def test_records_that_were_dropped_are_named(copied):
    part = part_of(copied, "bob")
    records = [orjson.loads(line) for line in part.read_bytes().splitlines()]
    stamp = {name: records[0][name] for name in ("run", "node", "wall_ns", "mono_ns", "t", "actor")}
    write(part, [*records[:-1], stamp | {"k": Kind.DROPPED, "count": 3}, records[-1]])
    (one,) = judged(copied)[0]

    assert one["line"] == len(records)
    assert one["reason"].startswith("records were dropped")


def test_two_runs_of_one_name_are_not_taken_for_one(copied, recorded):
    """The same numbers, keys and messages under the same names, in runs of their own."""
    again = []
    for part in sorted(recorded.glob("run=*/node=*/part-*.jsonl")):
        text = part.read_text()
        run = json.loads(text.splitlines()[0])["run"]
        copy = copied / f"run={run}-again" / part.parent.name / part.name
        copy.parent.mkdir(parents=True)
        copy.write_text(text.replace(f'"run":"{run}"', f'"run":"{run}-again"'))
        again.append(copy)

    missing, verdict = judged(copied)
    assert (missing, verdict["verdict"]) == ([], "conformant")
    assert verdict["records"] == 2 * len(list(Reading(parts_in([recorded])).records()))
    assert len(again) == 3
