"""Handlers of requests as methods: values of attrs classes, read strictly, and their schema."""

import re
from collections import UserDict, UserList
from contextlib import asynccontextmanager
from types import MappingProxyType

import attrs
import pytest
from jsonschema_rs import validator_for

import actors
from specs.errors import BadMessageError
from specs.limits.discovery import MESSAGE_SCHEMA_BYTES
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


def test_an_error_of_a_validator_of_attrs_is_one_sentence():
    @attrs.frozen
    class Loan:
        days: int = attrs.field(validator=attrs.validators.in_((7, 14)))

    with pytest.raises(BadMessageError) as raised:
        actors.read_as({"days": 8}, Loan)
    assert raised.value.reason == "value: 'days' must be in (7, 14) (got 8)"


@pytest.mark.parametrize(
    "value",
    [
        {f"{number}{'k' * 12_000}": 1 for number in range(5)},
        {str(number): 1 for number in range(256)},
        {"parts": [], "prices": {"k" * 12_000: "@ value[0]"}},
        {"parts": [{"title": "a", "size": "x" * 12_000}]},
    ],
)
async def test_a_refusal_quotes_little_of_a_value(value, autojump_clock):
    """So it fits into an answer, and keeps its code."""
    async with shop() as (caller, url):
        answer = await caller.request(url, value, path="/order")
        assert answer.code == 400
        assert len(answer.body["description"]) < 300


@pytest.mark.timeout(240)
async def test_in_a_sandbox_it_is_the_same():
    async with shop(apart=True) as (caller, url):
        answer = await caller.request(url, ORDER, path="/order")
        assert (answer.code, answer.value) == (200, {"number": 7, "parts": PARTS})
        answer = await caller.request(url, {"parts": 1}, path="/order")
        assert (answer.code, answer.body["description"]) == (
            400,
            "value.parts: must be a list, not 1",
        )
        assert (await caller.request(url, "x")).value == "plain create"


def request(value, verb="create", path=""):
    body = {"value": value, **({"resource": path} if path else {})}
    return {"id": 1, "type": verb, "from": "hyperty://a/1", "to": "hyperty://a/2", "body": body}


def test_the_schema_takes_what_the_handlers_take():
    """CAT-02: `messageSchema`."""
    schema = Shop.message_schema()
    obeys = validator_for(schema).is_valid
    for value in FITTING:
        assert obeys(request(value, path="/order"))
    for value, why in FLAWS:
        assert obeys(request(value, path="/order")) is ("must be >= 1" in why), value
    assert obeys(request({"hello": "x"}))
    assert obeys(request({"bye": "x", "when": 1}))
    assert not obeys(request({"hello": "x", "bye": "x"}))
    assert obeys(request(None, "read", "/order"))
    assert not obeys(request(1, "read", "/order"))
    assert obeys(request([1], "update", "/order"))
    assert not obeys(request([1], "update"))
    assert schema["$defs"]["order.answer"] == {"$ref": "#/$defs/Receipt"}
    assert schema["$defs"]["Part"]["properties"]["title"]["description"] == "What is ordered."
    assert schema["anyOf"][0]["description"] == "Take an order."
    assert Caller.message_schema() is None


async def test_the_record_of_a_hyperty_shows_the_schema(autojump_clock):
    """CAT-02, REG-07."""
    async with shop() as (caller, url):
        (found,) = await caller.discover(name="Shop")
        assert found.url == url
        assert found.message_schema == Shop.message_schema()
        assert "anyOf" not in repr(found)
        (other,) = await caller.discover(name="Caller")
        assert other.message_schema is None


async def test_a_large_schema_is_in_no_record(autojump_clock):
    @attrs.frozen
    class Wide:
        one: int

    Wide.__doc__ = "x" * MESSAGE_SCHEMA_BYTES

    class Large(actors.Hyperty):
        @actors.handles(Wide)
        async def take(self, value: Wide) -> None: ...

    network = MemoryNetwork()
    async with (
        actors.open_node("a.example", network=network) as node,
        actors.open_runtime("a.example", "ra", node=node.url, network=network) as runtime,
    ):
        large = await runtime.deploy(Large)
        assert Large.message_schema() is not None
        (found,) = await runtime.discover(name="Large")
        assert (found.url, found.message_schema) == (large.url, None)


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


async def odd_result(self, value: int) -> bytes: ...


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
    ([("create", odd_result)], "Wrong.h0: no JSON is read into bytes"),
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


@pytest.mark.parametrize("what", ["forward", "CREATE", "", 1, None, int, Shop])
def test_a_handler_takes_a_verb_or_a_class(what):
    with pytest.raises(TypeError, match="handles takes one of the verbs create"):
        actors.handles(what)
    with pytest.raises(TypeError, match="a path begins with a slash"):
        actors.handles("create", path="todo")


async def test_requests_take_every_mapping_and_sequence(autojump_clock):
    async with shop() as (caller, url):
        given = MappingProxyType({"parts": UserList([UserDict({"title": "a"})]), "prices": {}})
        answer = await caller.request(url, given, path="/order")
        assert answer.value["parts"] == [{**PARTS[1], "title": "a"}]
        with pytest.raises(actors.NotJsonError, match=r"value.parts: a value of type bytes"):
            await caller.request(url, {"parts": b"abc"})


@pytest.mark.parametrize("kind", [set, bytes, Bare, object()])
def test_a_value_is_read_into_known_types_only(kind):
    with pytest.raises(TypeError, match="no JSON is read into"):
        actors.read_as(1, kind)


def test_a_value_that_cannot_be_read_says_where():
    assert actors.read_as(["a"], list[str]) == ["a"]
    with pytest.raises(actors.ProtoflyError, match=r"value\[1\]: must be text, not 1"):
        actors.read_as(["a", 1], list[str])
