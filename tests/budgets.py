"""The budgets of the code: what it measures today, which may fall and must not rise.

    python -m tests.budgets                  fail if something is larger than budgets.toml says
    python -m tests.budgets --write          put what is smaller today into budgets.toml
    python -m tests.budgets --write --rise   put all figures of today into it: say why in the commit

A code line has something that is neither comment nor docstring. Only files known to git count.
"""

import argparse
import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs
import trio
from trio.testing import MockClock

from bench.calls import measure
from tests.words import count_words

ROOT: Final = Path(__file__).parents[1]
FILE: Final = Path(__file__).with_name("budgets.toml")

_PRODUCT: Final = ("actors", "fsm", "specs", "spark", "transports")
_ALL: Final = "product"
_PAGES: Final = "web"
_ROUNDS: Final = 30
_SLACK: Final = 100
"""One call of so many may be more at one time than at another: trio runs tasks in any order."""

_ENTRY: Final = re.compile(r'"(?P<name>[^"]+)" = \{ now = (?P<now>\d+)')


@attrs.frozen
class Budget:
    """A figure and how far it may go.

    Attributes:
        what: `lines` and so on: a table of budgets.toml.
        of: The row there.
        now: What it was when it was written down.
        target: What it shall become; None: nothing is said.
    """

    what: str
    of: str
    now: int
    target: int | None = None


def read_budgets(text: str) -> list[Budget]:
    """Read the tables of figures."""
    tables = tomllib.loads(text)
    return [
        Budget(what, of, row["now"], row.get("target"))
        for what, rows in tables.items()
        if what != "folders"
        for of, row in rows.items()
    ]


# --- measuring


def count(text: str) -> Counter[str]:
    """Return the code lines of a file, its classes, and those of them that have no method."""
    docstrings: set[int] = set()
    figures = Counter(files=1)
    tree = ast.parse(text)
    quotes = 0
    for node in _statements(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                docstrings.update(_lines_of(node))
                quotes += 2
            case ast.ClassDef():
                figures["classes"] += 1
                figures["plain_classes"] += not any(
                    isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) for one in node.body
                )
    # What looks like a comment within a text counts; few files have such texts.
    texts = _texts(tree) if text.count('"""') + text.count("'''") > quotes else frozenset[int]()
    figures["lines"] = sum(
        number in texts or _is_code(line)
        for number, line in enumerate(text.split("\n"), start=1)
        if number not in docstrings
    )
    return figures


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements; to look into expressions takes most of the time."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            below = getattr(node, name, ())
            waiting += below if isinstance(below, list) else ()


def _texts(tree: ast.AST) -> frozenset[int]:
    texts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr):
            texts.update(_lines_of(node))
    return frozenset(texts)


def _lines_of(node: ast.expr | ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _is_code(line: str) -> bool:
    return not line.lstrip().startswith("#") and bool(line.strip())


def _files(*patterns: str) -> Iterator[str]:
    command = ["git", "-C", str(ROOT), "ls-files", *patterns]
    listed = subprocess.check_output(command, text=True).splitlines()  # noqa: S603 - git of the checkout
    yield from (name for name in listed if (ROOT / name).exists())


def _measured_folders(folders: Mapping[str, list[str]]) -> dict[tuple[str, str], int]:
    """Return each figure of each row: a file belongs to the longest path that it is below."""
    rows = {path: row for row, paths in folders.items() for path in paths}
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name in _files("*.py"):
        parts = name.split("/")
        above = ("/".join(parts[:depth]) for depth in range(len(parts), 0, -1))
        row = next((rows[one] for one in above if one in rows), None)
        if row is None:
            continue
        is_product = parts[0] in _PRODUCT
        figures = count((ROOT / name).read_text("utf-8"))
        sums[row].update(figures)
        if is_product:
            sums[_ALL].update(figures)
    for name in _files("web/src/*.js", "web/dashboard/*.js", "web/demo/*.js"):
        lines = (ROOT / name).read_text("utf-8").split("\n")
        code = sum(
            bool(one.strip()) and not one.strip().startswith(("//", "*", "/*")) for one in lines
        )
        sums[_PAGES].update(files=1, lines=code)
    return {(what, row): found for row, of in sums.items() for what, found in of.items()}


def _measured_words() -> dict[tuple[str, str], int]:
    """Return how often each habit of naming and describing occurs in the product."""
    sums: Counter[str] = Counter()
    for name in _files(*(f"{package}/*.py" for package in _PRODUCT)):
        sums.update(count_words(ast.parse((ROOT / name).read_text("utf-8"))))
    return {("words", habit): count for habit, count in sums.items()}


def _measured_trips() -> dict[tuple[str, str], int]:
    """Return the calls and the steps of tasks of each kind of round trip.

    Time passes only when nothing is under way: on a busy machine more timers would end meanwhile.
    """
    trips = trio.run(measure, _ROUNDS, clock=MockClock(autojump_threshold=0.05))
    calls = {("calls", name): round(trip.calls) for name, trip in trips.items()}
    return calls | {("steps", name): round(trip.steps) for name, trip in trips.items()}


# --- judging


def broken(budgets: list[Budget], found: Mapping[tuple[str, str], int]) -> list[str]:
    """Return a sentence for each figure that is larger than it was."""
    return [
        f"{one.of}: {found[one.what, one.of]} {one.what}, and {one.now} are written down in"
        " tests/budgets.toml: make it smaller, or say in the commit why the number may rise"
        for one in budgets
        if found.get((one.what, one.of), 0)
        > one.now + (-(-one.now // _SLACK) if one.what == "calls" else 0)
    ]


def rewritten(text: str, found: Mapping[tuple[str, str], int], *, may_rise: bool = False) -> str:
    """Return budgets.toml with the figures of today, where they are smaller or may rise."""
    table = ""
    lines = []
    for line in text.split("\n"):
        if line.startswith("["):
            table = line.strip("[]")
        entry = _ENTRY.match(line)
        if entry is not None:
            today = found.get((table, entry["name"]), 0)
            start, end = entry.span("now")
            if today < int(entry["now"]) or may_rise:
                line = f"{line[:start]}{today}{line[end:]}"  # noqa: PLW2901 - one line after the other
        lines.append(line)
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.budgets",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--write", action="store_true", help="put smaller figures into the file")
    parser.add_argument("--rise", action="store_true", help="with --write: larger ones, too")
    given = parser.parse_args()
    text = FILE.read_text("utf-8")
    folders = tomllib.loads(text)["folders"]
    found = _measured_folders(folders) | _measured_words() | _measured_trips()
    sentences = broken(read_budgets(text), found)
    if sentences and not given.rise:
        sys.stderr.write("\n".join(sentences) + "\n")
        return 1
    todays = rewritten(text, found, may_rise=given.rise)
    if given.write:
        FILE.write_text(todays, "utf-8")
    elif todays != text:
        sys.stderr.write("tests/budgets.toml can be lower: python -m tests.budgets --write\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
