"""What a search asks for, and what a watcher makes of its answers and reports (M-25..M-30)."""

import pytest

from fsm.registry.discovery import (
    Change,
    DiscoveryWatch,
    EntryChange,
    FoundEntry,
    Query,
    ReadAgain,
    Readback,
    Searched,
    StatusFollowed,
    StatusLeft,
    StatusReported,
    entry_of,
)
from fsm.registry.records import By, Search, search_of
from specs.bodies.registry import FoundRecord
from specs.errors import BadMessageError, BadUrlError
from specs.limits.discovery import VERIFIED_AT_ONCE, WATCHED_ENTRIES

BOB = "user://idp.ex/bob"
H = "hyperty://a.ex/h"


# ---- what is asked for


@pytest.mark.parametrize(
    ("criteria", "by", "value", "rest"),
    [
        ({"user": "USER://IDP.ex/bob"}, By.USER, BOB, {}),
        ({"user": "user-guid://g"}, By.GUID, "user-guid://g", {}),
        ({"user": "bob@idp.ex"}, By.IDENTIFIER, "bob@idp.ex", {}),
        ({"name": "a/b"}, By.NAME, "a/b", {}),
        ({"schema": "comm"}, By.DATA_SCHEME, "comm", {}),
        ({"resources": ["chat"]}, By.RESOURCE, "chat", {}),
        ({"resources": ("chat", "video")}, By.RESOURCE, "chat", {"resources": {"video"}}),
        ({"reporter": H, "scheme": "comm"}, By.REPORTER, H, {"scheme": "comm"}),
        (
            {"resources": ["chat"], "schema": "comm", "name": "n", "user": BOB},
            By.USER,
            BOB,
            {"resources": {"chat"}, "data_schemes": {"comm"}, "fields": {(By.NAME, "n")}},
        ),
        ({"name": "n", "schema": "comm"}, By.NAME, "n", {"data_schemes": {"comm"}}),
    ],
)
def test_a_registry_reads_what_is_asked_for(criteria, by, value, rest):
    """M-26..M-28: the narrowest criterion is the search, the others narrow it."""
    read = Query(**criteria).read()
    wanted = {"scheme": "hyperty", **rest}
    assert search_of(read.resource, read.criteria) == Search(by, value, **wanted)


@pytest.mark.parametrize(
    ("criteria", "error"),
    [
        ({}, TypeError),
        ({"user": None}, TypeError),
        ({"resources": []}, TypeError),
        ({"resources": "chat"}, TypeError),
        ({"resources": 7}, TypeError),
        ({"resources": ["chat", 7]}, TypeError),
        ({"user": 7}, TypeError),
        ({"name": b"n"}, TypeError),
        ({"schema": ["comm"]}, TypeError),
        ({"name": "n", "scheme": None}, TypeError),
        ({"name": "n", "unknown": 1}, TypeError),
        ({"name": ""}, ValueError),
        ({"name": "n", "scheme": "a/b"}, ValueError),
        ({"user": "user://"}, BadUrlError),
        ({"reporter": "nobody"}, BadUrlError),
    ],
)
def test_a_wrong_criterion_is_an_error_at_the_call(criteria, error):
    with pytest.raises(error):
        Query(**criteria)


def test_a_limit_is_that_of_the_message():
    assert Query(name="n").read(7).limit == 7
    with pytest.raises(BadMessageError):
        Query(name="n").read(0)
    with pytest.raises(TypeError):
        Query(name="n").read("7")


def test_an_entry_has_what_the_record_says():
    record = FoundRecord(H, data_schemes=("comm",), schema="comm", name="n")
    assert entry_of(record) == FoundEntry(url=H, status="live", schemas=("comm",), name="n")


# ---- how it is followed


def entry(number=1, status="live", **more):
    return FoundEntry(url=f"{H}{number}", status=status, **more)


def seen(core, *entries, is_partial=False):
    return core.feed(Searched(entries, is_partial))


def test_what_is_found_appears_once_and_is_followed():
    core = DiscoveryWatch()
    appeared = [StatusFollowed(entry().url), EntryChange(Change.APPEARED, entry())]
    assert seen(core, entry()) == appeared
    assert seen(core, entry()) == []
    assert core.urls == (entry().url,)


def test_a_reported_status_is_a_change_once():
    """M-30."""
    core = DiscoveryWatch()
    seen(core, entry())
    away = entry(status="disconnected")
    assert core.feed(StatusReported(away.url, "disconnected")) == [
        EntryChange(Change.CHANGED, away)
    ]
    assert core.feed(StatusReported(away.url, "disconnected")) == []
    assert core.feed(StatusReported(f"{H}9", "live")) == []
    assert core.feed(StatusReported(away.url, "dead")) == [
        StatusLeft(away.url),
        EntryChange(Change.VANISHED, away),
    ]


def test_a_changed_record_is_a_change():
    core = DiscoveryWatch()
    seen(core, entry())
    renamed = entry(name="other")
    assert seen(core, renamed) == [EntryChange(Change.CHANGED, renamed)]


@pytest.mark.parametrize(
    ("read", "change"),
    [
        (None, Change.VANISHED),
        (entry(status="disconnected"), Change.CHANGED),
        (entry(), Change.VANISHED),
    ],
    ids=["gone", "away", "live, and does not fit any more"],
)
def test_what_is_not_found_any_more_is_read(read, change):
    """M-25."""
    core = DiscoveryWatch()
    seen(core, entry())
    assert seen(core) == [ReadAgain(entry().url)]
    (*left, reported) = core.feed(Readback(entry().url, read))
    assert reported.change is change
    assert left == [StatusLeft(entry().url)] * (change is Change.VANISHED)


def test_one_that_was_away_and_is_back_before_the_next_search_has_changed():
    core = DiscoveryWatch()
    seen(core, entry(status="disconnected"))
    seen(core, entry(2))
    assert core.feed(Readback(entry().url, entry())) == [EntryChange(Change.CHANGED, entry())]


def test_of_a_partial_search_nothing_is_said_to_fit_no_more():
    core = DiscoveryWatch()
    seen(core, entry())
    assert seen(core, entry(2), is_partial=True)[-1] == ReadAgain(entry().url)
    assert core.is_partial
    assert core.feed(Readback(entry().url, entry())) == []


def test_an_answer_about_what_is_forgotten_says_nothing():
    assert DiscoveryWatch().feed(Readback(entry().url, entry())) == []


def test_memory_is_bounded_and_all_absent_ones_get_their_turn():
    core = DiscoveryWatch()
    many = [entry(number) for number in range(WATCHED_ENTRIES + 1)]
    seen(core, *many)
    assert len(core.urls) == WATCHED_ENTRIES
    assert core.is_partial
    rounds = WATCHED_ENTRIES // VERIFIED_AT_ONCE
    read = [one.url for _ in range(rounds) for one in seen(core)]
    assert len(read) == len(set(read)) == WATCHED_ENTRIES


def test_absent_ones_that_seem_live_are_read_first():
    core = DiscoveryWatch()
    seen(core, *(entry(number, "disconnected") for number in range(VERIFIED_AT_ONCE)), entry("x"))
    first, *others = seen(core)
    assert first == ReadAgain(entry("x").url)
    assert len(others) == VERIFIED_AT_ONCE - 1
