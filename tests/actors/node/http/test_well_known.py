"""The catalogue of a domain as its node serves it (CAT-09, ADR-09)."""

import json

import pytest

from actors.http.config import HttpConfig, ShownCatalogue
from actors.http.metrics import Readiness, ReadyPage
from actors.http.service import site_of
from actors.http.site import Visit
from actors.kit.counters import Counters
from tests.support.catalogues import Publishing, archive_of


@pytest.fixture
def domain(tmp_path):
    made = Publishing()
    made.serves(made.profile(version="7.1"))
    made.code(archive_of(tmp_path / "code"))
    made.revokes()
    for path, content in made.files.items():
        file = tmp_path / "cat" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (tmp_path / "cat" / "secret").write_text("secret")
    (tmp_path / "cat/.well-known/notes.txt").write_text("secret")
    return made


@pytest.fixture
def ask(domain, tmp_path):
    shown = ShownCatalogue("b.ex", tmp_path / "cat")
    config = HttpConfig("127.0.0.1:0", catalogue=shown)
    site = site_of(config, Counters(), ReadyPage(Readiness(), {}))

    async def asked(path, method="GET", **headers):
        said = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        return await site.answer(Visit(method, path, said))

    return asked


@pytest.mark.parametrize(
    ("name", "value"), [("version", "7.1"), ("counter", 1), ("objectName", "default")]
)
async def test_an_attribute_is_cut_out(ask, name, value):
    page = await ask(f"/.well-known/protocolstub/default/{name}")
    assert (page.content_type, json.loads(page.body)) == ("application/json", value)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_nothing_can_be_changed(ask, method):
    page = await ask("/.well-known/protocolstub/default", method)
    assert (page.status, dict(page.headers)["allow"]) == (405, "GET, HEAD")


async def test_a_too_large_file_is_not_served(ask, tmp_path):
    (tmp_path / "cat/.well-known/protocolstub/default").write_bytes(bytes(70_000))
    assert (await ask("/.well-known/protocolstub/default")).status == 503
