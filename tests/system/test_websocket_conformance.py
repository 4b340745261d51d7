"""Both our WebSocket ends against the Autobahn cases, which kosoku runs (C1).

What is not plainly OK stands in a file, with its reason; any other verdict fails.
Cases that depend on how a peer's writes fall into our reads may be OK as well.
"""

import csv
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
import trio

from tests.support.command import ROOT

pytestmark = [pytest.mark.websocket_cases, pytest.mark.timeout(240)]

KOSOKU = str(Path(sys.executable).parent / "kosoku")
PINNED = ROOT / "tests" / "fixtures" / "websocket-cases.csv"
COMPRESSION = ("12.*", "13.*")
OTHERS = 301
COMPRESSED = 216


def pinned(end):
    """The verdicts that are not plainly OK, by case."""
    with PINNED.open() as file:
        rows = [row for row in csv.DictReader(file) if row["end"] in {end, "both"}]
    return {row["case"]: row["verdict"].split(" or ") for row in rows}


def verdicts(reports):
    (cases,) = orjson.loads((reports / "index.json").read_bytes()).values()
    return {
        case: (reported["behavior"], reported["behaviorClose"]) for case, reported in cases.items()
    }


def surprises(end, found):
    """Cases whose verdict is not the pinned one; without one, both are OK."""
    allowed = pinned(end)
    return {
        case: pair
        for case, pair in found.items()
        if pair[0] not in allowed.get(case, ["OK"])
        or pair[1] not in {"OK", "INFORMATIONAL" if pair[0] == "INFORMATIONAL" else "OK"}
    }


@asynccontextmanager
async def process(*command, **more):
    """Run a program beside the test; it is gone afterwards."""
    running = await trio.lowlevel.open_process([*command], cwd=ROOT, **more)
    try:
        yield running
    finally:
        if running.poll() is None:
            running.kill()
        with trio.CancelScope(shield=True):
            await running.wait()


async def line_of(stream):
    line = b""
    while not line.endswith(b"\n"):
        piece = await stream.receive_some()
        assert piece, "it ended before it said where it listens"
        line += piece
    return line.decode().strip()


async def cases(*arguments):
    """Run the cases as a client, to the end."""
    await trio.run_process(
        [KOSOKU, "--parallelism", "4", *arguments], check=False, capture_stdout=True
    )


async def echo_server(*arguments):
    command = (sys.executable, "-m", "tests.system.websocket_echo")
    async with process(*command, stdout=subprocess.PIPE) as server:
        await cases(*arguments, await line_of(server.stdout) + "/")
        assert server.poll() is None


@pytest.mark.long
async def test_our_accepting_end_fails_no_case(tmp_path):
    await echo_server("--outdir", str(tmp_path))
    found = verdicts(tmp_path)
    plain = {case: pair for case, pair in found.items() if not case.startswith(("12.", "13."))}
    assert len(plain) == OTHERS
    assert surprises("server", plain) == {}
    compressed = {pair for case, pair in found.items() if case not in plain}
    assert (len(found) - len(plain), compressed) == (COMPRESSED, {("UNIMPLEMENTED", "OK")})


@pytest.mark.long
async def test_our_dialling_end_fails_no_case(tmp_path):
    without = [word for one in COMPRESSION for word in ("--exclude", one)]
    command = (KOSOKU, "--mode", "fuzzingserver", "--outdir", str(tmp_path), *without)
    async with process(
        *command, "127.0.0.1:0", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as server:
        place = (await line_of(server.stderr)).rpartition(" ")[2]
        client = (sys.executable, "-m", "tests.system.websocket_echo_client", place)
        await trio.run_process([*client], cwd=ROOT)
        assert await server.wait() == 0
    found = verdicts(tmp_path)
    assert len(found) == OTHERS
    assert surprises("client", found) == {}


def test_another_verdict_would_be_seen():
    good = {"1.1.1": ("OK", "OK"), "6.4.3": ("NON-STRICT", "OK"), "3.3": ("OK", "OK")}
    assert surprises("server", good) == {}
    for case, pair in {
        "1.1.1": ("NON-STRICT", "OK"),
        "6.4.3": ("OK", "OK"),
        "7.1.5": ("OK", "WRONG CODE"),
    }.items():
        assert set(surprises("server", {**good, case: pair})) == {case}
