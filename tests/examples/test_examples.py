"""Each example runs as a process of its own, says what it is to say, and is typed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.warm import run_warm
from tests.test_programs_of_pages import PROGRAMS as SHOWN

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(EXAMPLES.rglob("*.py"))

HELLO = """\
200 Hello, Alice!
400 a greeting needs a name
"""

CHAT = """\
bob is invited to 'the garden'
bob reads      bob: Hello from the other domain!
bob reads      alice: Hello Bob!
alice's chat   ['bob: Hello from the other domain!', 'alice: Hello Bob!']
bob sees that the chat is closed
"""

POLICY = """\
clerk: 200 here you are: ten coins
thief: 403 only the till takes money out
robot: 403 no robots
"""

STUB = """\
the server hears  ASK 1 "hello"
the answer is     200 HELLO
the server hears  ASK 2 "is it protocol on the fly?"
the answer is     200 IS IT PROTOCOL ON THE FLY?
"""

LINK = """\
a link may be created, in-progress, yielding, live, failed, disconnected
by the node: hello
link to hyperty-runtime://a.example/bob: it is set up
link to hyperty-runtime://a.example/bob: it is live
by the link: again
link to hyperty-runtime://a.example/bob: it ends, closed
"""

WHO = """\
bob, at home:        hello, user://b.example/bob (says the identity-provider)
alice, by the nodes: hello, user://a.example/alice (says the domain)
alice, by the link:  hello, user://a.example/alice (says the identity-provider)
"""

ORDERS = """\
receipt 1 Order(title='bolt', count=4)
409 too few of nut
400 value[0]: must be an object, not 'bolt'
left: {'bolt': 6}
its schema: {"Order": {"title": "Order", "description": "W ...
"""

WAKE = """\
bob's runtime sleeps
bob's device is called by a hyperty about 'lunch'
the node of bob.example: 200 {'devices': 1}
alice hears 'I am awake'
bob hears   'see you'
"""

HOSTED = """\
200 Bob is away. I have 1 for Bob.
200 Bob is away. I have 2 for Bob.
200 403 a guest only answers
"""

PRESENCE = """\
alice sees {'alice': 'here', 'bob': 'here'}
alice sees {'alice': 'here', 'bob': 'at lunch'}
alice sees {'alice': 'here'}
"""

SENSOR = [
    "display: 19.5 degrees to begin with",
    "display: 24.0 degrees (version 6)",
    "alarm: it is too warm!",
    "display: the sensor is gone",
]


def complaints(done):
    """Lines on stderr; a sandbox that a busy machine gives no time for its end is killed."""
    return [line for line in done.stderr.splitlines() if "stopped by force" not in line]


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("hello.py", HELLO),
        ("presence.py", PRESENCE),
        ("fastapi_service.py", '{"answer":"Hello, Alice!"}\nevents: 3 3\n'),
        ("typed_orders.py", ORDERS),
        ("write_a_policy/shop.py", POLICY),
        ("write_a_stub/shout.py", STUB),
        ("hosted_by_caller/call.py", HOSTED),
    ],
)
def test_the_program_says(program, said):
    done = run_warm(EXAMPLES / program)
    assert (done.stdout, complaints(done), done.returncode) == (said, [], 0)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("arguments", "said", "status"),
    [
        ((), "usage: python publish.py FOLDER stream://HOST:PORT\n", 1),
        (("out", "nowhere"), "its endpoint 'nowhere' names no host", 3),
    ],
)
def test_an_invalid_publication_is_reported(arguments, said, status, tmp_path):
    if arguments:
        arguments = (tmp_path / arguments[0], *arguments[1:])
    done = run_warm(EXAMPLES / "write_a_stub/publish.py", *arguments)
    assert said in done.stderr
    assert (len(done.stderr.splitlines()), done.returncode) == (1, status)


@pytest.mark.timeout(240)
def test_the_chat_goes_on_between_two_domains():
    done = run_warm(EXAMPLES / "chat_two_domains.py")
    # Whose line comes first on the screen is not fixed, but for each of them it is.
    assert sorted(done.stdout.splitlines()) == sorted(CHAT.splitlines()), done.stderr
    bob = [line for line in done.stdout.splitlines() if line.startswith("bob")]
    assert bob == [line for line in CHAT.splitlines() if line.startswith("bob")]
    assert (complaints(done), done.returncode) == ([], 0)


@pytest.mark.timeout(240)
def test_the_room_keeps_its_newest_texts_but_the_rude_one():
    done = run_warm(EXAMPLES / "chat_room.py")
    deleted, ann, *texts = done.stdout.splitlines()
    assert (deleted, ann) == ("the moderator deletes a text of ben", "ann reads"), done.stderr
    assert texts[5] == "a late member reads"
    spoons = [f"  ann: {number} spoons of salt" for number in range(8, 12)]
    assert texts[:5] == texts[6:] == [*spoons, "  ben: less salt, please"]
    assert (complaints(done), done.returncode) == ([], 0)


@pytest.mark.timeout(240)
def test_every_job_of_the_pool_is_done_by_one_that_takes_it():
    done = run_warm(EXAMPLES / "worker_pool.py")
    # Which worker is free first is not fixed.
    *refused, last = done.stdout.splitlines()
    assert last == f"done: {[n * n for n in range(12)]}", done.stderr
    assert all(re.fullmatch(r"job (\d+): not \1", line) for line in refused)
    assert (complaints(done), done.returncode) == ([], 0)


@pytest.mark.timeout(240)
def test_a_hyperty_greets_its_callers_by_name():
    done = run_warm(EXAMPLES / "who_calls.py")
    assert (done.stdout, complaints(done), done.returncode) == (WHO, [], 0)


@pytest.mark.timeout(240)
def test_a_runtime_that_sleeps_is_woken_and_answers_its_caller():
    done = run_warm(EXAMPLES / "wake_a_runtime.py")
    # The answer of the node and the device come side by side.
    assert sorted(done.stdout.splitlines()) == sorted(WAKE.splitlines()), done.stderr
    assert (complaints(done), done.returncode) == ([], 0)


@pytest.mark.timeout(240)
def test_the_model_goes_along_with_the_link():
    done = run_warm(EXAMPLES / "follow_a_link.py")
    # The first answer and the link are made side by side.
    lines, expected = done.stdout.splitlines(), LINK.splitlines()
    assert sorted(lines) == sorted(expected), done.stderr
    assert [one for one in lines if "node" not in one] == [
        one for one in expected if "node" not in one
    ]
    assert (complaints(done), done.returncode) == ([], 0)


@pytest.mark.timeout(240)
def test_the_sensors_observers_see_the_first_and_the_last_value():
    done = run_warm(EXAMPLES / "sensor_observers.py")
    lines = done.stdout.splitlines()
    # On a slow machine some values in between are passed over: that is the bargain.
    assert set(SENSOR) <= set(lines), done.stderr
    shown = [int(n) for n in re.findall(r"version (\d+)", done.stdout)]
    assert shown == sorted(set(shown))
    assert (complaints(done), done.returncode) == ([], 0)


@pytest.mark.timeout(240)
def test_the_tests_of_a_hyperty_pass():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_your_hyperty"]
    done = subprocess.run(  # noqa: S603 - the programs are ours
        command, cwd=EXAMPLES, capture_output=True, text=True, check=False, timeout=200
    )
    assert "4 passed" in done.stdout, done.stdout
    assert done.returncode == 0


COVARIANT = """\
from collections.abc import Mapping

import actors

class Counts(actors.Hyperty):
    async def on_request(self, message: actors.Message) -> dict[str, int]:
        return {"a": 1}

async def send(
    hyperty: actors.Deployed,
    one: dict[str, int],
    two: Mapping[str, tuple[float, ...]],
    three: list[str],
) -> None:
    await hyperty.request(hyperty.url, one)
    await hyperty.request(hyperty.url, {"one": one, "two": two, "three": [three, None]})
    await hyperty.request_each((hyperty.url,), two)
    await hyperty.insist(hyperty.url, three)
    await hyperty.ask(hyperty.url, actors.MessageType.CREATE, {"value": one})
    async with hyperty.report("ctxt", one) as reported:
        await reported.set("a", one)
        await reported.add("b", three, two)
        await reported.children.create(one)
    await hyperty.request(hyperty.url, {1j})  # type: ignore[arg-type]
    await hyperty.request(hyperty.url, {"a": object()})  # type: ignore[dict-item]
"""
"""A program whose values are JSON, though no `Json`; two are none."""


@pytest.mark.long
@pytest.mark.timeout(170)
def test_each_program_is_typed_strictly(tmp_path):
    """As in a program of somebody else, who has the package and nothing of its settings."""
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    for number, (program, _) in enumerate(SHOWN.values()):
        (tmp_path / f"tutorial_{number}.py").write_text(program)
    (tmp_path / "covariant.py").write_text(COVARIANT)
    programs = [*PROGRAMS, *sorted(tmp_path.glob("*.py"))]
    command = [
        *("-m", "mypy", "--strict", "--explicit-package-bases", "--follow-imports=silent"),
        *("--config-file", tmp_path / "mypy.ini", "--cache-dir", tmp_path / "cache"),
    ]
    done = subprocess.run(  # noqa: S603 - the programs are ours
        [sys.executable, *map(str, [*command, *programs])],
        env={**os.environ, "MYPYPATH": f"{ROOT}:{EXAMPLES / 'write_a_stub'}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=160,
    )
    assert (done.stdout, done.returncode) == (
        f"Success: no issues found in {len(programs)} source files\n",
        0,
    )


def test_the_list_of_examples_names_each_program():
    listed = re.findall(r"\[([^\]]+)\]\(\1\)", (EXAMPLES / "README.md").read_text())
    assert {str(path.relative_to(EXAMPLES)) for path in PROGRAMS} <= set(listed)
    assert [name for name in listed if not (EXAMPLES / name).exists()] == []
