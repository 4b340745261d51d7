"""The normal form of recordings: what it holds, and what it leaves out on purpose."""

from enum import StrEnum

import attrs
import pytest

from specs.message import Message, MessageType
from tests.golden.cores import watched_cores
from tests.golden.difference import differences, report
from tests.golden.form import Ids, message_text, plain, settled
from tests.golden.store import read_part, recorded_parts, write_part

A, B = "hyperty://a.ex/1", "hyperty://b.ex/2"
SM, NODE = "hyperty-runtime://a.ex/ra/sm", "domain://msg-node.a.ex/sm"


class Colour(StrEnum):
    RED = "red"


@attrs.frozen
class LinkUp:
    remote: str
    colour: Colour


@attrs.frozen
class Listen:
    remote: str


class CoreOfClasses:
    """A core of today: an input and effects are classes."""

    def feed(self, happened, now):
        return [Listen(happened.remote)]


class CoreOfMethods:
    """A core of tomorrow: an input is a method, an effect is a call of its port."""

    def __init__(self, port):
        self._port = port

    def link_up(self, remote, colour, now):
        self._port.listen(remote)


class Port:
    def listen(self, remote):
        pass


def noted(name, use):
    lines, ids = [], Ids()
    with watched_cores(lambda *line: lines.append(line), ids, {"toy": f"{__name__}:{name}"}):
        use()
    return lines


def test_a_core_that_is_rewritten_with_a_port_gives_the_same_lines():
    by_class = noted("CoreOfClasses", lambda: CoreOfClasses().feed(LinkUp("b", Colour.RED), 1.0))
    by_call = noted("CoreOfMethods", lambda: CoreOfMethods(Port()).link_up("b", Colour.RED, 1.0))

    assert by_class == by_call
    assert by_class == [
        ("toy 1", 'link_up{"colour":"red","remote":"b"} [{"listen":{"remote":"b"}}]')
    ]


def test_ids_are_ranks_of_a_pair_and_an_answer_has_that_of_its_request():
    ids = Ids()
    texts = [
        message_text(Message(number, kind, from_, to, body), ids)
        for number, kind, from_, to, body in (
            (900, MessageType.CREATE, A, B, {}),
            (700, MessageType.CREATE, A, B, {}),
            (900, MessageType.RESPONSE, B, A, {"code": 200}),
            (5, MessageType.CREATE, SM, NODE, {"token": "ey", "value": 1}),
        )
    ]
    ranked = ids.ranked({"links": {"all": [(0, text) for text in texts]}})

    assert [line for _, line in ranked["links"]["all"]] == [
        f"create {A} > {B} #2",
        f"create {A} > {B} #1",
        f"200 {B} > {A} #2",
        f'create {SM} > {NODE} {{"token":"...","value":1}}',
    ]


def test_what_a_component_does_at_one_moment_has_no_order_and_what_users_do_has_one():
    lines = [(1, "b"), (1, "a"), (2, "c")]

    assert settled("hops", "x", lines) == [(1, "a"), (1, "b"), (2, "c")]
    assert settled("links", "x", lines) == lines


def test_a_search_that_goes_as_the_one_before_counts_once():
    search = [(0, "[*] > lookup by asked"), (0, "lookup > bound by found")]
    other = [(9, "[*] > lookup by asked"), (9, "lookup > failed by over")]

    assert settled("states", "r0.1 resolve_job x", [*search, *search, *other]) == [*search, *other]


def test_what_is_no_data_is_no_value():
    assert plain([Colour.RED, object(), b"x", 0.12345], Ids()) == ["red", "*", "...", 0.123]


def test_a_difference_shows_first_what_came_first():
    before = {"users": {"late": [(9000, "x")], "early": [(1000, "a"), (2000, "b")]}}
    after = {"users": {"late": [(9000, "y")], "early": [(1000, "a"), (2900, "b")]}}

    text = report("seed-plain-7", differences(before, after))

    assert text.splitlines() == [
        "seed-plain-7 differs from its recording in 2 of users",
        "users | early | from 2.000 s",
        "    -at 2.000 s: b",
        "    +at 2.900 s: b",
        "users | late | from 9.000 s",
        "    @@ -1 +1 @@",
        "    -x",
        "    +y",
        "A user would see no difference? Explain it in the commit, and record it anew:",
        "    python -m tests.golden record seed-plain-7",
    ]


@pytest.mark.parametrize("at", [1000, 1099])
def test_a_little_later_is_no_difference(at):
    part = {"users": {"one": [(1000, "a")]}}

    assert differences(part, {"users": {"one": [(at, "a")]}}) == []


def test_a_recording_is_read_as_it_was_written(tmp_path, monkeypatch):
    name = recorded_parts()[0]
    part = read_part(name)
    monkeypatch.setattr("tests.golden.store.FOLDER", tmp_path)

    write_part(name, part)

    assert read_part(name) == part
