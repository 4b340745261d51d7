"""The page of the claims is what the folds declare."""

from pathlib import Path

from click.testing import CliRunner

from spark.__main__ import claims_page, main
from specs.claims import CATALOGUE

PAGE = Path(__file__).parents[2] / "docs" / "claims.md"


def test_the_page_in_docs_is_up_to_date():
    """If not: python -m spark claims > docs/claims.md."""
    assert PAGE.read_text() == claims_page()


def test_each_claim_has_a_row_with_its_sentence_and_where_it_is_checked():
    rows = [line.split(" | ") for line in claims_page().splitlines() if line.startswith("| I-")]
    assert [row[0].removeprefix("| ") for row in rows] == [claim.id for claim in CATALOGUE]
    assert {len(row) for row in rows} == {8}
    assert [row[1] for row in rows] == [claim.name for claim in CATALOGUE]


def test_claims_on_bodies_are_marked():
    rows = [line for line in claims_page().splitlines() if line.endswith(", with bodies |")]
    assert len(rows) == 15  # docs/traces.md names this number.
    assert rows[0].startswith("| I-R8 |")


def test_the_command_prints_the_page():
    assert CliRunner().invoke(main, ["claims"]).stdout == claims_page()
