"""The cores of data objects and direct links in the browser runtime do what those in Python do."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.web import link_cases, object_cases
from tests.web.npm import needs_node
from tests.web.test_cores import node_test

REPLAY = Path(__file__).with_name("objects.mjs")
CASES = 40


@needs_node
@pytest.mark.parametrize("cases", [object_cases.cases, link_cases.cases], ids=["objects", "links"])
def test_the_cores_of_the_browser_runtime_do_what_those_in_python_do(cases):
    text = "\n".join(json.dumps(case) for case in cases(1, CASES))
    done = subprocess.run(  # noqa: S603 - ours
        ["node", str(REPLAY)],  # noqa: S607 - of the system
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" calls, 0 cases differ\n"), done.stdout


@needs_node
def test_a_page_cannot_name_an_attribute_by_a_path_with_an_empty_part():
    node_test("objects.test.js")
