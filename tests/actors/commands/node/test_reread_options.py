"""SIGHUP of a node or runtime with a file of options: what is taken, and what needs a restart."""

import os
import signal
from contextlib import asynccontextmanager

import trio

from actors.cli.group import ExitCode
from tests.support.command import serving

SECRET = "not-to-be-shown"  # noqa: S105


class Running:
    def __init__(self, process, file, errors):
        self.process = process
        self.file = file
        self._errors = errors
        self._text = b""

    async def changed(self, content):
        """The sentence of a node after a change of its file and SIGHUP."""
        self.file.write_text(content)
        self.process.send_signal(signal.SIGHUP)
        while True:
            line = await self._line()
            if line.startswith("protofly: "):
                return line.removeprefix("protofly: ").replace(str(self.file), "FILE")

    async def logged(self, event):
        while event not in (line := await self._line()):
            pass
        return line

    async def _line(self):
        while b"\n" not in self._text:
            piece = await self._errors.receive_some()
            assert piece, "it ended"
            self._text += piece
        line, _, self._text = self._text.partition(b"\n")
        return line.decode()


@asynccontextmanager
async def running(file, content, *arguments):
    file.write_text(content)
    outer, inner = os.pipe()
    async with trio.lowlevel.FdStream(outer) as errors:
        with os.fdopen(inner, "wb") as stderr:
            async with serving("node", "--config", str(file), *arguments, stderr=stderr) as node:
                one = Running(node.process, file, errors)
                one.url = node.url
                yield one
                assert await node.stop() == ExitCode.OK


def options(*lines):
    return "\n".join(("[node]", 'domain = "a.example"', "allow-legacy = true", *lines))


async def test_changed_options_are_taken_or_need_a_restart(tmp_path):
    file = tmp_path / "node.toml"
    first = options('log = "warning"', 'fan-out = "100"', 'max-malformed = "7"')
    async with running(file, first, "--max-malformed", "9") as node:
        text = await node.changed(
            options('log = "info"', 'fan-out = "200"', 'max-malformed = "8"', "monitor = true")
        )
        assert text == (
            "FILE: taken: log; a restart is needed for: fan-out, monitor; "
            "without effect, as the command line or the environment sets them: max-malformed"
        )
        # Taken: what is now as at the start, and the log of level info.
        node.file.write_text(options('log = "info"', 'fan-out = "100"', 'max-malformed = "7"'))
        node.process.send_signal(signal.SIGHUP)
        await node.logged("options unchanged")


async def test_a_file_that_is_wrong_changes_nothing(tmp_path):
    file = tmp_path / "node.toml"
    async with running(file, options('log = "error"')) as node:
        text = await node.changed(options("fan-oot = 7"))
        assert "did you mean 'fan-out'?" in text
        assert text.endswith("all options stay as they are")
        text = await node.changed(options('log = "loud"'))
        assert text.startswith("FILE: refused: log: ")
        assert await node.changed(options('log = "info"')) == "FILE: taken: log"


async def test_no_value_is_shown(tmp_path):
    file = tmp_path / "node.toml"
    async with running(file, options()) as node:
        text = await node.changed(options(f'audience = ["{SECRET}"]', 'log = "info"'))
        assert text == "FILE: taken: log; a restart is needed for: audience"
        node.process.send_signal(signal.SIGHUP)
        logged = await node.logged("options changed")
    assert "restart=audience" in logged
    assert SECRET not in logged
