"""Rules that stand in Python and in JavaScript: both make the same of odd values."""

import json

import pytest
import trio

from tests.web import vectors
from tests.web.npm import needs_node
from tests.web.test_cores import node_test

pytestmark = pytest.mark.timeout(240)


def test_a_program_makes_of_odd_values_what_the_file_says():
    all_vectors = json.loads(vectors.FILE.read_text())
    for name, results in trio.run(vectors.outcomes, all_vectors).items():
        for vector, result in zip(all_vectors[name], results, strict=True):
            assert result == vector["makes"], (name, vector)


@needs_node
def test_a_page_makes_of_odd_values_what_the_file_says():
    node_test("vectors.test.js")
