"""Two terminals share a to-do list: real processes, a node of its own, one at a terminal."""

import importlib.util
import os
import pty
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from types import SimpleNamespace

import attrs
import pytest

import actors
from specs.message import MessageType
from tests.support.node.node_process import ROOT, node_process
from tests.support.warm import WarmProcess, fork_warm, run_warm

PROGRAM = ROOT / "examples" / "todo" / "todo.py"
PATIENCE = 60.0
SENTENCE = "say add TEXT, done NUMBER, undo NUMBER, drop NUMBER, show, or quit"


@attrs.define
class Terminal:
    """One who runs the program, types, and reads what it prints."""

    process: WarmProcess
    keys: int
    screen: int
    lines: "Queue[str]" = attrs.field(factory=Queue)

    def __attrs_post_init__(self):
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        rest = b""
        while True:
            try:
                chunk = os.read(self.screen, 4096)
            except OSError:
                return
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self.lines.put(line.decode().strip())

    def types(self, line):
        os.write(self.keys, f"{line}\n".encode())

    def sees(self, wanted):
        """Read on until a line is there; return it."""
        seen, end = [], time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                seen.append(self.lines.get(timeout=1))
            except Empty:
                continue
            if wanted in seen[-1]:
                return seen[-1]
        pytest.fail(f"{wanted!r} never came, but {seen}")

    def ends(self):
        return self.process.wait(PATIENCE)


@contextmanager
def terminal(*arguments, is_real=False):
    """Run the program, at a pseudo-terminal or at two pipes."""
    keys_end, keys = pty.openpty()[::-1] if is_real else os.pipe()
    screen, screen_end = (keys, keys_end) if is_real else os.pipe()
    process = fork_warm([str(PROGRAM), *arguments], (keys_end, screen_end, screen_end))
    for end in {keys_end, screen_end}:
        os.close(end)
    try:
        yield Terminal(process, keys, screen)
    finally:
        process.kill()
        process.wait()
        for end in {keys, screen}:
            os.close(end)


@pytest.fixture
def node(tmp_path):
    options = ("--domain", "home.example", "--allow-legacy")
    with node_process(tmp_path / "node.log", *options) as running:
        yield running.ready["url"]


@pytest.mark.timeout(280)
def test_both_terminals_see_each_change(node):
    with terminal(node, "anna", is_real=True) as anna:
        url = anna.sees("list: ").removeprefix("list: ")
        anna.types("add milk")
        anna.sees("1 [ ] milk")
        with terminal(node, "bert", url) as bert:
            bert.sees("1 [ ] milk")
            bert.types("add tea")
            anna.sees("2 [ ] tea")
            bert.sees("2 [ ] tea")
            anna.types("done 1")
            bert.sees("1 [x] milk")
            bert.types("drop 1")
            anna.sees("1 [ ] tea")
            # Who types what cannot be done is answered in a line, and nobody else is.
            for wrong, why in (
                ("drop 7", "there is no item 7"),
                ("done milk", "there is no item milk"),
                ("add", "items.1.title: it is shorter than 1 character"),
                ("sing", SENTENCE),
            ):
                for who in (anna, bert):
                    who.types(wrong)
                    who.sees(why)
            anna.types("quit")
            assert anna.ends() == 0
            bert.sees("the list is closed")
            assert bert.ends() == 0


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "usage: python todo.py NODE NAME [LIST]"),
        (("home.example", "anna"), "usage: python todo.py NODE NAME [LIST]"),
        (("ws://127.0.0.1:9/link", "anna"), "todo: "),
        (("ws://127.0.0.1:9/link", "a/b"), "todo: "),
    ],
)
def test_a_wrong_command_is_one_sentence(arguments, why):
    done = run_warm(PROGRAM, *arguments)
    assert done.returncode == 1
    assert done.stderr.startswith(why)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.timeout(150)
def test_a_list_that_is_not_there_is_one_sentence(node):
    with terminal(node, "bert", "comm://home.example/none") as bert:
        assert bert.sees("todo: comm://home.example/none: 404")
        assert bert.ends() == 1


def test_the_page_of_examples_says_how_it_is_started():
    text = Path(PROGRAM).read_text()
    assert "python -m actors node --domain home.example --allow-legacy" in text


def todo_example():
    spec = importlib.util.spec_from_file_location("todo_example", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("number", ["1" * 5000, "0" * 5000 + "1", "51", "0", "", "x"])
def test_a_number_of_no_item_is_a_request_that_cannot_be_done(number):
    todo = todo_example()
    with pytest.raises(todo.RequestError, match="there is no item") as caught:
        todo.place(number, 50)
    assert len(str(caught.value)) < 100


class Unwritable:
    """A list that takes no write, or publishes none."""

    def __init__(self, where, error):
        self._where, self._error = where, error
        self.data = SimpleNamespace(items=self)

    def append(self, _item):
        self._fail("write")

    async def flush(self):
        self._fail("flush")

    def _fail(self, where):
        if where == self._where:
            raise self._error


@pytest.mark.parametrize("where", ["write", "flush"])
async def test_the_user_is_notified_why_the_list_cannot_be_written(where):
    """SYN-13: too many writes wait, or the list is gone."""
    owner = todo_example().Owner()
    error = actors.ObjectError("comm://home.example/list", 503, "256 writes of it wait already")
    owner.todo = Unwritable(where, error)
    owner_url, visitor = "hyperty://home.example/anna", "hyperty://home.example/bert"
    request = actors.Message(1, MessageType.EXECUTE, visitor, owner_url, {"value": "add tea"})
    with pytest.raises(actors.Refused) as refused:
        await owner.on_request(request)
    assert (refused.value.code, refused.value.why) == (503, error.why)
