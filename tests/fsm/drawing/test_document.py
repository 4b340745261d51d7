"""The page of all machines says what the tables say, and the one in the documents is today's."""

import re
from pathlib import Path

import pytest

from fsm.drawing.document import page
from fsm.drawing.draw import Format, draw, svg
from fsm.machine_list import MACHINES
from specs.claims import CLAIMS
from tests.support.trace.tables import DOOR, Door, door

DOCS = Path(__file__).parents[3] / "docs"
TABLES = [pytest.param(table, id=table.name) for table in MACHINES.values()]
LABEL = re.compile(r">([^<>]+)</t(?:ext|itle)>")


def section(table):
    text = (DOCS / "machines.md").read_text()
    return text.split(f"\n## {table.name}\n")[1].split("\n## ")[0]


def test_the_page_of_the_documents_is_of_todays_tables():
    """If not: python -m fsm document -o docs/machines.md."""
    assert (DOCS / "machines.md").read_text() == page(list(MACHINES.values()))


def test_the_drawing_of_the_readme_is_of_todays_table():
    """If not: python -m fsm draw p2p_connection --format svg -o docs/p2p_connection.svg."""
    shown = (DOCS / "p2p_connection.svg").read_text()
    assert sorted(LABEL.findall(shown)) == sorted(LABEL.findall(svg(MACHINES["p2p_connection"])))


@pytest.mark.parametrize("table", TABLES)
def test_every_machine_has_its_drawing_states_rows_and_claims(table):
    reported = section(table)

    assert draw(table, Format.MERMAID) in reported
    assert all(f"| `{state}` | {table.meanings[state]} |" in reported for state in table.states)
    assert all(f"`{row.words}` | `{row.target}` | {row.cite}" in reported for row in table.rows)
    assert all(CLAIMS[claim].text in reported for claim in table.claims)
    assert table.owner in reported


@pytest.mark.parametrize("table", TABLES)
def test_every_machine_is_spoken_of_by_claims(table):
    assert table.claims
    assert set(table.claims) <= set(CLAIMS)


@pytest.mark.parametrize("table", TABLES)
def test_people_are_sent_no_ids(table):
    assert not re.findall(r"\b(?:I-[A-Z]|[A-Z]{2,3}-|M-|SC-)\d+", section(table))


def test_a_deadline_is_reported_with_what_happens_then():
    reported = page([DOOR])

    assert "| `open` | " in reported
    assert "15 s, then `shut`: the wind comes" in reported
    assert "without end: nobody may ever come" in reported


def test_a_bar_in_a_word_does_not_end_a_table_cell():
    assert "| swings \\| creaks |" in page([door(meanings={Door.OPEN: "swings | creaks"})])


def test_an_undeclared_claim_is_an_error():
    with pytest.raises(KeyError):
        page([door(claims=("I-Z9",))])
