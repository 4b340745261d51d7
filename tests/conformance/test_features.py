"""Every feature that is asked of a node is shown by a test that cites it."""

import pytest

from tests.support.feature_index import citations, known_tests
from tests.support.wire.wire_forms import LACKS, WIRE_FORMS

ASKED = (
    *(f"MN-{number:02}" for number in range(1, 28)),
    *(f"ALC-{number:02}" for number in range(1, 4)),
    *(f"POL-{number:02}" for number in (*range(1, 16), 17, 18)),
    *(f"CON-{number:02}" for number in range(1, 9)),
    *(f"PFY-{number:02}" for number in range(2, 8)),
    "ADR-04",
)

NOT_ASKED = {"MN-22": "several nodes of a domain that share tables: a later step"}
"""Features of second rank, and why no test of this step shows them."""

ELSEWHERE = {"PFY-04": "tests/actors/runtime", "POL-13": "tests/actors/node"}
"""Features that are no matter of a running node's wire, or need a look inside: where they are."""


@pytest.mark.parametrize("feature", ASKED)
def test_a_feature_is_shown_or_said_not_to_be(feature):
    folder = ELSEWHERE.get(feature, "tests/conformance")
    shown = citations(folder).get(feature, [])
    assert shown or feature in NOT_ASKED


def test_no_reason_is_left_for_a_feature_that_is_shown():
    shown = citations("tests/conformance")
    assert [feature for feature in (*NOT_ASKED, *ELSEWHERE) if feature in shown] == []


def test_every_lack_of_a_form_says_which_test_shows_what_happens_instead():
    """No form is left out without a word."""
    known = known_tests("tests/conformance")
    assert [test for test in LACKS.values() if test not in known] == []
    assert {form for _, form in LACKS} <= set(WIRE_FORMS)
