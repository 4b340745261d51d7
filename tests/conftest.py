"""Every session of tests writes down which steps the machines took: `make check` reads it."""

import os
from pathlib import Path

from fsm.steps import write_census
from tests.support.census import counted

FILE = ".machine-steps.jsonl"
"""In the checkout, unless the environment names another place in MACHINE_STEPS."""


def pytest_configure(config):
    counting = counted()
    steps = counting.__enter__()

    def write():
        counting.__exit__(None, None, None)
        if not config.option.collectonly:
            place = Path(os.environ.get("MACHINE_STEPS") or config.rootpath / FILE)
            place.write_text(write_census(steps), encoding="utf-8")

    config.add_cleanup(write)
