"""The site of the documents: it builds in strict mode, and nothing in it leads nowhere."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import attrs
import pytest

import actors
import fsm
import spark
from tests.support.browser import needs_chromium

pytest.importorskip("mkdocs", reason="`make docs` installs what builds the site")

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""Attributes of elements by which a page loads something; a `link` may also only name a page."""


@attrs.define
class Page(HTMLParser):
    """What a page has: ids, links, and what it loads."""

    ids: set[str] = attrs.field(factory=set)
    links: list[str] = attrs.field(factory=list)
    loaded: list[str] = attrs.field(factory=list)

    def __attrs_post_init__(self):
        super().__init__()

    def handle_starttag(self, tag, attributes):
        given = {name: value or "" for name, value in attributes}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if LOADED.get(tag) in given and given.get("rel") not in {"canonical", "next", "prev"}:
            self.loaded.append(given[LOADED[tag]])


def build(source, target):
    """Build the site of a folder that has `mkdocs.yml`."""
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(target)]
    return subprocess.run(  # noqa: S603 - our own program
        command, cwd=source, capture_output=True, text=True, check=False, timeout=500
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    found = {}
    for path in site.rglob("*.html"):
        found[path] = Page()
        found[path].feed(path.read_text())
    return found


def broken(pages):
    """Return the links of pages to files or places that are not there."""
    missing = []
    for page, read in pages.items():
        for link in [*read.links, *read.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or page.name == "404.html":
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            place = unquote(parts.fragment)
            is_known = target not in pages or not place or place in pages[target].ids
            if not (target.exists() and is_known):
                missing.append((page.name, link))
    return missing


def test_every_internal_link_leads_somewhere(pages):
    assert len(pages) > 40
    assert broken(pages) == []


def test_a_link_that_leads_nowhere_would_be_found(tmp_path):
    page = Page()
    page.feed('<a id="here" href="#here"></a><a href="#there"></a><a href="no.html"></a>')
    (tmp_path / "one.html").touch()
    missing = [("one.html", "#there"), ("one.html", "no.html")]
    assert broken({tmp_path / "one.html": page}) == missing


def test_every_name_that_users_import_is_described_once(pages):
    places = [id_ for path, page in pages.items() if path.parent.name == "api" for id_ in page.ids]
    names = {f"{package.__name__}.{name}" for package in (actors, fsm) for name in package.__all__}
    assert {name for name in names if places.count(name) != 1} == set()
    assert not hasattr(spark, "__all__")


def test_arguments_of_a_configuration_and_members_of_an_enumeration_are_shown(site):
    text = re.sub(r"<[^>]+>", "", (site / "api" / "runtimes.html").read_text())
    assert re.search(r"RuntimeConfig\(\s*\*,\s*domain:\s*str", text)
    assert "stop_on_failure: bool = False" in text
    assert "ice_source: IceSource,\n" not in text  # a property is no argument
    text = re.sub(r"<[^>]+>", "", (site / "api" / "messages.html").read_text())
    assert re.search(r"UNAVAILABLE\W+503", text)


def test_nothing_is_loaded_from_another_host(site, pages):
    from_elsewhere = [
        (path.name, url)
        for path, page in pages.items()
        for url in page.loaded
        if urlsplit(url).netloc
    ]
    assert from_elsewhere == []
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert re.findall(r"url\([\"']?(?:https?:)?//[^)]*\)|@import[^;]*;", styles) == []


def test_a_page_that_names_nothing_ends_the_build(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[nothing](nowhere.md)")
    (tmp_path / "mkdocs.yml").write_text("site_name: x\nstrict: true\n")
    assert build(tmp_path, tmp_path / "site").returncode != 0


@needs_chromium
async def test_a_reader_without_a_network_finds_a_name(site, browsers):
    """From the disk: the browser asks no server for anything."""
    async with browsers.open() as browser:
        page = await browser.new_page()
        await page.goto((site / "index.html").as_uri())
        await page.click("label[for=__search]")
        await page.click("input.md-search__input")
        await page.type("raise_for_code")
        await page.until("() => document.querySelectorAll('.md-search-result__item').length > 0")
        urls = await page.evaluate(
            "() => performance.getEntriesByType('resource').map((one) => one.name)"
        )
    assert [url for url in urls if not url.startswith(("file:", "data:", "blob:"))] == []
