"""The children of the demonstration: heard, awaited, never left behind."""

import os
import sys

import pytest
import trio

from actors.cli.command_error import CommandError
from actors.demo import stage as children
from actors.demo.script import What
from actors.demo.stage import Director

SAY = (
    "import json, functools; out = functools.partial(print, flush=True); "
    "say = lambda **f: out(json.dumps(dict(schema='protofly.demo/1', **f))); "
)
WAIT = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); "
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "


class Recorder:
    def __init__(self):
        self.texts = []

    def __call__(self, line, act):
        if line.what is not What.ACT:
            self.texts.append((line.who, line.text))


def open_children(show):
    return children.open_children(Director(show))


def python(code):
    return (sys.executable, "-c", code)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_the_output_of_children_is_shown_until_the_expected_line():
    show = Recorder()
    code = SAY + "say(what='note', text='one'); print('noise'); say(what='done', text='two')"
    async with open_children(show) as children:
        await children.start("kid", python(code))
        line = await children.expect("kid", What.DONE)
        await children.ended("kid")
    assert line.text == "two"
    assert show.texts == [("kid", "one"), ("kid", "two")]


async def test_a_child_that_dies_is_reported_in_one_sentence():
    async with open_children(Recorder()) as children:
        await children.start("kid", python("raise SystemExit(7)"))
        with pytest.raises(CommandError, match="kid ended with status 7") as caught:
            await children.expect("kid", What.READY)
    assert caught.value.code == 1


async def test_a_child_that_ends_badly_is_reported():
    async with open_children(Recorder()) as children:
        await children.start("kid", python("raise SystemExit(7)"))
        with pytest.raises(CommandError):
            await children.ended("kid")


async def test_a_child_is_asked_to_go():
    code = WAIT + SAY + "say(what='ready', text='here'); signal.pause()"
    async with open_children(Recorder()) as children:
        await children.start("kid", python(code))
        await children.expect("kid", What.READY)
        await children.stop("kid")


async def test_another_child_that_dies_meanwhile_is_reported():
    code = WAIT + SAY + "say(what='ready', text='here'); signal.pause()"
    async with open_children(Recorder()) as children:
        await children.start("kid", python(code))
        await children.expect("kid", What.READY)
        await children.start("other", python("raise SystemExit(3)"))
        with pytest.raises(CommandError, match="other ended with status 3"):
            await children.ended("kid")


async def test_no_child_is_left_behind_when_cancelled():
    code = WAIT + SAY + "import os; say(what='ready', text=str(os.getpid())); signal.pause()"
    with trio.CancelScope() as scope:
        async with open_children(Recorder()) as children:
            await children.start("kid", python(code))
            pid = int((await children.expect("kid", What.READY)).text)
            assert is_alive(pid)
            scope.cancel()
            await trio.sleep_forever()
    assert not is_alive(pid)


async def test_a_stubborn_child_is_killed(monkeypatch):
    monkeypatch.setattr("actors.demo.stage.DRAIN_TIMEOUT", 0.2)
    code = STUBBORN + SAY + "say(what='ready', text='no'); time.sleep(60)"
    async with open_children(Recorder()) as children:
        await children.start("kid", python(code))
        await children.expect("kid", What.READY)
