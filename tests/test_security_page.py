"""Each guarantee of the page on security is shown by tests, which cite it; no other is cited."""

import re
from pathlib import Path

from tests.support.feature_index import named

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text()
ROW = re.compile(r"^\| (SEC-\d\d) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
ADVERSARIES = set(re.findall(r"^- \*\*([a-z ]+)\*\*:", PAGE, re.MULTILINE))


def rows():
    return {id_: said for id_, *said in ROW.findall(PAGE)}


def test_every_line_of_the_table_is_a_row_with_an_id_of_its_own():
    lines = [line for line in PAGE.splitlines() if line.startswith("| SEC-")]
    assert len(lines) == len(rows()) > 20
    assert list(rows()) == sorted(rows())


def test_each_guarantee_is_cited_by_a_test():
    assert {id_ for id_ in rows() if not named("tests").get(id_)} == set()


def test_no_test_cites_a_guarantee_that_is_not_there():
    cited = {id_ for id_ in named("tests") if id_.startswith("SEC-")}
    assert cited - set(rows()) == set()


def test_the_page_refers_to_its_own_rows_only():
    assert set(re.findall(r"SEC-\d\d", PAGE)) == set(rows())


def test_adversaries_are_those_that_the_page_explains():
    against = {one.strip() for *_, whom in rows().values() for one in whom.split(",")}
    assert against == ADVERSARIES
