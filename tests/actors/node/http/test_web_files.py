"""Files for browsers: what is served, with which headers, and nothing beside them."""

import re
from http import HTTPStatus
from pathlib import Path

import pytest

from actors.http.site import POLICY, WEB, Visit, WebFiles
from fsm.drawing.draw import dot
from fsm.machine_list import MACHINES

ROOT = Path(__file__).parents[4] / "web"


async def visit(path, *headers, method="GET"):
    return await WebFiles().answer(Visit(method, f"{WEB}{path}", headers))


async def test_a_file_is_served_byte_for_byte_and_only_once():
    page = await visit("dashboard/machines/session.svg")
    assert (page.status, page.content_type) == (HTTPStatus.OK, "image/svg+xml")
    assert page.body == (ROOT / "dashboard" / "machines" / "session.svg").read_bytes()
    again = await visit(
        "dashboard/machines/session.svg", ("if-none-match", dict(page.headers)["etag"])
    )
    assert (again.status, again.body) == (HTTPStatus.NOT_MODIFIED, b"")


async def test_files_are_only_read():
    page = await visit("dashboard/machines/session.svg", method="POST")
    assert page.status == HTTPStatus.METHOD_NOT_ALLOWED


def test_the_policy_of_pages_lets_nothing_inline_or_foreign_in():
    rules = dict(one.split(" ", 1) for one in POLICY.split("; "))
    assert rules["default-src"] == "'none'"
    assert {rules["script-src"], rules["style-src"], rules["connect-src"]} == {"'self'"}
    assert "unsafe" not in POLICY


@pytest.mark.parametrize("table", MACHINES.values(), ids=lambda table: table.name)
def test_the_kept_drawing_of_a_machine_is_that_of_its_table(table):
    kept = (ROOT / "dashboard" / "machines" / f"{table.name}.svg").read_text()
    assert set(re.findall(r'id="([^"]+)"', kept)) == set(re.findall(r'id="([^"]+)"', dot(table)))
    titles = re.findall(r"<title>([^<]+)</title>", kept)
    assert len(titles) >= len(table.states)
