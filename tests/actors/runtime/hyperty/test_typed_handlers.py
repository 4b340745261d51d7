"""Handlers of requests as methods: values of attrs classes, read strictly, and their schema."""

import re
from contextlib import asynccontextmanager

import attrs
import pytest

import actors
from specs.errors import BadMessageError
from specs.message import Message, MessageType
from tests.actors.runtime.hyperty.typed_shop import (
    Farewell,
    Greeting,
    Order,
    Part,
    Receipt,
    Shop,
    Size,
)
from transports.memory import MemoryNetwork


class Caller(actors.Hyperty):
    """Asks only."""


@asynccontextmanager
async def shop(*, apart=False):
    network = MemoryNetwork()
    async with (
        actors.open_node("a.example", network=network) as node,
        actors.open_runtime("a.example", "alice", node=node.url, network=network) as here,
        actors.open_runtime("a.example", "bob", node=node.url, network=network) as there,
    ):
        deployed = await (there.deploy_apart(Shop) if apart else there.deploy(Shop))
        yield await here.deploy(Caller), deployed.url


ORDER = {"parts": [{"title": "bolt", "count": 2, "size": "large"}, {"title": "nut"}], "note": None}
PARTS = [
    {"title": "bolt", "count": 2, "size": "large"},
    {"title": "nut", "count": 1, "size": "small"},
]


async def test_a_value_is_read_into_a_class_and_a_result_is_written(autojump_clock):
    """HYP-01: by the path, the verb, and the class of the value."""
    async with shop() as (caller, url):
        answer = await caller.request(url, ORDER, path="/order")
        assert (answer.code, answer.value) == (200, {"number": 7, "parts": PARTS})
        receipt = actors.read_as(answer.value, Receipt)
        assert receipt == Receipt(7, (Part("bolt", 2, Size.LARGE), Part("nut")))
        answer = await caller.request(url, Order([Part("bolt")]), path="/order")
        assert answer.value == {"number": 7, "parts": [{**PARTS[1], "title": "bolt"}]}
        answer = await caller.request(url, {"parts": [], "note": "closed"}, path="/order")
        assert (answer.code, answer.body["description"]) == (410, "the shop is closed")


async def test_verb_path_and_class_choose_the_handler(autojump_clock):
    async with shop() as (caller, url):

        async def said(value=None, verb="create", path=""):
            answer = await caller.request(url, value, verb, path=path)
            return answer.value if answer.ok else answer.code

        assert await said(verb="read", path="/order") == caller.url
        assert await said(verb="read", path="/receipt") == caller.url
        assert await said([1, 2], "update", "/order") == {"sum": 3}
        assert await said({"hello": "x"}) == {"greeted": "x", "from": caller.url}
        assert await said(Greeting("y")) == {"greeted": "y", "from": caller.url}
        assert await said(Farewell("x", 3)) == 3
        assert await said({"bye": "x"}) == 0
        # What nobody takes goes to `on_request`.
        for value in ({"hello": "x", "bye": "y"}, {}, "hello", None):
            assert await said(value) == "plain create"
        assert await said(verb="read") == "plain read"
        assert await said({}, path="/orders") == "plain create"
        # A value of another kind is refused, also where none is wanted; an error stays one.
        assert await said(1, "read", "/order") == 400
        assert await said({"hello": 1}) == 400
        assert await said(1, "delete") == 500


FLAWS = [
    ({}, "value.parts: it is missing"),
    ({"parts": {}}, "value.parts: must be a list, not an object"),
    ({"parts": "ab"}, "value.parts: must be a list, not 'ab'"),
    ({"parts": [{"title": 1}]}, "value.parts[0].title: must be text, not 1"),
    ({"parts": [{"title": "a", "cnt": 1}]}, "value.parts[0]: the key 'cnt' is unknown"),
    ({"parts": [[]]}, "value.parts[0]: must be an object, not a list"),
    ({"parts": [{"title": "a", "count": True}]}, "value.parts[0].count: must be a whole number"),
    ({"parts": [{"title": "a", "count": "2"}]}, "value.parts[0].count: must be a whole number"),
    ({"parts": [{"title": "a", "count": 0}]}, "value.parts[0]: 'count' must be >= 1: 0"),
    ({"parts": [{"title": "a", "size": "xl"}]}, "value.parts[0].size: must be one of 'small'"),
    ({"parts": [], "note": 1}, "value.note: must be text"),
    ({"parts": [], "prices": {"a": "1"}}, "value.prices['a']: must be a number, not '1'"),
    ({"parts": [], "prices": []}, "value.prices: must be an object, not a list"),
    ({"parts": [], "extra": 1}, "value: the key 'extra' is unknown"),
    (None, "value: must be an object, not null"),
    ([], "value: must be an object, not a list"),
]
FITTING = [
    {"parts": []},
    {"parts": [{"title": ""}], "prices": {"a": 1, "b": 2.5}, "free": [{"x": None}]},
    {"parts": [{"title": "a", "count": 2.0}]},
]


async def test_a_value_that_does_not_obey_is_refused_with_its_place(autojump_clock):
    async with shop() as (caller, url):
        for value, why in FLAWS:
            answer = await caller.request(url, value, path="/order")
            assert answer.code == 400, value
            assert why in answer.body["description"]
        for value in FITTING:
            assert (await caller.request(url, value, path="/order")).ok


async def test_a_value_with_many_flaws_is_read_up_to_the_first(autojump_clock):
    """A sender cannot make a hyperty collect an error for each element of a large value."""
    read = []

    def is_read(_instance, _attribute, number):
        read.append(number)
        if number < 0:
            raise LookupError(number)

    @attrs.frozen
    class Numbered:
        number: int = attrs.field(validator=is_read)

    for number, flaw in ((-1, "value: -1"), ("x", "value[1].number: must be a whole number")):
        read.clear()
        with pytest.raises(BadMessageError, match=re.escape(flaw)):
            actors.read_as([{"number": 1}, *[{"number": number}] * 1000], list[Numbered])
        assert read == [1, -1][: 1 + (number == -1)]


def request(value, verb="create", path=""):
    body = {"value": value, **({"resource": path} if path else {})}
    return {"id": 1, "type": verb, "from": "hyperty://a/1", "to": "hyperty://a/2", "body": body}


async def test_handlers_are_inherited_and_replaced(autojump_clock):
    class More(Shop):
        @actors.handles("update", path="/order")
        async def change(self, text: str) -> str:
            return text

        async def part(self, farewell: Farewell) -> int:
            """Not marked: this is no handler."""

    def find(verb, path, value=None):
        body = {"value": value, "resource": path} if path else {"value": value}
        handler = More.handlers.find(Message(1, MessageType(verb), "x", "y", body))
        return handler and (handler.name, handler.value)

    assert find("update", "/order") == ("change", str)
    assert find("create", "/order") == ("order", Order)
    assert find("create", "", {"bye": ""}) is None
    assert find("create", 7) is None


@attrs.frozen
class Bare:
    """Without a type that JSON has."""

    what: set


@attrs.frozen
class Hello:
    """Fits where a greeting with more fields fits."""

    hello: str
    to: str = ""


async def good(self, value: Order) -> None: ...


async def good_too(self, value: int) -> None: ...


async def no_annotation(self, value) -> None: ...


async def no_result(self, value: int): ...


async def two_values(self, a: int, b: int) -> None: ...


async def two_messages(self, a: actors.Message, b: actors.Message) -> None: ...


async def keyword_only(self, *, value: int) -> None: ...


async def odd_value(self, value: set) -> None: ...


async def odd_field(self, value: Bare) -> None: ...


async def odd_result(self, value: int) -> complex: ...


async def unknown_name(self, value: "Nowhere") -> None: ...  # noqa: F821


async def greets(self, value: Greeting) -> None: ...


async def greets_too(self, value: Hello) -> None: ...


def not_async(self, value: int) -> None: ...


WRONG = [
    ([("create", no_annotation)], "Wrong.h0: value has no annotation"),
    ([("create", no_result)], "Wrong.h0: return has no annotation"),
    ([("create", two_values)], "Wrong.h0: a handler has one parameter for the value"),
    ([("create", two_messages)], "Wrong.h0: a handler has one parameter for the value"),
    ([("create", keyword_only)], "Wrong.h0: a handler has one parameter for the value"),
    ([("create", odd_value)], "Wrong.h0: no JSON is read into set"),
    ([("create", odd_field)], "Wrong.h0: Bare.what: no JSON is read into set"),
    ([("create", odd_result)], "Wrong.h0: no JSON is read into complex"),
    ([("create", unknown_name)], "Wrong.h0: an annotation cannot be read: name 'Nowhere'"),
    ([("create", not_async)], "Wrong.h0: a handler is an async function"),
    ([(Greeting, good)], "Wrong.h0: its value must be annotated Greeting"),
    ([("create", good), ("create", good_too)], "Wrong: h0 and h1 both handle create"),
    ([(Greeting, greets), ("create", good_too)], "Wrong: h0 and h1 both handle create"),
    ([(Greeting, greets), (Hello, greets_too)], "Wrong: h0 and h1 both handle create"),
]


@pytest.mark.parametrize(("rows", "why"), WRONG)
def test_a_wrong_handler_is_reported_where_the_class_is_defined(rows, why):
    methods = {}
    for number, (what, method) in enumerate(rows):
        copy = type(method)(method.__code__, method.__globals__, f"h{number}")
        copy.__annotations__, copy.__kwdefaults__ = method.__annotations__, method.__kwdefaults__
        methods[f"h{number}"] = actors.handles(what)(copy)
    with pytest.raises(TypeError) as raised:
        type("Wrong", (actors.Hyperty,), methods)
    assert why in str(raised.value)
