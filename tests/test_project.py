"""The project keeps its own word: documents and examples."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("actors", "fsm", "spark", "specs", "transports", "web")
SOURCES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_CODE = re.compile(r"`([^`\n]+)`")
_FOLDERS = "actors|bench|deploy|docs|examples|fsm|spark|specs|tests|transports|web"
_PATH = re.compile(rf"(?:{_FOLDERS})/[\w./-]+|[\w./-]+/[\w.-]+\.(?:py|md|toml|svg|sqlite)")
# Settings of Apache Spark begin like our package.
_MODULE = re.compile(
    r"(?<![.\w])(?:-m )?(?!spark\.(?:driver|executor|executorEnv|hadoop|jars|pyspark|sql)\b)"
    r"((?:actors|bench|fsm|spark|specs|tests|transports)(?:\.\w+)+)\b"
)
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
_WALK_ROW = re.compile(
    r"^\|[^|]*\|[^|]*\| `(?P<file>[\w/.]+\.py)` \| `(?P<name>[\w.]+)`", re.MULTILINE
)


def names_defined(path: Path) -> set[str]:
    """Every class, function, method and module constant, methods as `Class.method`."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
            names |= {f"{node.name}.{item.name}" for item in node.body if hasattr(item, "name")}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def walk_rows() -> list[tuple[str, str]]:
    text = (ROOT / "docs" / "architecture.md").read_text()
    return [(row["file"], row["name"]) for row in _WALK_ROW.finditer(text)]


def missing_paths(text: str) -> set[str]:
    """Paths in backticks that look like ours and do not exist."""
    paths = {word for word in _CODE.findall(text) if _PATH.fullmatch(word)}
    return {path for path in paths if not (ROOT / path).exists()}


def missing_modules(text: str) -> set[str]:
    """Modules in backticks, with names in them, that do not exist."""
    found = {name for word in _CODE.findall(text) for name in _MODULE.findall(word)}
    return {name for name in found if not module_exists(name.split("."))}


def module_exists(parts: list[str]) -> bool:
    """Whether a prefix is a module, and mentions the name that follows it, if one does."""
    for length in range(len(parts), 0, -1):
        base = ROOT.joinpath(*parts[:length])
        for path in (base.with_suffix(".py"), base / "__init__.py", base / "__main__.py"):
            if path.exists():
                name = parts[length : length + 1]
                return set(name) <= set(re.findall(r"\w+", path.read_text()))
    return False


def test_every_path_a_document_names_exists():
    missing = {page.name: missing_paths(page.read_text()) for page in DOCUMENTS}
    assert {page: paths for page, paths in missing.items() if paths} == {}


def test_every_module_a_document_names_exists():
    missing = {page.name: missing_modules(page.read_text()) for page in DOCUMENTS}
    assert {page: modules for page, modules in missing.items() if modules} == {}


def test_a_path_or_module_that_does_not_exist_would_be_found():
    assert missing_paths("`fsm/nowhere`, `docs/no.md`, `fsm/machines`") == {
        "fsm/nowhere",
        "docs/no.md",
    }
    text = "`actors.no_such_name`, `python -m bench.run`, `specs.message.Message`"
    assert missing_modules(text) == {"actors.no_such_name"}


def test_every_link_of_a_document_leads_somewhere():
    texts = {page: _FENCE.sub("", page.read_text()) for page in DOCUMENTS}
    links = [(page, link) for page, text in texts.items() for link in _LINK.findall(text)]
    assert [(page, link) for page, link in links if not (page.parent / link).exists()] == []


def unknown_options(text: str) -> set[str]:
    """Options in code that no command of ours has."""
    known = (ROOT / "tests" / "actors" / "commands" / "options.txt").read_text()
    code = " ".join([*_CODE.findall(_FENCE.sub("", text)), *_FENCE.findall(text)])
    return set(_OPTION.findall(code)) - set(_OPTION.findall(known))


def test_every_option_that_a_page_for_users_names_exists():
    of_pip_and_spark = {"--require-hashes", "--no-build-isolation", "--no-deps", "--py-files"}
    of_tools = {"--web", "--records", "--help-all"}
    of_contributors = {"testing.md", "performance.md", "scenarios.md"}
    pages = [page for page in DOCUMENTS if page.name not in of_contributors]
    found = {option for page in pages for option in unknown_options(page.read_text())}
    assert found == of_pip_and_spark | of_tools
    assert unknown_options("`--no-such-option`") == {"--no-such-option"}


def test_the_changelog_of_a_version_is_a_page():
    """Lines of others are merged by union, which can bring back what was taken out."""
    versions = (ROOT / "CHANGELOG.md").read_text().split("\n## [")[1:]
    assert [len(one.splitlines()) for one in versions if len(one.splitlines()) > 150] == []


def test_the_architecture_page_walks_through_named_places():
    assert len(walk_rows()) >= 20


def test_every_place_of_the_walks_exists():
    rows = walk_rows()
    assert [(file, name) for file, name in rows if name not in names_defined(ROOT / file)] == []


def test_a_name_that_does_not_exist_would_be_found():
    assert "Message.body_of_nobody" not in names_defined(ROOT / "specs" / "message.py")
    assert "Message.is_event" in names_defined(ROOT / "specs" / "message.py")


def test_type_checkers_are_reported_that_every_package_is_typed():
    with (ROOT / "pyproject.toml").open("rb") as file:
        setuptools = tomllib.load(file)["tool"]["setuptools"]
    assert setuptools["package-data"]["*"] == ["py.typed"]
    assert [package for package in PACKAGES if not (ROOT / package / "py.typed").exists()] == []


def tuple_values_of_enums(source: str) -> list[str]:
    """Members that are tuples, as `Class.MEMBER`: Python 3.11.2 reads `()` as no value."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and any(
            ast.unparse(base).endswith(("Enum", "Flag")) for base in node.bases
        ):
            members = [item for item in node.body if isinstance(item, ast.Assign)]
            tuples = [item for item in members if isinstance(item.value, ast.Tuple)]
            found += [f"{node.name}.{ast.unparse(item.targets[0])}" for item in tuples]
    return found


def test_no_enumeration_has_tuples_for_values():
    folders = [ROOT / name for name in (*PACKAGES, "bench", "examples", "tests")]
    paths = [path for folder in folders for path in folder.rglob("*.py")]
    texts = {path.relative_to(ROOT): path.read_text() for path in paths}
    few = {path: text for path, text in texts.items() if "Enum" in text or "Flag" in text}
    found = {path: tuple_values_of_enums(text) for path, text in few.items()}
    assert {path: names for path, names in found.items() if names} == {}


def test_a_tuple_in_an_enumeration_would_be_found():
    source = "class Fate(enum.Enum):\n    LOST = ()\n    LATE = 1\n"
    assert tuple_values_of_enums(source) == ["Fate.LOST"]


@pytest.fixture(scope="module")
def shared():
    return "costly"


def test_tests_that_share_a_costly_fixture_run_in_one_process(request, shared):
    """Else each process makes it again: the plugins that do this must fit each other."""
    is_grouped = getattr(request.config.option, "loadgroup", False)

    assert request.node.nodeid.endswith("@tests/test_project.py") or not is_grouped
