"""`like`: `*` is any text, nothing else means anything, and no text takes long (POL-10, T7)."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.policy.operators import Pattern

# fmt: off
TABLE = [
    ("",       "",            True),
    ("",       "x",           False),
    ("*",      "",            True),
    ("*",      "anything",    True),
    ("a.ex",   "a.ex",        True),
    ("a.ex",   "aXex",        False),
    ("a*",     "a",           True),
    ("a*",     "ab/c",        True),
    ("a*",     "ba",          False),
    ("*a",     "ba",          True),
    ("*a",     "ab",          False),
    ("a*a",    "a",           False),
    ("a*a",    "aa",          True),
    ("*b*",    "abc",         True),
    ("*b*",    "ac",          False),
    ("a*b*c",  "a1b2c",       True),
    ("a*b*c",  "ac",          False),
    ("a*b*b",  "ab",          False),
    ("*ab*ab", "abab",        True),
    ("*ab*ab", "ab",          False),
    ("a**b",   "ab",          True),
    ("a?",     "ab",          False),
    ("[ab]",   "a",           False),
    ("a*",     "a\nb",        True),
]
# fmt: on


@pytest.mark.parametrize(("pattern", "text", "fits"), TABLE)
def test_a_pattern_fits_what_the_table_says(pattern, text, fits):
    assert Pattern.read(pattern).fits(text) is fits


WORDS = st.text("ab*", max_size=8)


@given(WORDS, st.text("ab", max_size=10))
def test_a_pattern_fits_what_a_regular_expression_fits(pattern, text):
    expression = ".*".join(map(re.escape, pattern.split("*")))
    assert Pattern.read(pattern).fits(text) is (re.fullmatch(expression, text) is not None)


def test_a_pattern_made_to_be_slow_is_not():
    """A matcher that goes back would need longer than the universe."""
    pattern = Pattern.read("*".join("a" * 1000) + "b")
    text = "a" * 16_384
    before = time.process_time()
    assert not pattern.fits(text)
    assert not pattern.fits(text + "c")
    assert time.process_time() - before < 2
