"""The budgets of the code: a figure that rises is told, one that falls is written down."""

import ast
import subprocess
import tomllib

from tests.budgets import FILE, ROOT, Budget, broken, count, read_budgets, rewritten
from tests.words import count_words

TEXT = """
[folders]
"a" = ["actors"]

[lines]
"a" = { now = 12, target = 10 }
"b" = { now = 7 }

[calls]
"local" = { now = 100, target = 50 }
"""

CODE = '''"""A docstring
of two lines."""

# a comment
class Message:
    """Another."""

    text = """a text

# of three lines"""


class Actor(
    Message,
):
    def run(self):  # told
        return f"{self.text}"
'''


def test_a_line_counts_that_is_neither_blank_nor_comment_nor_docstring():
    assert count(CODE) == {"files": 1, "lines": 9, "classes": 2, "plain_classes": 1}


def test_what_is_larger_is_told_in_a_sentence():
    budgets = read_budgets(TEXT)

    assert budgets[0] == Budget("lines", "a", 12, 10)
    assert broken(budgets, {("lines", "a"): 12, ("lines", "b"): 7, ("calls", "local"): 101}) == []
    (sentence,) = broken(budgets, {("lines", "a"): 13})
    assert sentence.startswith(
        "a: 13 lines, and 12 are written down in tests/budgets.toml: make it"
    )


def test_what_is_smaller_is_put_in_and_what_is_larger_only_if_asked():
    found = {("lines", "a"): 11, ("lines", "b"): 9, ("calls", "local"): 100}

    assert rewritten(TEXT, found) == TEXT.replace("12", "11")
    assert rewritten(TEXT, found, may_rise=True) == TEXT.replace("12", "11").replace("7", "9")


def test_each_file_of_the_product_is_in_a_row():
    folders = tomllib.loads(FILE.read_text())["folders"]
    paths = tuple(f"{path}/" for row in folders.values() for path in row)
    command = ["git", "-C", str(ROOT), "ls-files", "actors", "fsm", "specs", "spark", "transports"]
    listed = subprocess.check_output(command, text=True).splitlines()  # noqa: S603 - git

    assert [name for name in listed if not name.startswith(paths)] == []


WORDY = '''
class Store:
    """It keeps what it gets."""

    def taken(self, one):
        """The rows that were taken."""
        found = [there for there in one]
        return found

    @property
    def closed(self):
        """True if no row is taken any more."""
        return False
'''


def test_words_that_say_too_little_are_counted():
    assert count_words(ast.parse(WORDY)) == {
        "bare participles": 1,
        "vague variables": 3,
        "docstrings without a verb": 1,
        "docstrings with more than one it": 1,
    }
