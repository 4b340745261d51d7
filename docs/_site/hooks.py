"""What `make docs` adds to the pages of this folder: pages made of other files, drawings, links.

GitHub shows the same pages without it, so what leads out of this folder is written as a path.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
SOURCES = {"CHANGELOG.md": "changelog.md", "examples/README.md": "examples.md"}
"""Pages outside of this folder that the site has, too."""

BESIDE = {
    "Traces and machines": ["fsm.machine"],
    "Tests": [
        *(f"actors.testing.plugin.protofly_{name}" for name in ("domain", "chaos", "trace")),
        "actors.testing.domains.Domain",
        "actors.testing.domains.Domains",
        "actors.testing.chaos.network.ChaosNetwork",
        "actors.testing.recorder.Recorder",
        *(
            f"actors.testing.chaos.toxics.{name}"
            for name in (
                "Latency", "Bandwidth", "Slicer", "SlowClose", "LimitData", "ResetPeer",
                "Timeout", "Loss", "Delay", "Duplicate", "Corrupt",
            )
        ),
    ],
}  # fmt: skip
"""What users import from elsewhere than `actors`, by topic."""

_LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^```.*?^```[^\n]*\n", re.MULTILINE | re.DOTALL)
_DRAWING = re.compile(r"^## (\w+)\n(.*?)```mermaid\n.*?```", re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"^## (.+)\n\n((?:.+\n)+)", re.MULTILINE)
_NAME = re.compile(r"`(\w+)`")
_COMMAND = re.compile(r"^## ([^\n]+)\n\n(.*?)(?=^[a-z_]+: |^## |\Z)", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".js": "js", ".html": "html"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of other files."""
    for source, name in SOURCES.items():
        _add(files, config, name, _moved((ROOT / source).read_text(), Path(source).parent))
    for path in _examples():
        _add(files, config, f"{path}.md", _listing(path))
    for title, names in described().items():
        body = "\n".join(f"::: {name}\n" for name in names)
        _add(files, config, f"api/{slug(title)}.md", f"# {title}\n\n{body}")
    _add(files, config, "commands.md", _commands())
    for drawing in sorted((ROOT / "web" / "dashboard" / "machines").glob("*.svg")):
        files.append(File.generated(config, f"machines/{drawing.name}", abs_src_path=str(drawing)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links out of this folder lead to what the site has of them, and show drawings."""
    del config, files
    name = page.file.src_uri
    if name in SOURCES.values() or name.startswith("examples/"):
        return markdown
    if name == "machines.md":
        markdown = _DRAWING.sub(r"## \1\n\2![Drawing of \1](machines/\1.svg)", markdown)
    if name == "api.md":
        markdown = _SECTION.sub(_linked, markdown)
    return _moved(markdown, Path("docs"))


def on_post_build(config: MkDocsConfig) -> None:
    """Write the index of the search as a script, too: pages that are opened as files read that."""
    folder = Path(config.site_dir) / "search"
    index = (folder / "search_index.json").read_text()
    (folder / "search_index.js").write_text(f"var __index = {index}")


def described() -> dict[str, list[str]]:
    """Return the names that users import, by the headings of the page of all names."""
    found = _SECTION.findall((ROOT / "docs" / "api.md").read_text())
    cells = {title: [line.split("|")[1] for line in rows.splitlines()] for title, rows in found}
    named = {title: _NAME.findall(" ".join(row)) for title, row in cells.items()}
    names = {title: [f"actors.{name}" for name in listed] for title, listed in named.items()}
    return {title: [*names.get(title, ()), *BESIDE.get(title, ())] for title in {**names, **BESIDE}}


def slug(title: str) -> str:
    """Return the name of the file of a heading."""
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def _linked(section: re.Match[str]) -> str:
    title, table = section.groups()
    page = f"api/{slug(title)}.md"
    lines = []
    for line in table.splitlines():
        _, names, *others = line.split("|")
        linked = _NAME.sub(lambda one: f"[`{one[1]}`]({page}#actors.{one[1]})", names)
        lines.append("|".join(["", linked, *others]))
    return f"## {title}\n\n" + "\n".join(lines) + "\n"


def _add(files: Files, config: MkDocsConfig, name: str, text: str) -> None:
    files.append(File.generated(config, name, content=text))


def _examples() -> list[str]:
    """Return the files of the examples that pages name."""
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "examples" / "README.md"]
    found = {
        (page.parent / path).resolve()
        for page in pages
        for _, path, _ in _LINK.findall(_FENCE.sub("", page.read_text()))
        if path and not re.match(r"\w+:", path)
    }
    here = ROOT / "examples"
    files = {path for path in found if path.is_file() and path.is_relative_to(here)}
    return sorted(str(path.relative_to(ROOT)) for path in files if path.suffix != ".md")


def _listing(path: str) -> str:
    language = _LANGUAGES.get(Path(path).suffix, "text")
    return f"# {path}\n\n````{language}\n{(ROOT / path).read_text()}````\n"


def _moved(text: str, folder: Path) -> str:
    """Return a page of a folder of the repository as one of the site's root."""
    return "".join(
        part if is_code else _LINK.sub(lambda link: _target(link, folder), part)
        for part, is_code in _pieces(text)
    )


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    end = 0
    for fence in _FENCE.finditer(text):
        yield text[end : fence.start()], False
        yield fence[0], True
        end = fence.end()
    yield text[end:], False


def _target(link: re.Match[str], folder: Path) -> str:
    words, path, anchor = link[1], link[2], link[3] or ""
    if not path or re.match(r"\w+:", path):
        return link[0]
    place = str((ROOT / folder / path).resolve().relative_to(ROOT))
    if place in SOURCES:
        return f"[{words}]({SOURCES[place]}{anchor})"
    if place.startswith("docs/"):
        return f"[{words}]({place.removeprefix('docs/')}{anchor})"
    if place in _examples():
        return f"[{words}]({place}.md)"
    return words if words.startswith("`") or "/" not in words else f"`{words}`"


def _commands() -> str:
    """Return the help of all commands, which a test compares with the programs."""
    text = (ROOT / "tests" / "actors" / "commands" / "options.txt").read_text()
    parts = ["# Commands\n"]
    for title, body in _COMMAND.findall(text):
        parts.append(f"## {title}\n\n```text\n{body.strip()}\n```\n")
    return "\n".join(parts)
