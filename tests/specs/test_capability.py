"""Constraints of descriptors against the capabilities of a runtime (STB-12, CAT-02..04)."""

import re
from pathlib import Path

import pytest

from specs.capability import CAPABILITIES, Form, narrow, unmet

HAD = {
    "python": "3.11.2",
    "memory": 256,
    "sandbox": True,
    "network": False,
    "distributions": ["attrs", "trio"],
    "directLinks": [],
}


@pytest.mark.parametrize(
    ("constraints", "why"),
    [
        ({"python": "3.12"}, "it needs python 3.12, and this runtime has 3.11.2"),
        ({"python": "3.11.10"}, "it needs python 3.11.10"),
        ({"memory": 257}, "it needs memory 257, and this runtime has 256"),
        ({"network": True}, "it needs network, and this runtime has none"),
        ({"files": True}, "it needs files, and this runtime has none"),
        ({"distributions": ["trio", "numpy"]}, "it needs distributions trio, numpy"),
        ({"directLinks": ["tcp"]}, "it needs directLinks tcp, and this runtime has none"),
        ({"telepathy": True}, "its constraint 'telepathy' is unknown"),
        ({"telepathy": False}, "its constraint 'telepathy' is unknown"),
        ({"memory": "much"}, "its constraint 'memory' is not a number"),
        ({"memory": True}, "its constraint 'memory' is not a number"),
        ({"memory": -1}, "its constraint 'memory' is not a number"),
        ({"sandbox": 1}, "its constraint 'sandbox' is not true or false"),
        ({"python": "3.x"}, "its constraint 'python' is not a version"),
        ({"distributions": "trio"}, "its constraint 'distributions' is not a list of words"),
        ({"network": None}, "its constraint 'network' is not true or false"),
        (["python"], "its constraints are no object"),
        ("", "its constraints are no object"),
    ],
)
def test_constraints_that_are_not_met(constraints, why):
    assert (unmet(constraints, HAD) or "").startswith(why)


def test_without_a_runtime_it_is_judged_whether_one_could_meet_them():
    assert unmet({"memory": 10**6, "files": True}, None) is None
    assert unmet({"telepathy": True}, None) is not None


def test_a_capability_of_another_form_is_denied():
    assert unmet({"memory": 1}, narrow(HAD, {"memory": "much"})) is not None


def test_each_capability_says_what_it_is():
    assert all(says for _, says in CAPABILITIES.values())


def test_the_page_of_catalogues_lists_all_of_them():
    page = (Path(__file__).parents[2] / "docs" / "catalogue.md").read_text()
    section = page.partition("## Constraints")[2].partition("## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*) \|$", section, re.MULTILINE)
    words = {Form.AMOUNT: "number"}
    assert rows == [
        (name, words.get(form, form.name.lower()), says)
        for name, (form, says) in CAPABILITIES.items()
    ]
