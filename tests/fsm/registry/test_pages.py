"""Pages of a search: newest first, fair to sessions, and stable under changes (REG, M-26..M-28)."""

import base64
import json

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm.registry.records import By, Cursor, Search, page_of
from specs.errors import BadMessageError
from specs.limits.protocol import (
    SEARCH_BYTES,
    SEARCH_CURSOR_CHARS,
    SEARCH_PAGE,
    SEARCH_WAITING,
)

SEARCH = Search(By.NAME, "room")
FIRST = Cursor.first(SEARCH, is_live=True)
TAG, LIVE = FIRST.search, True


def records(spec, size=0):
    """Return records, newest first; `spec` names the session of each, oldest first."""
    made = [
        (number, f"r-{who}", {"n": number, "pad": "x" * size}) for number, who in enumerate(spec, 1)
    ]
    return made[::-1]


def lanes(found):
    """Return records by session, as a registry has them."""
    return [
        (who, lambda below, who=who: ((n, v) for n, by, v in found if by == who and n < below))
        for who in {by for _, by, _ in found}
    ]


def pages(found, limit, between=lambda nth: None):
    """Read page after page; return the numbers of each."""
    read, start = [], FIRST
    for nth in range(10_000):
        page, after = page_of(lanes(found), start, limit)
        read.append([one["n"] for one in page])
        if after is None:
            return read
        assert len(after.text) <= SEARCH_CURSOR_CHARS
        start = Cursor.read(after.text, SEARCH)
        between(nth)
    raise AssertionError("no last page")


def flat(read):
    return [number for page in read for number in page]


def test_one_session_alone_is_read_newest_first():
    assert pages(records("a" * 10), 4) == [[10, 9, 8, 7], [6, 5, 4, 3], [2, 1]]


def test_a_session_has_a_quarter_of_a_page_while_others_have_records():
    found = records("b" + "a" * 10)
    assert pages(found, 8) == [[11, 10, 1], [9, 8, 7, 6, 5, 4, 3, 2]]


def test_four_hundred_records_hide_no_other_one():
    found = records("v" + "a" * 400)
    first, *others = pages(found, SEARCH_PAGE)
    assert 1 in first
    assert sorted(flat([first, *others])) == list(range(1, 402))


def test_large_records_hide_no_other_one_either():
    """A quarter is one of bytes, too; one record a session always has."""
    found = records("v" + "a" * 40, size=16_000)
    first, *_ = pages(found, SEARCH_PAGE)
    assert first == [41, 1]


def test_a_page_fits_into_a_message():
    for found in (records("abcdefgh" * 4, size=16_000), records("a" * 30, size=16_000)):
        page, after = page_of(lanes(found), FIRST, SEARCH_PAGE)
        assert len(json.dumps(page, separators=(",", ":"))) <= SEARCH_BYTES
        assert after is not None


def test_many_sessions_that_wait_fit_into_a_cursor():
    """Each has a small record before a large one, which is over its quarter."""
    small = [(1000 - n, f"r-{n}", {"n": 1000 - n}) for n in range(100)]
    pad = "x" * 16_000
    large = [(n, f"r-{n % 100}", {"n": n, "pad": pad}) for n in range(200, 0, -1)]
    found = small + large
    read = pages(found, SEARCH_PAGE)
    assert sorted(flat(read)) == sorted(number for number, *_ in found)


OWNERS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=60)


@settings(max_examples=200)
@given(OWNERS, st.integers(1, 20), st.sampled_from([0, 3000]), st.data())
def test_what_stays_is_delivered_once_and_newest_first_by_session(owners, limit, size, data):
    """Records that come and go between two pages change nothing about the others."""
    found, whose = records(owners, size), dict(enumerate(owners, 1))
    stays = {number for number, *_ in found}

    def change(nth):
        gone = data.draw(st.sets(st.sampled_from(sorted(whose)), max_size=3))
        stays.difference_update(gone)
        found[:] = [one for one in found if one[0] not in gone]
        number = len(owners) + 1 + nth
        found.insert(0, (number, "r-a", {"n": number, "pad": ""}))

    read = pages(found, limit, change)
    numbers = flat(read)
    assert len(set(numbers)) == len(numbers)
    assert stays <= set(numbers) <= whose.keys()
    for who in set(owners):
        mine = [number for number in numbers if whose[number] == who]
        assert mine == sorted(mine, reverse=True)


@settings(max_examples=200)
@given(OWNERS, st.integers(4, 20))
def test_no_session_has_more_than_a_quarter_while_others_match(owners, limit):
    read, whose = pages(records(owners), limit), dict(enumerate(owners, 1))
    for nth, page in enumerate(read):
        left = {whose[number] for later in read[nth:] for number in later}
        held = [whose[number] for number in page]
        if len(left) > 1:
            assert all(held.count(who) <= limit // 4 for who in left)


def of(*parts):  # a forged cursor
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()


@pytest.mark.parametrize(
    "text",
    [
        "x", "AAAA", "ü", " ", FIRST.text[:-4], "x" * (SEARCH_CURSOR_CHARS + 1),
        of(), of(TAG, LIVE, "7", {}), of(TAG, LIVE, 7, {"a": "b"}),
        of(TAG, LIVE, 7, []), of(TAG, 1, 7, {}), of("other", LIVE, 7, {}),
        Cursor.first(Search(By.NAME, "hall"), is_live=True).text,
        Cursor.first(attrs.evolve(SEARCH, fields={(By.USER, "user://x/y")}), is_live=True).text,
        base64.b64encode(b"[" * 700).decode(),
    ],
)  # fmt: skip
def test_another_cursor_is_refused(text):
    with pytest.raises(BadMessageError, match="after is no cursor"):
        Cursor.read(text, SEARCH)


def test_a_cursor_is_read_as_it_was_written():
    places = tuple((f"tag{n}", n) for n in range(SEARCH_WAITING))
    cursor = Cursor(TAG, is_live=False, below=7, waiting=places)
    assert Cursor.read(cursor.text, SEARCH) == cursor
