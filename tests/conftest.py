"""Every session of tests writes down which steps the machines took: `make check` reads it."""

import faulthandler
import gc
import json
import os
from collections import Counter
from contextlib import closing
from math import inf
from pathlib import Path
from time import monotonic
from unittest import TestCase

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, settings
from trio.testing import MockClock

from fsm.static_check import read_census, write_census
from tests.support.compiled import compile_tests
from tests.support.order import in_order
from tests.support.real_time import guard_sleep
from tests.support.shape import Stand
from tests.support.trace.census import counted

SOAK_TIMEOUT = 3600.0
"""Seconds that a test has when it tries twenty times as many examples."""

FILE = ".machine-steps.jsonl"
"""In the checkout, unless the environment names another place in MACHINE_STEPS."""


class Census:
    """What this process took; the one that leads adds what its workers took."""

    def __init__(self, config):
        self.config = config
        self.counting = counted()
        self.own_steps = self.counting.__enter__()
        self.steps_of_workers = Counter()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        for line in getattr(node, "workeroutput", {}).get(FILE, "").splitlines():
            (step,) = read_census([line])
            self.steps_of_workers[step] += json.loads(line)["times"]

    def pytest_sessionfinish(self):
        reported = write_census(self.own_steps() + self.steps_of_workers)
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput[FILE] = reported
        elif not self.config.option.collectonly:
            place = Path(os.environ.get("MACHINE_STEPS") or self.config.rootpath / FILE)
            place.write_text(reported, encoding="utf-8")

    def pytest_unconfigure(self):
        self.counting.__exit__(None, None, None)


# A machine that is busy with other things is no finding: nothing is judged by the wall clock.
settings.register_profile(
    "default", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", settings.get_profile("default"), max_examples=2000)
settings.load_profile("default")


HANGS = 290.0
"""Seconds, beyond the longest timeout mark: what hangs then is shown by a dump of all stacks."""

ARMED = 60.0
"""Seconds for which a watch is good for further tests, which may have as much more.

pytest's own (`faulthandler_timeout`) starts a thread for each test and waits for its end: for
17,000 tests that is five seconds of processor time, and more of waiting.
"""


class HangWatch:
    """Dumps all stacks where a test hangs."""

    def __init__(self, config):
        self.config = config
        self.since = -inf

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self):
        now = monotonic()
        if now - self.since > ARMED:
            self.since = now
            stderr = self.config.stash[fault_handler_stderr_fd_key]
            faulthandler.dump_traceback_later(HANGS + ARMED, file=stderr)

    def pytest_sessionfinish(self):
        faulthandler.cancel_dump_traceback_later()


def pytest_configure(config):
    config.pluginmanager.register(Census(config))
    config.pluginmanager.register(HangWatch(config))
    guard_sleep()


QUICK = ("tests/fsm/", "tests/specs/", "tests/transports/")
"""Whose tests take milliseconds each: a worker is given those of a module at once.

To hand out thousands of tests one by one takes ten seconds of processor time, and each worker waits
for its next.
"""

TOGETHER = 40
"""How many of them at most, so that no worker is left behind with a large module."""


COLLECTED = 10_000, 20, 50
"""Thresholds of the garbage collector: those of Python take a worker 4 % more of its time."""


def takes_long(item):
    """Say whether a test tries many examples, or was given a time of its own."""
    is_tried = getattr(item.obj, "is_hypothesis_test", False) or issubclass(
        item.cls or object, TestCase
    )
    return is_tried or any(item.get_closest_marker(name) for name in ("chance", "timeout"))


@pytest.fixture
def monkeypatch():
    """As pytest's; a stand-in for a function has its shape, and is called."""
    stand = Stand()
    yield stand
    silent = stand.silent
    stand.undo()
    assert not silent, f"nothing has called what stands in for {', '.join(sorted(silent))}"


@pytest.fixture
def hasty_clock():
    """Time that jumps once nothing has happened for a moment.

    What this process sends itself over real sockets needs less: however busy the machine is, no
    patience ends while something is under way. Not for tests with threads or other processes.
    """
    return MockClock(autojump_threshold=0.05)


@pytest.fixture(scope="session")
def browsers():
    """Chromium and Firefox; those that one test has started are used by the next."""
    from tests.support.browser import Browsers

    with closing(Browsers()) as opened:
        yield opened


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Compile a share; look for garbage once, afterwards: what is collected stays."""
    gc.disable()
    try:
        if worker := getattr(session.config, "workerinput", None):
            number = int(worker["workerid"].removeprefix("gw"))
            files = sorted(Path(__file__).parent.rglob("test_*.py"))
            compile_tests(session.config, files[number :: worker["workercount"]])
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(*COLLECTED)
        gc.enable()


CLOCKS = {"autojump_clock", "mock_clock", "hasty_clock", "clock"}
"""Fixtures that are the time of a test which names them; named by a fixture alone, they are not."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Group tests that share a costly fixture, and order them.

    A worker of xdist runs a group in order. Tests with the Spark session share one Java
    process, those with browsers one of each; the tests of a module share its module fixtures.
    """
    places = Counter()
    for item in items:
        fixtures = item._fixtureinfo.name2fixturedefs
        if CLOCKS & fixtures.keys() and not CLOCKS & set(item._fixtureinfo.argnames):
            raise pytest.UsageError(f"{item.nodeid}: only a clock that the test names is its time")
        if "spark_session" in fixtures:
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif "browsers" in fixtures and not item.get_closest_marker("long"):
            item.add_marker(pytest.mark.xdist_group("browsers"))
        elif any(one[-1].scope in {"module", "package"} for one in fixtures.values()):
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(config.rootpath))))
        elif item.nodeid.startswith(QUICK) and not takes_long(item):
            places[item.path] += 1
            part = places[item.path] // TOGETHER
            name = f"{item.path.relative_to(config.rootpath)} {part}"
            item.add_marker(pytest.mark.xdist_group(name))
        if config.getoption("hypothesis_profile", None) == "soak":
            item.add_marker(pytest.mark.timeout(SOAK_TIMEOUT), append=False)
    if config.getoption("loadscopereorder", None) is False:
        items[:] = in_order(items)
