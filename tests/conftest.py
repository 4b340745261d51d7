"""Every session of tests writes down which steps the machines took: `make check` reads it."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fsm.check.census import read_census, write_census
from tests.support.census import counted

FILE = ".machine-steps.jsonl"
"""In the checkout, unless the environment names another place in MACHINE_STEPS."""


class Census:
    """What this process took; the one that leads adds what its workers took."""

    def __init__(self, config):
        self.config = config
        self.counting = counted()
        self.steps = self.counting.__enter__()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        for line in getattr(node, "workeroutput", {}).get(FILE, "").splitlines():
            (step,) = read_census([line])
            self.steps[step] += json.loads(line)["times"]

    def pytest_sessionfinish(self):
        told = write_census(self.steps)
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput[FILE] = told
        elif not self.config.option.collectonly:
            place = Path(os.environ.get("MACHINE_STEPS") or self.config.rootpath / FILE)
            place.write_text(told, encoding="utf-8")

    def pytest_unconfigure(self):
        self.counting.__exit__(None, None, None)


# A machine that is busy with other things is no finding: nothing is judged by the wall clock.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])


def pytest_configure(config):
    settings.load_profile("busy")
    config.pluginmanager.register(Census(config))
