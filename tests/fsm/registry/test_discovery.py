"""What a search asks for, and what a watcher makes of its answers and reports (M-25..M-30)."""

from types import SimpleNamespace

import pytest

from fsm.registry.discovery import Change, DiscoveryWatch, EntryChange, FoundEntry, Query
from fsm.registry.records import By, Search, search_of
from specs.errors import BadMessageError
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


def test_a_limit_is_that_of_the_message():
    assert Query(name="n").read(7).limit == 7
    with pytest.raises(BadMessageError):
        Query(name="n").read(0)
    with pytest.raises(TypeError):
        Query(name="n").read("7")


# ---- how it is followed


def entry(number=1, status="live", **more):
    return FoundEntry(url=f"{H}{number}", status=status, **more)


def watch():
    """Return a watch, and what tells it something and returns what it asks of its host."""
    calls = []
    names = ("follow", "leave", "read")
    port = {name: lambda url, name=name: calls.append((name, url)) for name in names}
    core = DiscoveryWatch(SimpleNamespace(report=calls.append, **port))

    def tell(name, *what, **how):
        calls.clear()
        getattr(core, name)(*what, **how)
        return [*calls]

    return core, tell


def seen(tell, *entries, is_partial=False):
    return tell("take_search", entries, is_partial=is_partial)


def test_a_reported_status_is_a_change_once():
    """M-30."""
    _, tell = watch()
    seen(tell, entry())
    away = entry(status="disconnected")
    assert tell("take_status", away.url, "disconnected") == [EntryChange(Change.CHANGED, away)]
    assert tell("take_status", away.url, "disconnected") == []
    assert tell("take_status", f"{H}9", "live") == []
    dead = tell("take_status", away.url, "dead")
    assert dead == [("leave", away.url), EntryChange(Change.VANISHED, away)]


def test_of_a_partial_search_nothing_is_said_to_fit_no_more():
    core, tell = watch()
    seen(tell, entry())
    assert seen(tell, entry(2), is_partial=True)[-1] == ("read", entry().url)
    assert core.is_partial
    assert tell("take_record", entry().url, entry()) == []


def test_an_answer_about_what_is_forgotten_says_nothing():
    assert watch()[1]("take_record", entry().url, entry()) == []


def test_memory_is_bounded_and_all_absent_ones_get_their_turn():
    core, tell = watch()
    many = [entry(number) for number in range(WATCHED_ENTRIES + 1)]
    seen(tell, *many)
    assert len(core.urls) == WATCHED_ENTRIES
    assert core.is_partial
    rounds = WATCHED_ENTRIES // VERIFIED_AT_ONCE
    urls = [url for _ in range(rounds) for _, url in seen(tell)]
    assert len(urls) == len(set(urls)) == WATCHED_ENTRIES
