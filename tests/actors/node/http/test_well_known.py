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


KINDS = {
    ".well-known/actors.json": "application/jwk-set+json",
    ".well-known/actors-revoked.jws": "application/jose",
    ".well-known/protocolstub/default": "application/jose",
}


@pytest.mark.parametrize(("path", "kind"), KINDS.items())
async def test_each_file_has_its_content_type(domain, ask, path, kind):
    page = await ask(f"/{path}")
    assert (page.status, page.content_type, page.body) == (200, kind, domain.files[path])


async def test_a_package_is_served(domain, ask):
    [path] = [one for one in domain.files if "sourcepackage" in one]
    page = await ask(f"/{path}")
    assert (page.status, page.content_type, page.body) == (
        200,
        "application/zip",
        domain.files[path],
    )


async def test_the_other_spelling_of_stubs_is_served(ask):
    one, other = (
        await ask("/.well-known/protostub/default"),
        await ask("/.well-known/protocolstub/default"),
    )
    assert one.body == other.body


@pytest.mark.parametrize(
    ("name", "value"), [("version", "7.1"), ("counter", 1), ("objectName", "default")]
)
async def test_an_attribute_is_cut_out(ask, name, value):
    page = await ask(f"/.well-known/protocolstub/default/{name}")
    assert (page.content_type, json.loads(page.body)) == ("application/json", value)


async def test_a_page_is_known_by_its_tag_until_it_changes(domain, ask, tmp_path):
    path = "/.well-known/protocolstub/default"
    first = await ask(path)
    tag = dict(first.headers)["etag"]
    again = await ask(path, if_none_match=f'W/"x", {tag}')
    domain.serves(domain.profile(counter=2))
    (tmp_path / f"cat{path}").write_bytes(domain.files[path[1:]])
    changed = await ask(path, if_none_match=tag)

    assert (again.status, again.body) == (304, b"")
    assert dict(again.headers)["etag"] == tag
    assert (changed.status, changed.body) == (200, domain.files[path[1:]])


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/../secret", "/.well-known/secret", "/.well-known/notes.txt", "/.well-known/",
        "/.well-known/%2e%2e/secret", "/.well-known/protocolstub/..%2f..%2f..%2fsecret",
        "/.well-known/protocolstub/../../secret", "/.well-known/protocolstub/default/nothing",
        "/.well-known/protocolstub/default/version/x", "/.well-known/protocolstub",
        "/.well-known/sourcepackage/../../secret", "/.well-known/sourcepackage/",
        "/.well-known/protocolstub/default/../../../secret", "/.well-known//etc/passwd",
    ],
)  # fmt: skip
async def test_nothing_else_is_served(ask, path):
    page = await ask(path)
    assert page.status == 404
    assert b"secret" not in page.body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_nothing_can_be_changed(ask, method):
    page = await ask("/.well-known/protocolstub/default", method)
    assert (page.status, dict(page.headers)["allow"]) == (405, "GET, HEAD")


async def test_a_too_large_file_is_not_served(ask, tmp_path):
    (tmp_path / "cat/.well-known/protocolstub/default").write_bytes(bytes(70_000))
    assert (await ask("/.well-known/protocolstub/default")).status == 503


async def test_without_a_catalogue_nothing_is_there():
    site = site_of(HttpConfig("127.0.0.1:0"), Counters(), ReadyPage(Readiness(), {}))
    assert (await site.answer(Visit("GET", "/.well-known/actors.json"))).status == 404
