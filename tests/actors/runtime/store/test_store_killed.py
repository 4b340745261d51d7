"""Reporter, observer and node, killed at any moment: nothing acknowledged is lost (SYN-25, I-D2).

What observers saw is never ahead of the store, versions go on, and all agree again.
"""

import json
import os
import threading
from contextlib import ExitStack
from tempfile import TemporaryFile

import pytest

from tests.support.node.node_process import UNHURRIED, node_process
from tests.support.warm import fork_warm

PATIENCE = 60.0


class Party:
    """A process of `tests.actors.runtime.store.stored_party`, and what it has said so far."""

    def __init__(self, *arguments):
        command = ["-m", "tests.actors.runtime.store.stored_party", *map(str, arguments)]
        outer, inner = os.pipe()
        self._stdout, self._stderr = open(outer), TemporaryFile("w+")  # noqa: PTH123, SIM115 - a descriptor; see kill
        self.process = fork_warm(command, (None, inner, self._stderr.fileno()))
        os.close(inner)
        self.said = []
        self._is_over = False
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self._stdout:
            if line.endswith("\n"):
                self._note([json.loads(line)])
        self._is_over = True
        self._note([])

    def _note(self, said):
        with self._news:
            self.said += said
            self._news.notify_all()

    def until(self, holds):
        """Wait until the last thing said is so."""

        def is_so():
            return bool(self.said) and holds(self.said[-1])

        with self._news:
            self._news.wait_for(lambda: is_so() or self._is_over, PATIENCE)
            assert is_so(), (self.said[-3:], self._is_over and self._complaints())
            return self.said[-1]

    def _complaints(self):
        self._stderr.seek(0)
        return self._stderr.read()[-2000:]

    def first(self):
        """Wait for the first thing it says."""
        self.until(lambda reported: True)
        return self.said[0]

    def kill(self):
        """Kill it, and return the last version it has said."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self._stdout.close()
        self._stderr.close()
        return self.said[-1]["version"] if self.said else 0


@pytest.fixture
def parties():
    with ExitStack() as stack:

        def start(*arguments):
            party = Party(*arguments)
            stack.callback(lambda: party.process.poll() is None and party.kill())
            return party

        yield start


def after(version):
    return lambda reported: reported.get("version", 0) > version


@pytest.mark.timeout(180)
def test_no_acknowledged_write_is_lost_and_no_observer_saw_an_unstored_one(tmp_path, parties):
    place = ("--domain", "a.ex", "--allow-legacy", *UNHURRIED)
    reports, copies = tmp_path / "ra.sqlite", tmp_path / "rb.sqlite"
    with node_process(tmp_path / "node.log", *place) as node:
        url = node.ready["url"]
        reporter = parties("report", url, reports)
        thing = reporter.first()["url"]
        observer = parties("observe", url, copies, thing)
        observer.until(after(3))
        for more in (0, 40):
            reporter.until(after(reporter.said[-1]["version"] + more))
            reported, seen = reporter.kill(), observer.said[-1]["version"]
            reporter = parties("report", url, reports)
            reporter.until(after(reported + 5))
            back = reporter.said[0]
            assert back["resumed"]
            assert back["url"] == thing
            assert back["at"] == back["version"]
            assert max(reported, seen) <= back["version"] <= reported + 1
            observer.until(after(back["version"] + 3))
        for _ in range(2):
            seen = observer.kill()
            observer = parties("observe", url, copies, thing)
            observer.until(after(seen + 3))
            assert observer.said[0]["stale"]
            assert observer.said[0]["version"] <= seen
        assert all(one["at"] == one["version"] for one in observer.said)
        versions = [one["version"] for one in observer.said]
        assert versions == sorted(set(versions))


@pytest.mark.timeout(180)
def test_a_node_that_is_killed_is_sent_all_again(tmp_path, parties):
    place = ("--domain", "a.ex", "--allow-legacy", *UNHURRIED)
    reports, copies = tmp_path / "ra.sqlite", tmp_path / "rb.sqlite"
    with node_process(tmp_path / "node.log", *place) as node:
        url = node.ready["url"]
        where = url.removeprefix("ws://").partition("/")[0]
        reporter = parties("report", url, reports)
        thing = reporter.first()["url"]
        observer = parties("observe", url, copies, thing)
        seen = observer.until(after(3))["version"]
        node.process.kill()
        node.process.wait()
    with node_process(tmp_path / "node.log", *place, "--listen", where) as node:
        observer.until(after(seen + 50))
        node.process.kill()
        node.process.wait()
        reported, seen = reporter.kill(), observer.kill()
    with node_process(tmp_path / "node.log", *place, "--listen", where):
        observer = parties("observe", url, copies, thing)
        reporter = parties("report", url, reports)
        back = reporter.until(after(reported))
        assert reporter.said[0]["resumed"]
        observer.until(after(max(seen, back["version"])))
