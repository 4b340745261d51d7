"""The page of all machines says what the tables say, and the one in the documents is today's."""

import re
from pathlib import Path

import pytest

from fsm.drawing.document import page
from fsm.machine_list import MACHINES
from specs.claims import CLAIMS
from tests.fsm.tables import door

DOCS = Path(__file__).parents[3] / "docs"
TABLES = [pytest.param(table, id=table.name) for table in MACHINES.values()]


def section(table):
    text = (DOCS / "machines.md").read_text()
    return text.split(f"\n## {table.name}\n")[1].split("\n## ")[0]


def test_the_page_of_the_documents_is_of_todays_tables():
    """If not: python -m fsm document -o docs/machines.md."""
    assert (DOCS / "machines.md").read_text() == page(list(MACHINES.values()))


@pytest.mark.parametrize("table", TABLES)
def test_every_machine_is_spoken_of_by_claims(table):
    assert table.claims
    assert set(table.claims) <= set(CLAIMS)


@pytest.mark.parametrize("table", TABLES)
def test_people_are_sent_no_ids(table):
    assert not re.findall(r"\b(?:I-[A-Z]|[A-Z]{2,3}-|M-|SC-)\d+", section(table))


def test_an_undeclared_claim_is_an_error():
    with pytest.raises(KeyError):
        page([door(claims=("I-Z9",))])
